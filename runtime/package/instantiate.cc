// Generic plans at extents.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/package/branches.h"
#include "runtime/package/plan_formulas.h"
#include "runtime/package/plan_set.h"
#include "runtime/package/refused_branches.h"
#include "runtime/package/segments.h"

namespace tensormill::package {

int64_t no_less(int64_t extent, int64_t least) {
  if (extent < least)
    throw Error(ErrorCode::kInvalidTensor, "an extent inside of it would be " + std::to_string(extent));
  return extent;
}

namespace {

void fill_holes(const GenericPlan& generic, std::span<const int64_t> dims, const RefusedBranches& refused,
                ExecPlan& plan) {
  for (const PlanHole& hole : generic.buffer_holes) {
    Buffer& buffer = plan.buffers[static_cast<size_t>(hole.owner)];
    buffer.shape[static_cast<size_t>(hole.position)] =
        refused.has_buffer(hole.owner) ? 0 : no_less(evaluate(hole.value, dims), 0);
  }
  for (Buffer& buffer : plan.buffers) {
    if (buffer.kind != BufferKind::kConstant) buffer.bytes = num_bytes(buffer.shape, buffer.dtype);
  }
  for (const PlanHole& hole : generic.step_holes) {
    const int64_t extent = refused.has_step(hole.owner) ? 0 : no_less(evaluate(hole.value, dims), 0);
    if (extent > kMaxStepDim)
      throw Error(ErrorCode::kMemoryBudget, "an extent inside of it would be " + std::to_string(extent));
    plan.steps[static_cast<size_t>(hole.owner)].dims[static_cast<size_t>(hole.position)] = extent;
  }
}

}  // namespace

/// A kernel whose output has elements reads nothing that has none, but where it is made for that.
void check_empty(const GenericPlan& generic, const ExecPlan& plan, size_t begin, size_t end) {
  // What never has elements is nothing that a kernel reads.
  const auto is_ever = [&](int32_t id) {
    Shape shape = generic.plan.buffers[static_cast<size_t>(id)].shape;
    for (const PlanHole& hole : generic.buffer_holes) {
      if (hole.owner == id) shape[static_cast<size_t>(hole.position)] = 1;
    }
    return num_elements(shape) != 0;
  };
  const auto is_empty = [&](int32_t id) {
    return num_elements(plan.buffers[static_cast<size_t>(id)].shape) == 0 && is_ever(id);
  };
  for (size_t s = begin; s < end; ++s) {
    const Step& step = plan.steps[s];
    if (step.kind != StepKind::kKernel) continue;
    EmptyArguments found{static_cast<int32_t>(s), {}};
    bool writes = false;
    for (size_t i = 0; i < step.args.size(); ++i) {
      const auto position = static_cast<int32_t>(i);
      const bool is_output =
          std::find(step.outputs.begin(), step.outputs.end(), position) != step.outputs.end();
      writes = writes || (is_output && !is_empty(step.args[i]));
      if (!is_output && is_empty(step.args[i])) found.arguments.push_back(position);
    }
    if (!writes || found.arguments.empty()) continue;
    const auto covers = [&](const EmptyArguments& listed) {
      return listed.step == found.step &&
             (listed.is_any ? std::includes(listed.arguments.begin(), listed.arguments.end(),
                                            found.arguments.begin(), found.arguments.end())
                            : listed.arguments == found.arguments);
    };
    if (std::none_of(generic.empties.begin(), generic.empties.end(), covers))
      throw Error(ErrorCode::kInvalidTensor, "an operand of node \"" +
                                                 (step.origins.empty() ? step.name : step.origins.front()) +
                                                 "\" would have no elements");
  }
}

namespace {

/// Views of free extents are whole: two formulas that say otherwise cannot both be right.
void check_views(const GenericPlan& generic, const ExecPlan& plan, const RefusedBranches& refused) {
  const std::vector<bool> is_whole = whole_views(generic);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (!is_whole[i] || refused.has_buffer(static_cast<int32_t>(i))) continue;
    const Buffer& root = plan.buffers[static_cast<size_t>(buffer.view_of)];
    if (buffer.bytes != root.bytes || buffer.view_offset != 0)
      throw Error(ErrorCode::kInvalidPackage, "the generic plan does not hold for these extents: \"" +
                                                  buffer.name + "\" is " + to_string(buffer.shape) +
                                                  ", a view of " + to_string(root.shape));
  }
}

}  // namespace

namespace {

/// Of what a run binds as far as `dims` have it.
ExecPlan bound_to(const GenericPlan& generic, std::span<const int64_t> dims, ExecPlan plan) {
  const Segments segments(generic, "");
  const RefusedBranches refused(plan);
  std::vector<int64_t> all = segments.dims_of(dims);
  for (size_t i = 0; i < segments.count(); ++i) {
    if (segments.bound_before(i) <= dims.size() - generic.dims.size()) segments.bind(i, refused, all, plan);
  }
  return plan;
}

}  // namespace

ExecPlan with_extents(const GenericPlan& generic, std::span<const int64_t> dims) {
  ExecPlan plan = generic.plan;
  fill_holes(generic, with_derived(dims, generic.derived), RefusedBranches(), plan);
  return plan;
}

bool is_within(const GenericPlan& generic, std::span<const int64_t> dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] % generic.multiples[i] != 0 || dims[i] < generic.minimums[i]) return false;
  }
  return std::none_of(generic.guards.begin(), generic.guards.end(),
                      [&](const PlanGuard& guard) { return broken_by(guard, dims).has_value(); });
}

ExecPlan instantiate(const GenericPlan& generic, std::span<const int64_t> dims,
                     std::span<const std::string> names) {
  const std::span<const int64_t> free_dims = dims.first(generic.dims.size());
  for (size_t i = 0; i < free_dims.size(); ++i) {
    const std::string extent =
        (names.empty() ? "an extent" : names[i]) + " is " + std::to_string(dims[i]) + ", the model takes ";
    if (dims[i] % generic.multiples[i] != 0)
      throw Error(ErrorCode::kInvalidTensor, extent + "multiples of " + std::to_string(generic.multiples[i]));
    if (dims[i] < generic.minimums[i])
      throw Error(ErrorCode::kInvalidTensor, extent + std::to_string(generic.minimums[i]) + " at least");
  }
  for (const PlanGuard& guard : generic.guards) {
    if (const std::optional<std::string> broken = broken_by(guard, free_dims))
      throw Error(ErrorCode::kInvalidTensor, "the model does not take inputs of these extents: " + *broken);
  }
  ExecPlan plan = generic.plan;
  note_refused(free_dims, plan);
  const RefusedBranches refused(plan);
  try {
    if (!generic.run_dims.empty()) return bound_to(generic, dims, std::move(plan));
    fill_holes(generic, with_derived(dims, generic.derived), refused, plan);
    for (std::vector<Port>* ports : {&plan.inputs, &plan.outputs}) {
      for (Port& port : *ports) {
        const Shape& shape = plan.buffers[static_cast<size_t>(port.buffer)].shape;
        port.shape.assign(shape.begin(), shape.end());
      }
    }
    validate_plan(plan);
    check_empty(generic, plan, 0, plan.steps.size());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kMemoryBudget) throw;
    throw Error(ErrorCode::kInvalidTensor,
                "the model does not take inputs of these extents: " + std::string(error.message()));
  }
  check_views(generic, plan, refused);
  return plan;
}

}  // namespace tensormill::package
