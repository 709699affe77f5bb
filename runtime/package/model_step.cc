#include "runtime/package/model_step.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/tensor.h"

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

ExecPlan plan_of_model(const PlanSet& set, const std::vector<int64_t>& dims, const std::string& reason) {
  const ExecPlan& first = set.first();
  ExecPlan plan;
  Step step;
  step.name = std::string(kModelStep) + "_0";
  step.kind = StepKind::kHost;
  step.function = kModelStep;
  Json open = Json::array();
  const auto add = [&](const Port& port, BufferKind kind, const Shape& shape) {
    const auto buffer = static_cast<int32_t>(plan.buffers.size());
    plan.buffers.push_back({port.name, kind, port.dtype, shape, num_bytes(shape, port.dtype)});
    step.args.push_back(buffer);
    return Port{port.name, port.dtype, DimShape(shape.begin(), shape.end()), buffer};
  };
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    Shape shape;
    for (const Dim& declared : set.input_shapes[i]) {
      const auto* name = std::get_if<std::string>(&declared);
      const auto found =
          std::find(set.free_dims.begin(), set.free_dims.end(), name != nullptr ? *name : std::string());
      shape.push_back(name != nullptr ? dims[static_cast<size_t>(found - set.free_dims.begin())]
                                      : std::get<int64_t>(declared));
    }
    plan.inputs.push_back(add(first.inputs[i], BufferKind::kInput, shape));
  }
  for (const Port& port : first.outputs) {
    for (size_t axis = 0; axis < port.shape.size(); ++axis)
      open.insert(open.end(), {plan.outputs.size(), axis});
    step.outputs.push_back(static_cast<int32_t>(step.args.size()));
    plan.outputs.push_back(add(port, BufferKind::kOutput, Shape(port.shape.size(), 1)));
  }
  step.attributes = canonical_json({{kModelStepReason, reason}, {kModelStepOpen, std::move(open)}});
  plan.steps = {std::move(step)};
  plan.params_bytes = first.params_bytes;
  return plan;
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
