#include "runtime/package/branches.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/package/json_fields.h"
#include "runtime/package/loops.h"
#include "runtime/package/plan_formulas.h"

namespace tensormill::package {

namespace {

constexpr std::string_view kBranch = "branch";

Branch read_branch(const ExecPlan& plan, size_t at) {
  const Step& step = plan.steps[at];
  const std::string pointer = "/steps/" + std::to_string(at);
  Json json;
  try {
    json = parse_json(step.attributes);
  } catch (const Error& error) {
    throw_invalid(pointer + "/attributes", error.message());
  }
  if (!json.is_object()) throw_invalid(pointer + "/attributes", "the attributes of a branch are no object");
  JsonFields fields(json, pointer + "/attributes");
  Branch branch;
  branch.step = at;
  branch.when = fields.integer("when", 0, 1) != 0;
  branch.steps = static_cast<size_t>(fields.integer("steps", 0, kMaxPlanSteps));
  if (fields.has("dims")) branch.dims = fields.texts("dims", kMaxFreeDims);
  if (fields.has("guards")) {
    const Json& items = fields.array("guards", kMaxPlanGuards);
    for (size_t i = 0; i < items.size(); ++i) {
      JsonFields guard(items[i], fields.pointer_to("guards") + "/" + std::to_string(i));
      const bool is_demanded = guard.integer("demanded", 0, 1) != 0;
      branch.guards.push_back({guard_from_json(guard, branch.dims), is_demanded});
      guard.finish();
    }
  }
  if (fields.has("refused")) branch.refused = fields.text("refused");
  branch.is_other_graph = fields.integer_or("other_graph", 0, 0, 1) != 0;
  fields.finish();
  if (branch.steps >= plan.steps.size() - at)
    throw_invalid(pointer + "/attributes/steps", "there are not so many behind it");
  if (step.args.size() != 1 || !step.outputs.empty())
    throw_invalid(pointer + "/args", "a branch has a condition and no results");
  branch.condition = step.args[0];
  const Buffer& condition = plan.buffers[static_cast<size_t>(branch.condition)];
  if (condition.dtype != DType::kBool || num_elements(condition.shape) != 1)
    throw_invalid(pointer + "/args", "the condition is no one bool");
  return branch;
}

/// Whether what is skipped has a loop's begin without its end, or the reverse.
bool cuts(const Branch& branch, const Loop& loop) {
  const auto has = [&](size_t step) { return step > branch.step && step <= branch.step + branch.steps; };
  return has(loop.begin) != has(loop.end);
}

}  // namespace

bool begins_branch(const Step& step) { return step.kind == StepKind::kHost && step.function == kBranch; }

Branch at_extents(Branch branch, std::span<const int64_t> dims) {
  for (const BranchGuard& each : branch.guards) {
    const std::optional<std::string> broken = broken_by(each.guard, dims);
    if (!broken) continue;
    if (branch.refused.empty())
      branch.refused = "the branch that is taken does not take inputs of these extents: " + *broken;
    branch.is_other_graph = branch.is_other_graph || !each.is_demanded;
  }
  branch.guards.clear();
  branch.dims.clear();
  return branch;
}

Step branch_step(const Branch& branch) {
  Json json = {{"when", branch.when ? 1 : 0}, {"steps", branch.steps}};
  if (!branch.dims.empty()) json["dims"] = branch.dims;
  for (const BranchGuard& each : branch.guards) {
    Json guard = guard_to_json(each.guard);
    guard["demanded"] = each.is_demanded ? 1 : 0;
    json["guards"].push_back(std::move(guard));
  }
  if (!branch.refused.empty()) json["refused"] = branch.refused;
  if (branch.is_other_graph) json["other_graph"] = 1;
  Step step;
  step.kind = StepKind::kHost;
  step.name = std::string(kBranch) + "_" + std::to_string(branch.step);
  step.function = kBranch;
  step.args = {branch.condition};
  step.attributes = canonical_json(json);
  return step;
}

std::vector<Branch> branches_of(const ExecPlan& plan) {
  std::vector<Branch> branches;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (begins_branch(plan.steps[i])) branches.push_back(read_branch(plan, i));
  }
  if (branches.empty()) return branches;
  const std::vector<Loop> loops = loops_of(plan);
  for (const Branch& branch : branches) {
    if (std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) { return cuts(branch, loop); }))
      throw_invalid("/steps/" + std::to_string(branch.step),
                    "a branch begins or ends inside of a loop alone");
  }
  return branches;
}

}  // namespace tensormill::package
