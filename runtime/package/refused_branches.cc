#include "runtime/package/refused_branches.h"

#include <algorithm>

#include "runtime/package/branches.h"

namespace tensormill::package {

void note_refused(std::span<const int64_t> dims, ExecPlan& plan) {
  for (Branch& each : branches_of(plan)) {
    if (each.guards.empty()) continue;
    const Branch branch = at_extents(std::move(each), dims);
    plan.steps[branch.step].attributes = branch_step(branch).attributes;
  }
}

namespace {

/// Whether the step is a choose that reads the argument in the refused branch alone.
bool is_left(const ExecPlan& plan, const Step& step, size_t argument, const std::vector<Branch>& refused) {
  if (step.kind != StepKind::kHost || step.function != "choose" || argument == 0 || argument > 2)
    return false;
  const auto condition = [&](int32_t id) { return root_buffer(plan, id); };
  return std::any_of(refused.begin(), refused.end(), [&](const Branch& branch) {
    return condition(branch.condition) == condition(step.args[0]) && branch.when == (argument == 1);
  });
}

}  // namespace

RefusedBranches::RefusedBranches(const ExecPlan& plan) {
  std::vector<Branch> refused = branches_of(plan);
  std::erase_if(refused, [](const Branch& branch) { return branch.refused.empty(); });
  if (refused.empty()) return;
  steps_.resize(plan.steps.size());
  for (const Branch& branch : refused) {
    for (size_t i = 1; i <= branch.steps; ++i) steps_[branch.step + i] = true;
  }
  std::vector<bool> is_used(plan.buffers.size());
  const auto use = [&](int32_t id) { is_used[static_cast<size_t>(id)] = true; };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (steps_[i]) continue;
    const Step& step = plan.steps[i];
    for (size_t argument = 0; argument < step.args.size(); ++argument) {
      if (!is_left(plan, step, argument, refused)) use(step.args[argument]);
    }
  }
  for (const std::vector<Port>* ports : {&plan.inputs, &plan.outputs}) {
    for (const Port& port : *ports) use(port.buffer);
  }
  // A view that is used has what it is a view of.
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (is_used[i]) use(root_buffer(plan, static_cast<int32_t>(i)));
  }
  buffers_.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    buffers_[i] = !is_used[i] && plan.buffers[i].kind != BufferKind::kConstant;
}

}  // namespace tensormill::package
