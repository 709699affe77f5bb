/// Which inputs of a kernel its output may overwrite. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/plan/generic_nest.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

/// Inputs of the type of the program's only output of which each output element needs just the element at its
/// own index: computed in whatever order, an element is read before its place is written. Empty for programs
/// of several outputs.
std::vector<size_t> find_in_place(const te::Program& program);

/// The same of a nest.
std::vector<size_t> find_in_place(const Nest& nest);

/// Alias class of each parameter, `inputs` of them and then `outputs`, for te::Function::aliases: the output
/// and the inputs that it may lie on are one class.
std::vector<int> alias_classes(size_t inputs, size_t outputs, const std::vector<size_t>& in_place);

}  // namespace tensormill::plan
