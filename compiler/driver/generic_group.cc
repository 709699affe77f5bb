#include "compiler/driver/generic_group.h"

#include "compiler/driver/verify_kernel.h"
#include "runtime/package/branches.h"

namespace tensormill::driver {

package::ExecPlan plan_at(const package::GenericPlan& plan, const std::vector<int64_t>& dims) {
  return package::branches_of(plan.plan).empty() ? package::instantiate(plan, dims)
                                                 : package::with_extents(plan, dims);
}

GroupRun::GroupRun(const plan::GenericGroup& group, const package::ExecPlan& plan,
                   const std::vector<Tensor>& inputs)
    : group_(group), plan_(plan) {
  for (size_t i = 0; i < group.inputs.size(); ++i) tensors_.emplace(group.inputs[i], inputs[i]);
}

Tensor& GroupRun::buffer(int32_t index) {
  const auto found = tensors_.find(index);
  if (found != tensors_.end()) return found->second;
  const package::Buffer& buffer = plan_.buffers[static_cast<size_t>(index)];
  return tensors_.emplace(index, Tensor::zeros(buffer.dtype, buffer.shape)).first->second;
}

std::vector<Tensor> GroupRun::arguments(size_t step) {
  std::vector<Tensor> arguments;
  for (const int32_t arg : plan_.steps[step].args) arguments.push_back(buffer(arg));
  return arguments;
}

void GroupRun::set_outputs(size_t step, const std::vector<Tensor>& outputs) {
  const package::Step& own = plan_.steps[step];
  for (size_t i = 0; i < outputs.size(); ++i)
    tensors_.insert_or_assign(own.args[static_cast<size_t>(own.outputs[i])], outputs[i]);
}

int32_t GroupRun::run(size_t step, tm_kernel entry) {
  std::vector<void*> buffers;
  for (const int32_t arg : plan_.steps[step].args) buffers.push_back(buffer(arg).data());
  return run_kernel(entry, buffers, {}, plan_.steps[step].dims);
}

std::vector<Tensor> GroupRun::outputs() const {
  std::vector<Tensor> outputs;
  for (const int32_t output : group_.outputs) {
    const package::Buffer& buffer = plan_.buffers[static_cast<size_t>(output)];
    const auto found = tensors_.find(output);
    outputs.push_back(found != tensors_.end() ? found->second : Tensor::zeros(buffer.dtype, buffer.shape));
  }
  return outputs;
}

}  // namespace tensormill::driver
