/// The step that stands for a whole model: where a run's values decide about extents and ranks that no plan
/// can bound, a package's plans are this one step, and an Interpreter makes the plan of each run from its
/// values. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

/// A row of runtime/host_ops, which refuses to run: programs without an interpreter say why by it.
inline constexpr std::string_view kModelStep = "run_model";
/// Its attributes: why there is no plan (text), and which extents of outputs nobody knows: an output's place
/// among the step's results, an axis, and so on.
inline constexpr const char* kModelStepReason = "reason";
inline constexpr const char* kModelStepOpen = "open";

/// Whether the plan is such a step.
bool is_model_step(const ExecPlan& plan);
/// Of such a plan. Throws Error(kInvalidPackage) for a step that says no reason.
std::string model_step_reason(const ExecPlan& plan);
/// Of such a plan: buffers and axes that are as long as a run makes them. Throws Error(kInvalidPackage) for
/// what is no axis of a result.
std::vector<std::pair<int32_t, size_t>> open_axes(const ExecPlan& plan);

}  // namespace tensormill::package
