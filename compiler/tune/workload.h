/// What candidates of a task run on, and what they have to make of it. Thread-safety: values; checks of one
/// workload belong to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/tensor.h"

namespace tensormill::tune {

struct Workload {
  std::vector<Tensor> inputs;
  std::vector<ir::ValueType> outputs;
  std::vector<int64_t> dims = {};  ///< the kernel's extents, where they are arguments of it
  /// Throws Error(kWrongAnswer) where what the kernel returned, or wrote, is not right.
  std::function<void(int32_t code, const std::vector<Tensor>& outputs)> check;
};

}  // namespace tensormill::tune
