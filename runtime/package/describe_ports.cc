// What the plans of a package say of its inputs and outputs.
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/package/model_step.h"
#include "runtime/package/plan_set.h"
#include "runtime/package/segments.h"
#include "runtime/package/trim.h"

namespace tensormill::package {

namespace {

/// The generic plan where one dim is larger, twice as large if the model takes that: a window is no larger
/// than what it goes over.
std::optional<PlanVariant> with_larger(const GenericPlan& generic, size_t dim) {
  const int64_t step = generic.multiples[dim];
  for (int64_t more = generic.dims[dim] / step; more > 0; more /= 2) {
    PlanVariant larger{generic.dims, {}};
    larger.dims[dim] += more * step;
    if (!is_within(generic, larger.dims)) continue;
    try {
      larger.plan = instantiate(generic, larger.dims);
      return larger;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidTensor) throw;
    }
  }
  return std::nullopt;
}

/// Every plan of the set with its dims; the generic one also at other extents, where only that tells a fixed
/// extent from a free one.
std::vector<PlanVariant> described_plans(const PlanSet& set) {
  std::vector<PlanVariant> plans = set.variants;
  if (!set.generic) return plans;
  plans.push_back({set.generic->dims, set.generic->plan});
  for (size_t i = 0; i < set.free_dims.size(); ++i) {
    if (std::optional<PlanVariant> larger = with_larger(*set.generic, i)) plans.push_back(*std::move(larger));
  }
  for (const GenericPlan& special : set.special) plans.push_back({special.dims, special.plan});
  return plans;
}

/// `plans` have outputs of one rank.
Dim described_dim(const PlanSet& set, const std::vector<const PlanVariant*>& plans, size_t output, size_t d) {
  const auto extent = [&](const PlanVariant* plan) {
    return std::get<int64_t>(plan->plan.outputs[output].shape[d]);
  };
  const auto all = [&](const auto& holds) { return std::all_of(plans.begin(), plans.end(), holds); };
  for (size_t i = 0; i < set.free_dims.size(); ++i) {
    const bool varies = !all([&](const PlanVariant* plan) { return plan->dims[i] == plans[0]->dims[i]; });
    if (varies && all([&](const PlanVariant* plan) { return extent(plan) == plan->dims[i]; }))
      return set.free_dims[i];
  }
  // Of dims that have one extent in all plans, the interpreter's plans may have others.
  const bool vary = set.generic || !set.model || [&] {
    for (size_t i = 0; i < set.free_dims.size(); ++i) {
      if (all([&](const PlanVariant* plan) { return plan->dims[i] == plans[0]->dims[i]; })) return false;
    }
    return true;
  }();
  const bool is_fixed = all([&](const PlanVariant* plan) { return extent(plan) == extent(plans[0]); });
  return vary && is_fixed ? Dim(extent(plans[0])) : Dim(std::string());
}

/// Outputs whose extent depends on data have a dim without a name.
void free_data_extents(const ExecPlan& plan, std::vector<TensorInfo>& outputs) {
  const auto free = [&](int32_t buffer, size_t axis) {
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      // The last axis of strings, their width, is not shown.
      if (plan.outputs[i].buffer == buffer && axis < outputs[i].shape.size())
        outputs[i].shape[axis] = std::string();
    }
  };
  for (const Step& step : plan.steps) {
    const std::optional<Trim> trim = trim_of(plan, step);
    if (!trim) continue;
    for (const size_t axis : trim->axes) free(trim->buffer, axis);
  }
  if (!is_model_step(plan)) return;
  for (const auto& [buffer, axis] : open_axes(plan)) free(buffer, axis);
}

/// So have those that a run binds.
void free_run_extents(const GenericPlan& generic, std::vector<TensorInfo>& outputs) {
  if (generic.run_dims.empty()) return;
  const Segments segments(generic, "/generic");
  for (const PlanHole& hole : generic.buffer_holes) {
    const auto axis = static_cast<size_t>(hole.position);
    for (size_t i = 0; i < generic.plan.outputs.size() && segments.of_hole(hole) > 0; ++i) {
      if (generic.plan.outputs[i].buffer == hole.owner && axis < outputs[i].shape.size())
        outputs[i].shape[axis] = std::string();
    }
  }
}

}  // namespace

void describe_ports(const PlanSet& set, std::vector<TensorInfo>& inputs, std::vector<TensorInfo>& outputs) {
  const std::vector<PlanVariant> plans = described_plans(set);
  // The generic plan's ranks are the usual ones.
  const ExecPlan& first = set.generic ? set.generic->plan : plans.front().plan;
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const Port& port = first.inputs[i];
    inputs.push_back({port.name, port.dtype,
                      shown_shape(port.dtype, set.is_dynamic() ? set.input_shapes[i] : port.shape)});
  }
  for (size_t i = 0; i < first.outputs.size(); ++i) {
    TensorInfo info{first.outputs[i].name, first.outputs[i].dtype, {}};
    const size_t rank = first.outputs[i].shape.size();
    std::vector<const PlanVariant*> of_rank;
    for (const PlanVariant& plan : plans) {
      if (plan.plan.outputs[i].shape.size() == rank) of_rank.push_back(&plan);
    }
    for (size_t d = 0; d < rank; ++d) info.shape.push_back(described_dim(set, of_rank, i, d));
    info.shape = shown_shape(info.dtype, std::move(info.shape));
    outputs.push_back(std::move(info));
  }
  free_data_extents(first, outputs);
  if (set.generic) free_run_extents(*set.generic, outputs);
}

}  // namespace tensormill::package
