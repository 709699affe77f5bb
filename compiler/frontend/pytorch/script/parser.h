/// TorchScript's code as syntax. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "compiler/frontend/pytorch/script/syntax.h"

namespace tensormill::frontend::pytorch::script {

/// Adds what stands in a file, whose classes and functions are called "MODULE.NAME". Throws
/// Error(kInvalidModel) that says where: what is not of the language, a name that stands twice, expressions
/// nested deeper than 200, more than 1,000,000 expressions.
void parse_code(std::string_view code, const std::string& file, const std::string& module, Code& into);

}  // namespace tensormill::frontend::pytorch::script
