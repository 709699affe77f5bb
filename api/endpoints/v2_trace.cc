// KServe's trace extension, as Triton has it: GET, POST /v2/trace/setting, /v2/models/{model}/trace/setting
#include <charconv>

#include "api/endpoints/context.h"
#include "api/schema/print.h"

namespace tensormill::endpoints {
namespace {

constexpr int64_t kMost = int64_t{1} << 53;

/// The deployment that the path names, which is there; "" for the server.
std::string model_of(const Context& context, const http::Request& request) {
  const auto found = request.path_parameters.find("model");
  if (found == request.path_parameters.end()) return "";
  if (!context.services.deployments->has(found->second))
    throw Error(ErrorCode::kNotFound, "there is no model \"" + found->second + "\"");
  return found->second;
}

/// Values are texts in this protocol.
http::Response setting_response(const services::TraceSetting& setting) {
  return http::json_response(schema::print({{"trace_file", ""},
                                            {"trace_level", {setting.is_on ? "TIMESTAMPS" : "OFF"}},
                                            {"trace_rate", std::to_string(setting.rate)},
                                            {"trace_count", std::to_string(setting.count)},
                                            {"log_frequency", "0"},
                                            {"trace_mode", "opentelemetry"}}));
}

[[noreturn]] void refuse_setting(const std::string& name, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, name + " " + what, {{"/" + name, what}});
}

std::optional<int64_t> number_of(const std::string& name, const Json& value, int64_t low) {
  if (value.is_null()) return std::nullopt;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < low || number > kMost)
    refuse_setting(name, "is " + value.dump() + ", expected a whole number from " + std::to_string(low));
  return number;
}

std::optional<bool> level_of(const Json& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_array() || value.empty()) refuse_setting("trace_level", "is no array of levels");
  bool is_on = false;
  for (const Json& level : value) {
    if (level == "TENSORS")
      throw Error(ErrorCode::kNotSupported, "trace_level TENSORS: tensors are not written to traces");
    if (level != "OFF" && level != "TIMESTAMPS")
      refuse_setting("trace_level", "has " + level.dump() + ", expected OFF or TIMESTAMPS");
    is_on = is_on || level == "TIMESTAMPS";
  }
  return is_on;
}

services::TraceChange change_of(const Json& body) {
  if (!body.is_object()) throw Error(ErrorCode::kInvalidArgument, "the request is no object");
  services::TraceChange change;
  for (const auto& [name, value] : body.items()) {
    if (name == "trace_level") {
      change.is_on = level_of(value);
    } else if (name == "trace_rate") {
      change.rate = number_of(name, value, 1);
    } else if (name == "trace_count") {
      change.count = number_of(name, value, -1);
    } else if (name == "trace_mode") {
      if (value != "opentelemetry") refuse_setting(name, "is " + value.dump() + ", expected opentelemetry");
    } else if (name == "trace_file" || name == "log_frequency") {
      // Spans go to the collector as they come.
      const bool is_default = value.is_null() || value == "" || value == "0";
      if (!is_default)
        throw Error(ErrorCode::kNotSupported, name + ": traces are sent, not written to files");
    } else {
      refuse_setting(name, "is no setting of traces");
    }
  }
  return change;
}

}  // namespace

http::Response get_v2_trace(const Context& context, http::Request& request) {
  const std::string model = model_of(context, request);
  return setting_response(context.options.traces == nullptr ? services::TraceSetting()
                                                            : context.options.traces->get(model));
}

http::Response get_v2_model_trace(const Context& context, http::Request& request) {
  return get_v2_trace(context, request);
}

http::Response change_v2_trace(const Context& context, http::Request& request) {
  const std::string model = model_of(context, request);
  const services::TraceChange change = change_of(parse_json(json_body(request)));
  if (context.options.traces == nullptr)
    throw Error(ErrorCode::kNotSupported, "no traces are made: otel.endpoint names no collector");
  return setting_response(context.options.traces->change(model, change));
}

http::Response change_v2_model_trace(const Context& context, http::Request& request) {
  return change_v2_trace(context, request);
}

}  // namespace tensormill::endpoints
