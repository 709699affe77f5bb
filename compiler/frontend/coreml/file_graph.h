/// What operations are called in errors and in drawings of a file. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/coreml/model.h"

namespace tensormill::frontend::coreml {

/// Its name, the name of its first output, or "conv#3".
std::string operation_label(const Operation& node, size_t index);
/// What it reads of what operations before it have made; of the operands of its blocks nothing.
std::vector<std::string> operand_names(const Operation& node);
/// What the paths of the operations of block `block` of operation `index` begin with.
std::string path_within(const std::string& around, size_t index, size_t block);

}  // namespace tensormill::frontend::coreml
