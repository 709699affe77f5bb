/// The text form of loop IR and tensor expressions. parse(print(x)) prints the same again, and equal
/// functions print equal text: names are made unique by order of first appearance. Thread-safety: pure
/// functions.
#pragma once

#include <string>
#include <string_view>

#include "compiler/te/stmt.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::te {

std::string print(const Expr& expr);
std::string print(const Stmt& stmt);
std::string print(const Function& function);
/// Canonical text of a program: stages with axes, bodies and reductions. It is what kernels are keyed by.
std::string print(const Program& program);
/// Throws Error(kInvalidArgument) with line and column.
Function parse_function(std::string_view text);
Program parse_program(std::string_view text);

}  // namespace tensormill::te
