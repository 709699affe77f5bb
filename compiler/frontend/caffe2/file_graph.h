/// What operators are called in errors and in drawings of a file. Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/frontend/caffe2/model.h"

namespace tensormill::frontend::caffe2 {

/// Its name, the name of its first output, or "Conv#3".
std::string operator_label(const Operator& node, size_t index);
/// Where it is: a number in the net that computes, "init:3" in the one that fills.
std::string operator_path(bool is_init, size_t index);

}  // namespace tensormill::frontend::caffe2
