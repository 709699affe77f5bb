/// The step that stands for a whole model: where a run's values decide about extents and ranks that no plan
/// can bound, a package's plans are this one step, and an Interpreter makes the plan of each run from its
/// values. Thread-safety: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/model_step.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

/// Whether the plan is such a step.
bool is_model_step(const ExecPlan& plan);
/// Of such a plan. Throws Error(kInvalidPackage) for a step that says no reason.
std::string model_step_reason(const ExecPlan& plan);
/// Such a plan at `dims` of the set's free dims, of the inputs and outputs that its plans have; nothing is
/// known of the outputs' extents.
ExecPlan plan_of_model(const PlanSet& set, const std::vector<int64_t>& dims, const std::string& reason);
/// Of such a plan: buffers and axes that are as long as a run makes them. Throws Error(kInvalidPackage) for
/// what is no axis of a result.
std::vector<std::pair<int32_t, size_t>> open_axes(const ExecPlan& plan);

}  // namespace tensormill::package
