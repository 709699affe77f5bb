/// Which inputs of a kernel its output may overwrite. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

/// Inputs of the type of the program's only output of which each output element needs just the element at its
/// own index: computed in whatever order, an element is read before its place is written. Empty for programs
/// of several outputs.
std::vector<size_t> find_in_place(const te::Program& program);

/// Alias class of each parameter, inputs then outputs, for te::Function::aliases: the output and the inputs
/// that it may lie on are one class.
std::vector<int> alias_classes(const te::Program& program, const std::vector<size_t>& in_place);

}  // namespace tensormill::plan
