#include "runtime/package/model_step.h"

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::package {

namespace {

Error invalid(const ExecPlan& plan) {
  return Error(ErrorCode::kInvalidPackage,
               "step \"" + plan.steps.front().name + "\" does not say rightly what it stands for");
}

Json attributes_of(const ExecPlan& plan) {
  const Json json = parse_json(plan.steps.front().attributes);
  if (!json.is_object()) throw invalid(plan);
  return json;
}

}  // namespace

bool is_model_step(const ExecPlan& plan) {
  return plan.steps.size() == 1 && plan.steps.front().kind == StepKind::kHost &&
         plan.steps.front().function == kModelStep;
}

std::string model_step_reason(const ExecPlan& plan) {
  const Json json = attributes_of(plan);
  if (!json.contains(kModelStepReason) || !json[kModelStepReason].is_string()) throw invalid(plan);
  return json[kModelStepReason].get<std::string>();
}

std::vector<std::pair<int32_t, size_t>> open_axes(const ExecPlan& plan) {
  const Step& step = plan.steps.front();
  const Json json = attributes_of(plan);
  const Json open = json.value(kModelStepOpen, Json());
  if (!open.is_array() || open.size() % 2 != 0) throw invalid(plan);
  std::vector<std::pair<int32_t, size_t>> axes;
  for (size_t i = 0; i < open.size(); i += 2) {
    if (!open[i].is_number_unsigned() || !open[i + 1].is_number_unsigned()) throw invalid(plan);
    const auto result = open[i].get<size_t>(), axis = open[i + 1].get<size_t>();
    if (result >= step.outputs.size()) throw invalid(plan);
    const int32_t buffer = step.args[static_cast<size_t>(step.outputs[result])];
    if (axis >= plan.buffers[static_cast<size_t>(buffer)].shape.size()) throw invalid(plan);
    axes.emplace_back(buffer, axis);
  }
  return axes;
}

}  // namespace tensormill::package
