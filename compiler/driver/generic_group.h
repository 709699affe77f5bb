/// One node of a generic plan at some extents: its steps, one by one, on given inputs.
/// Thread-safety: belongs to one thread.
#pragma once

#include <map>
#include <vector>

#include "compiler/plan/generic_plan.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/tensor.h"

namespace tensormill::driver {

/// The plan at these dims. Extents of a branch may be others than those around it: no run has them together.
package::ExecPlan plan_at(const package::GenericPlan& plan, const std::vector<int64_t>& dims);

class GroupRun {
public:
  /// `group` and `plan`, which is at some extents, outlive it. `inputs`: of the node's kernel.
  GroupRun(const plan::GenericGroup& group, const package::ExecPlan& plan, const std::vector<Tensor>& inputs);

  /// What a step reads and writes, in the order of its kernel's parameters; what nothing has written is 0.
  std::vector<Tensor> arguments(size_t step);
  /// What the step is taken to have written, for the steps behind it.
  void set_outputs(size_t step, const std::vector<Tensor>& outputs);
  /// What the kernel returns.
  int32_t run(size_t step, tm_kernel entry);
  /// Of the node, as the steps so far have left them.
  std::vector<Tensor> outputs() const;

private:
  Tensor& buffer(int32_t index);

  const plan::GenericGroup& group_;
  const package::ExecPlan& plan_;
  std::map<int32_t, Tensor> tensors_;
};

}  // namespace tensormill::driver
