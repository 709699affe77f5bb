#include "server/grpc/methods.h"

#include <google/protobuf/util/json_util.h>
#include <health.pb.h>
#include <inference.pb.h>

#include <algorithm>
#include <iterator>

#include "runtime/base/own_json.h"

namespace tensormill::rpc {
namespace {

using nlohmann::json;

template <typename Message>
Message parsed(const std::string& text) {
  Message message;
  if (!message.ParseFromString(text))
    throw MessageError(grpc::StatusCode::INVALID_ARGUMENT, "the message cannot be parsed");
  return message;
}

Asked get(std::string target) {
  return {"GET", std::move(target), {}, std::make_shared<PiecesBody>(Pieces()), false};
}

Asked post(std::string target, const json& body) {
  return {"POST",
          std::move(target),
          {{"Content-Type", "application/json"}},
          std::make_shared<PiecesBody>(Pieces{slice_of(body.dump())}),
          false};
}

/// Answers in JSON have the members of their messages, by the rules that protobuf has for it.
template <typename Message>
std::string message_of(const std::string& text) {
  Message message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &message, options);
  if (!parsed.ok()) throw MessageError(grpc::StatusCode::INTERNAL, std::string(parsed.message()));
  return message.SerializeAsString();
}

std::string json_of(const google::protobuf::Message& message) {
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text);
  if (!printed.ok()) throw MessageError(grpc::StatusCode::INTERNAL, std::string(printed.message()));
  return text;
}

template <typename Message>
std::string same_members(const Answer& answer) {
  return message_of<Message>(*answer.body);
}

/// A message without members.
std::string nothing(const Answer&) { return ""; }

/// "live" and "ready" are the status alone.
template <typename Message, void (Message::*set)(bool)>
std::string state(const Answer& answer) {
  Message message;
  (message.*set)(answer.status == 200);
  return message.SerializeAsString();
}

Asked ask_live(const std::string&) { return get("/v2/health/live"); }
Asked ask_ready(const std::string&) { return get("/v2/health/ready"); }
Asked ask_server(const std::string&) { return get("/v2"); }

Asked ask_model_ready(const std::string& text) {
  const auto request = parsed<inference::ModelReadyRequest>(text);
  return get(model_path(request.name(), request.version()) + "/ready");
}

Asked ask_model(const std::string& text) {
  const auto request = parsed<inference::ModelMetadataRequest>(text);
  return get(model_path(request.name(), request.version()));
}

Asked ask_config(const std::string& text) {
  const auto request = parsed<inference::ModelConfigRequest>(text);
  return get(model_path(request.name(), request.version()) + "/config");
}

std::string print_config(const Answer& answer) {
  return message_of<inference::ModelConfigResponse>("{\"config\":" + *answer.body + "}");
}

Asked ask_statistics(const std::string& text) {
  const auto request = parsed<inference::ModelStatisticsRequest>(text);
  if (request.name().empty() && request.version().empty()) return get("/v2/models/stats");
  return get(model_path(request.name(), request.version()) + "/stats");
}

Asked ask_index(const std::string& text) {
  const auto request = parsed<inference::RepositoryIndexRequest>(text);
  return post("/v2/repository/index", {{"ready", request.ready()}});
}

std::string print_index(const Answer& answer) {
  return message_of<inference::RepositoryIndexResponse>("{\"models\":" + *answer.body + "}");
}

/// Of bytes, which are files of a model, only that they are there is told: none are taken.
json control_value(const inference::ModelRepositoryParameter& value) {
  switch (value.parameter_choice_case()) {
    case inference::ModelRepositoryParameter::kBoolParam:
      return value.bool_param();
    case inference::ModelRepositoryParameter::kInt64Param:
      return value.int64_param();
    case inference::ModelRepositoryParameter::kStringParam:
      return value.string_param();
    case inference::ModelRepositoryParameter::kBytesParam:
    case inference::ModelRepositoryParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return nullptr;
}

template <typename Message>
Asked ask_control(const std::string& text, const char* verb) {
  const auto request = parsed<Message>(text);
  const std::string model = model_path(request.model_name(), "").substr(std::string("/v2/").size());
  json parameters = json::object();
  // Which parameters there are is the other side's to know.
  for (const auto& [name, value] : request.parameters()) parameters[name] = control_value(value);
  json body = json::object();
  if (!parameters.empty()) body["parameters"] = std::move(parameters);
  return post("/v2/repository/" + model + verb, body);
}

Asked ask_load(const std::string& text) {
  return ask_control<inference::RepositoryModelLoadRequest>(text, "/load");
}
Asked ask_unload(const std::string& text) {
  return ask_control<inference::RepositoryModelUnloadRequest>(text, "/unload");
}

/// Regions of system or CUDA shared memory: one, or all where none is named.
template <typename Message>
std::string regions_path(const Message& request, const char* kind) {
  const std::string all = std::string("/v2/") + kind + "sharedmemory";
  return request.name().empty() ? all : all + "/region/" + path_segment(request.name());
}

Asked ask_regions(const std::string& text) {
  return get(regions_path(parsed<inference::SystemSharedMemoryStatusRequest>(text), "system") + "/status");
}

Asked ask_cuda_regions(const std::string& text) {
  return get(regions_path(parsed<inference::CudaSharedMemoryStatusRequest>(text), "cuda") + "/status");
}

[[noreturn]] void refuse_nameless() {
  throw MessageError(grpc::StatusCode::INVALID_ARGUMENT, "the region's name is missing");
}

Asked ask_register(const std::string& text) {
  const auto request = parsed<inference::SystemSharedMemoryRegisterRequest>(text);
  if (request.name().empty()) refuse_nameless();
  return post(regions_path(request, "system") + "/register",
              {{"key", request.key()}, {"offset", request.offset()}, {"byte_size", request.byte_size()}});
}

Asked ask_cuda_register(const std::string& text) {
  const auto request = parsed<inference::CudaSharedMemoryRegisterRequest>(text);
  if (request.name().empty()) refuse_nameless();
  // Bytes are base64 in protobuf's JSON.
  inference::CudaSharedMemoryRegisterRequest handle;
  handle.set_raw_handle(request.raw_handle());
  const std::string b64 = json::parse(json_of(handle)).value("rawHandle", "");
  return post(regions_path(request, "cuda") + "/register", {{"raw_handle", {{"b64", b64}}},
                                                            {"device_id", request.device_id()},
                                                            {"byte_size", request.byte_size()}});
}

Asked ask_unregister(const std::string& text) {
  const auto request = parsed<inference::SystemSharedMemoryUnregisterRequest>(text);
  return post(regions_path(request, "system") + "/unregister", json::object());
}

Asked ask_cuda_unregister(const std::string& text) {
  const auto request = parsed<inference::CudaSharedMemoryUnregisterRequest>(text);
  return post(regions_path(request, "cuda") + "/unregister", json::object());
}

/// By name.
template <typename Message>
std::string print_regions(const Answer& answer) {
  json regions = json::object();
  for (const json& region : parse_own_json(*answer.body))
    regions[region.at("name").get<std::string>()] = region;
  return message_of<Message>(json{{"regions", regions}}.dump());
}

/// Values are lists of texts here; there the level alone is a list, and what becomes as it was is null.
json setting_of(const std::string& name, const inference::TraceSettingRequest::SettingValue& setting) {
  if (setting.value().empty()) return nullptr;
  if (name != "trace_level" && setting.value_size() == 1) return setting.value(0);
  json values = json::array();
  for (const std::string& value : setting.value()) values.push_back(value);
  return values;
}

Asked ask_trace(const std::string& text) {
  const auto request = parsed<inference::TraceSettingRequest>(text);
  const std::string model = request.model_name().empty() ? "/v2" : model_path(request.model_name(), "");
  const std::string target = model + "/trace/setting";
  if (request.settings().empty()) return get(target);
  json body = json::object();
  for (const auto& [name, setting] : request.settings()) body[name] = setting_of(name, setting);
  return post(target, body);
}

std::string print_trace(const Answer& answer) {
  inference::TraceSettingResponse response;
  const json settings = parse_own_json(*answer.body);
  for (const auto& [name, value] : settings.items()) {
    auto& setting = (*response.mutable_settings())[name];
    if (value.is_string()) setting.add_value(value.get<std::string>());
    if (!value.is_array()) continue;
    for (const json& each : value) setting.add_value(each.get<std::string>());
  }
  return response.SerializeAsString();
}

#define TM_METHOD(name, kind, ask, print, needs_key) \
  { "/inference.GRPCInferenceService/" name, CallKind::kind, ask, print, needs_key }
const Method kMethods[] = {
    TM_METHOD("ServerLive", kUnary, ask_live,
              (state<inference::ServerLiveResponse, &inference::ServerLiveResponse::set_live>), false),
    TM_METHOD("ServerReady", kUnary, ask_ready,
              (state<inference::ServerReadyResponse, &inference::ServerReadyResponse::set_ready>), false),
    TM_METHOD("ModelReady", kUnary, ask_model_ready,
              (state<inference::ModelReadyResponse, &inference::ModelReadyResponse::set_ready>), true),
    TM_METHOD("ServerMetadata", kUnary, ask_server, same_members<inference::ServerMetadataResponse>, false),
    TM_METHOD("ModelMetadata", kUnary, ask_model, same_members<inference::ModelMetadataResponse>, true),
    TM_METHOD("ModelConfig", kUnary, ask_config, print_config, true),
    TM_METHOD("ModelStatistics", kUnary, ask_statistics, same_members<inference::ModelStatisticsResponse>,
              true),
    TM_METHOD("RepositoryIndex", kUnary, ask_index, print_index, true),
    TM_METHOD("RepositoryModelLoad", kUnary, ask_load, nothing, true),
    TM_METHOD("RepositoryModelUnload", kUnary, ask_unload, nothing, true),
    TM_METHOD("SystemSharedMemoryStatus", kUnary, ask_regions,
              print_regions<inference::SystemSharedMemoryStatusResponse>, true),
    TM_METHOD("SystemSharedMemoryRegister", kUnary, ask_register, nothing, true),
    TM_METHOD("SystemSharedMemoryUnregister", kUnary, ask_unregister, nothing, true),
    TM_METHOD("CudaSharedMemoryStatus", kUnary, ask_cuda_regions,
              print_regions<inference::CudaSharedMemoryStatusResponse>, true),
    TM_METHOD("CudaSharedMemoryRegister", kUnary, ask_cuda_register, nothing, true),
    TM_METHOD("CudaSharedMemoryUnregister", kUnary, ask_cuda_unregister, nothing, true),
    TM_METHOD("TraceSetting", kUnary, ask_trace, print_trace, true),
    TM_METHOD("ModelInfer", kInfer, nullptr, nullptr, true),
    TM_METHOD("ModelStreamInfer", kInferStream, nullptr, nullptr, true),
    {"/grpc.health.v1.Health/Check", CallKind::kHealth, nullptr, nullptr, false},
    {"/grpc.health.v1.Health/Watch", CallKind::kHealthWatch, nullptr, nullptr, false},
};
#undef TM_METHOD

}  // namespace

const Method* find_method(std::string_view name) {
  const auto* found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                   [&](const Method& method) { return method.name == name; });
  return found == std::end(kMethods) ? nullptr : found;
}

Asked refused_request(const Method& method) {
  // A message in which the model has a name; what it is called is not looked at.
  if (method.kind != CallKind::kUnary) return post("/v2/models/-/infer", json::object());
  if (method.ask == ask_trace) return ask_trace("");
  inference::ModelReadyRequest named;
  named.set_name("-");
  // Name and model_name are the fields 1 and 2.
  named.set_version("1");
  return method.ask(named.SerializeAsString());
}

void check_health_service(const std::string& message) {
  const auto request = parsed<grpc::health::v1::HealthCheckRequest>(message);
  if (!request.service().empty() && request.service() != "inference.GRPCInferenceService")
    throw MessageError(grpc::StatusCode::NOT_FOUND, "there is no service \"" + request.service() + "\"");
}

std::string health_response(bool is_serving) {
  grpc::health::v1::HealthCheckResponse response;
  response.set_status(is_serving ? grpc::health::v1::HealthCheckResponse::SERVING
                                 : grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  return response.SerializeAsString();
}

}  // namespace tensormill::rpc
