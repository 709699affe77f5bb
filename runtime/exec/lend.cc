// Inputs and outputs that lie in the caller's memory.
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/number_text.h"
#include "runtime/exec/graph_executor.h"

namespace tensormill::exec {

using package::BufferKind;

bool GraphExecutor::set_input_in_place(size_t index, const TensorView& tensor) {
  TM_CHECK(index < inputs().size(), "input " + std::to_string(index));
  const package::Port& port = inputs()[index];
  // A lent place is the caller's: what is copied goes to the input's own storage.
  lend_input(index, nullptr);
  if (port.dtype == kString || num_elements(tensor.shape) == 0) {
    set_input(index, tensor);
    return false;
  }
  if (dtype_fits(port.dtype, tensor.dtype))
    check_elements(port.dtype, tensor.data, num_elements(tensor.shape), "input \"" + port.name + "\"");
  if (!fit_shape(index, tensor)) return false;
  // Steps do not write inputs: the plan's validator has checked it.
  lend_input(index, const_cast<void*>(tensor.data));
  return true;
}

void GraphExecutor::lend_input(size_t index, void* data) {
  TM_CHECK(index < inputs().size(), "input " + std::to_string(index));
  const int32_t input = inputs()[index].buffer;
  if (data != nullptr) {
    input_set_[index] = true;
    unset_by_.erase(index);
  }
  lend(input, data);
}

void GraphExecutor::lend(int32_t buffer, void* data) {
  const auto place = static_cast<std::byte*>(data);
  const auto known = lent_.find(buffer);
  if (known == lent_.end() ? place == nullptr : known->second == place) return;
  if (place != nullptr) {
    lent_.insert_or_assign(buffer, place);
  } else {
    lent_.erase(known);
  }
  rebind(buffer);
}

bool GraphExecutor::lend_output(size_t index, void* data) {
  TM_CHECK(index < outputs().size(), "output " + std::to_string(index));
  const int32_t output = outputs()[index].buffer;
  // What a loop hands on may be made in the place of an output.
  if (plan().buffers[static_cast<size_t>(output)].kind != BufferKind::kOutput || !loops_.empty())
    return false;
  // How large it is the run decides, or where it lies is not known before.
  if (segments_ && !segments_->is_of_first[static_cast<size_t>(output)]) return false;
  lend(output, data);
  return true;
}

size_t GraphExecutor::output_bytes(size_t index) const {
  TM_CHECK(index < outputs().size(), "output " + std::to_string(index));
  return static_cast<size_t>(plan().buffers[static_cast<size_t>(outputs()[index].buffer)].bytes);
}

void GraphExecutor::rebind(int32_t buffer) {
  for (Bound& bound : bound_) {
    for (size_t i = 0; i < bound.buffers.size(); ++i) {
      const int32_t argument = bound.step->args[i];
      if (package::root_buffer(plan(), argument) == buffer) bound.buffers[i] = address(argument);
    }
  }
  if (!loops_.empty()) bind_loops();
}

}  // namespace tensormill::exec
