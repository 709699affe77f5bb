#include "runtime/exec/host_step.h"

#include <algorithm>

namespace tensormill::exec {

void run_host_step(const package::ExecPlan& plan, const package::Step& step, host_ops::HostFunction function,
                   const std::vector<void*>& buffers, const host_ops::ReadAttributes* read,
                   bool common_pictures, host_ops::GrowingBuffers& growing) {
  std::vector<TensorView> inputs;
  std::vector<void*> outputs;
  std::vector<size_t> bytes;
  for (size_t i = 0; i < step.args.size(); ++i) {
    const package::Buffer& buffer = plan.buffers[static_cast<size_t>(step.args[i])];
    if (std::find(step.outputs.begin(), step.outputs.end(), static_cast<int32_t>(i)) != step.outputs.end()) {
      outputs.push_back(buffers[i]);
      bytes.push_back(static_cast<size_t>(buffer.bytes));
    } else {
      inputs.push_back({buffer.dtype, buffer.shape, buffers[i]});
    }
  }
  function({inputs, outputs, bytes, step.attributes, common_pictures, &growing, read});
}

}  // namespace tensormill::exec
