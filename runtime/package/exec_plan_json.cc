#include "runtime/base/error.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/json_fields.h"
#include "runtime/package/metadata.h"

namespace tensormill::package {

namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
constexpr std::string_view kBufferKinds[] = {"input", "output", "constant", "temp", "view"};
constexpr std::string_view kStepKinds[] = {"kernel", "host", "copy"};
constexpr std::string_view kSharings[] = {"launches", "all", "one"};  // the first is left out

template <typename Kind, size_t N>
Kind read_kind(JsonFields& fields, const std::string_view (&names)[N]) {
  const std::string text = fields.text("kind");
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Kind>(i);
  }
  throw_invalid(fields.pointer_to("kind"), "unknown kind \"" + text + "\"");
}

std::vector<int32_t> narrow(const std::vector<int64_t>& values) {
  return std::vector<int32_t>(values.begin(), values.end());
}

Json ports_to_json(const std::vector<Port>& ports) {
  Json result = Json::array();
  for (const Port& port : ports) {
    result.push_back({{"name", port.name},
                      {"dtype", std::string(dtype_long_name(port.dtype))},
                      {"shape", dims_to_json(port.shape)},
                      {"buffer", port.buffer}});
  }
  return result;
}

std::vector<Port> ports_from_json(JsonFields& fields, std::string_view key) {
  std::vector<Port> result;
  const Json& values = fields.array(key, kMaxPlanBuffers);
  for (size_t i = 0; i < values.size(); ++i) {
    JsonFields item(values[i], fields.pointer_to(key) + "/" + std::to_string(i));
    Port port;
    port.name = item.text("name");
    port.dtype = item.dtype("dtype");
    port.shape = item.dims("shape", kMaxRank);
    port.buffer = static_cast<int32_t>(item.integer("buffer", 0, kMaxPlanBuffers - 1));
    item.finish();
    result.push_back(std::move(port));
  }
  return result;
}

Json buffer_to_json(const Buffer& buffer) {
  Json json = {{"name", buffer.name},
               {"kind", std::string(kBufferKinds[static_cast<size_t>(buffer.kind)])},
               {"dtype", std::string(dtype_long_name(buffer.dtype))},
               {"shape", buffer.shape},
               {"bytes", buffer.bytes}};
  if (buffer.kind == BufferKind::kView) {
    json["view_of"] = buffer.view_of;
    json["view_offset"] = buffer.view_offset;
  }
  if (buffer.kind == BufferKind::kConstant) json["params_offset"] = buffer.params_offset;
  return json;
}

Buffer buffer_from_json(const Json& json, std::string pointer) {
  JsonFields fields(json, std::move(pointer));
  Buffer buffer;
  buffer.name = fields.text("name");
  buffer.kind = read_kind<BufferKind>(fields, kBufferKinds);
  buffer.dtype = fields.dtype("dtype");
  buffer.shape = fields.integers("shape", 0, kMaxTensorBytes, kMaxRank);
  buffer.bytes = fields.integer("bytes", 0, kMaxBufferBytes);
  if (buffer.kind == BufferKind::kView) {
    buffer.view_of = static_cast<int32_t>(fields.integer("view_of", 0, kMaxPlanBuffers - 1));
    buffer.view_offset = fields.integer("view_offset", 0, kMaxBufferBytes);
  }
  if (buffer.kind == BufferKind::kConstant)
    buffer.params_offset = fields.integer("params_offset", 0, kMaxInt);
  fields.finish();
  return buffer;
}

Json step_to_json(const Step& step) {
  Json json = {{"name", step.name},
               {"kind", std::string(kStepKinds[static_cast<size_t>(step.kind)])},
               {"function", step.function},
               {"args", step.args},
               {"outputs", step.outputs}};
  // What is empty is left out: a plan of a thousand steps stays readable.
  if (!step.dims.empty()) json["dims"] = step.dims;
  if (!step.in_place.empty()) {
    Json pairs = Json::array();
    for (const InPlace& pair : step.in_place) pairs.push_back({pair.output, pair.input});
    json["in_place"] = std::move(pairs);
  }
  if (step.shared_workspace_bytes != 0) json["shared_workspace_bytes"] = step.shared_workspace_bytes;
  if (step.worker_workspace_bytes != 0) json["worker_workspace_bytes"] = step.worker_workspace_bytes;
  if (step.sharing != Sharing::kLaunches)
    json["sharing"] = std::string(kSharings[static_cast<size_t>(step.sharing)]);
  if (!step.origins.empty()) json["origins"] = step.origins;
  if (!step.attributes.empty()) json["attributes"] = step.attributes;
  if (step.flops != 0) json["flops"] = step.flops;
  if (step.bytes != 0) json["bytes"] = step.bytes;
  return json;
}

std::vector<InPlace> in_place_from_json(JsonFields& fields) {
  std::vector<InPlace> result;
  if (!fields.has("in_place")) return result;
  const Json& pairs = fields.array("in_place", kMaxStepArguments);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Json wrapped = {{"pair", pairs[i]}};
    JsonFields pair(wrapped, fields.pointer_to("in_place") + "/" + std::to_string(i));
    const std::vector<int64_t> positions = pair.integers("pair", 0, kMaxStepArguments, 2);
    if (positions.size() != 2) throw_invalid(pair.pointer(), "expected two positions");
    result.push_back({static_cast<int32_t>(positions[0]), static_cast<int32_t>(positions[1])});
  }
  return result;
}

Sharing sharing_from_json(JsonFields& fields) {
  if (!fields.has("sharing")) return Sharing::kLaunches;
  const std::string text = fields.text("sharing");
  for (size_t i = 1; i < std::size(kSharings); ++i) {
    if (text == kSharings[i]) return static_cast<Sharing>(i);
  }
  throw_invalid(fields.pointer_to("sharing"), "no way of sharing is named \"" + text + "\"");
}

Step step_from_json(const Json& json, std::string pointer) {
  JsonFields fields(json, std::move(pointer));
  Step step;
  step.name = fields.text("name");
  step.kind = read_kind<StepKind>(fields, kStepKinds);
  step.function = fields.text("function");
  step.args = narrow(fields.integers("args", 0, kMaxPlanBuffers - 1, kMaxStepArguments));
  step.outputs = narrow(fields.integers("outputs", 0, kMaxStepArguments, kMaxStepArguments));
  step.dims =
      fields.integers_or_none("dims", std::numeric_limits<int64_t>::min(), kMaxInt, kMaxStepArguments);
  step.in_place = in_place_from_json(fields);
  step.shared_workspace_bytes = fields.integer_or("shared_workspace_bytes", 0, 0, kMaxBufferBytes);
  step.worker_workspace_bytes = fields.integer_or("worker_workspace_bytes", 0, 0, kMaxBufferBytes);
  step.sharing = sharing_from_json(fields);
  step.origins = fields.texts_or_none("origins", kMaxPlanSteps);
  step.attributes = fields.text_or("attributes", "");
  step.flops = fields.integer_or("flops", 0, 0, kMaxInt);
  step.bytes = fields.integer_or("bytes", 0, 0, kMaxInt);
  fields.finish();
  return step;
}

ExecPlan read_plan(const Json& json) {
  JsonFields fields(json, "");
  ExecPlan plan;
  plan.format_version = fields.integer("format_version", 0, kMaxInt);
  if (plan.format_version != kPlanFormatVersion) {
    throw_invalid("/format_version", "plan format is " + std::to_string(plan.format_version) +
                                         ", this program reads " + std::to_string(kPlanFormatVersion));
  }
  plan.abi_version = fields.integer("abi_version", 0, kMaxInt);
  plan.inputs = ports_from_json(fields, "inputs");
  plan.outputs = ports_from_json(fields, "outputs");
  const Json& buffers = fields.array("buffers", kMaxPlanBuffers);
  for (size_t i = 0; i < buffers.size(); ++i) {
    plan.buffers.push_back(buffer_from_json(buffers[i], "/buffers/" + std::to_string(i)));
  }
  const Json& steps = fields.array("steps", kMaxPlanSteps);
  for (size_t i = 0; i < steps.size(); ++i) {
    plan.steps.push_back(step_from_json(steps[i], "/steps/" + std::to_string(i)));
  }
  plan.params_bytes = fields.integer("params_bytes", 0, kMaxInt);
  fields.finish();
  return plan;
}

}  // namespace

std::string plan_to_json(const ExecPlan& plan) {
  validate_plan(plan);
  Json buffers = Json::array();
  for (const Buffer& buffer : plan.buffers) buffers.push_back(buffer_to_json(buffer));
  Json steps = Json::array();
  for (const Step& step : plan.steps) steps.push_back(step_to_json(step));
  const Json json = {{"format_version", plan.format_version}, {"abi_version", plan.abi_version},
                     {"inputs", ports_to_json(plan.inputs)},  {"outputs", ports_to_json(plan.outputs)},
                     {"buffers", std::move(buffers)},         {"steps", std::move(steps)},
                     {"params_bytes", plan.params_bytes}};
  return canonical_json(json);
}

ExecPlan plan_from_json(std::string_view text) {
  try {
    ExecPlan plan = read_plan(parse_json(text));
    validate_plan(plan);
    return plan;
  } catch (const Error& error) {
    Error wrapped(ErrorCode::kInvalidPackage, error.message(), error.details());
    wrapped.add_context(kPlanMember);
    throw wrapped;
  }
}

}  // namespace tensormill::package
