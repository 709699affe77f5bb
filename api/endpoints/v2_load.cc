// KServe v2 as Triton extends it: POST /v2/repository/models/{model}/load, with another configuration where
// one is given, and /unload
#include <algorithm>
#include <charconv>

#include "api/endpoints/context.h"
#include "api/schema/reader.h"
#include "runtime/base/json.h"

namespace tensormill::endpoints {
namespace {

using schema::ObjectReader;

Json parameters_of(const Json& body) {
  const auto parameters = body.find("parameters");
  if (parameters == body.end()) return Json::object();
  if (!parameters->is_object()) throw Error(ErrorCode::kInvalidArgument, "parameters is no object");
  return *parameters;
}

/// The JSON of Protocol Buffers has numbers as texts, too.
std::optional<int64_t> read_count(ObjectReader& from, const char* name, int64_t low, int64_t high) {
  const Json* value = from.find(name);
  if (value == nullptr) return std::nullopt;
  Json number = *value;
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    int64_t parsed = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (code == std::errc() && end == text.data() + text.size()) number = parsed;
  }
  return schema::read_int(number, from.pointer(name), low, high, from.problems());
}

/// What may be said as long as it says what is so.
void read_same(ObjectReader& from, const char* name, const std::string& is) {
  std::string said = is;
  from.optional(name, said);
  if (said != is) from.problems().add(from.pointer(name), "is \"" + is + "\" here");
}

void read_instances(ObjectReader& config, services::DeploymentSpec& spec) {
  const Json* groups = config.find("instance_group");
  if (groups == nullptr) return;
  const std::string pointer = config.pointer("instance_group");
  if (!groups->is_array() || groups->size() != 1)
    return config.problems().add(pointer, "is no list of one group: all instances are alike");
  ObjectReader group(groups->front(), pointer + "/0", config.problems());
  std::string name, kind = "KIND_CPU";
  group.optional("name", name);
  group.choice("kind", kind, {"KIND_CPU", "KIND_AUTO"});
  spec.instances = static_cast<int>(read_count(group, "count", 1, 64).value_or(spec.instances));
  group.finish();
}

void read_batching(ObjectReader& config, services::DeploymentSpec& spec) {
  const Json* batching = config.find("dynamic_batching");
  if (batching == nullptr) return;
  ObjectReader reader(*batching, config.pointer("dynamic_batching"), config.problems());
  spec.max_delay_us =
      static_cast<int>(read_count(reader, "max_queue_delay_microseconds", 0, 10'000'000).value_or(0));
  reader.finish();
}

void read_policy(ObjectReader& config, services::DeploymentSpec& spec) {
  const Json* policy = config.find("model_transaction_policy");
  if (policy == nullptr) return;
  ObjectReader reader(*policy, config.pointer("model_transaction_policy"), config.problems());
  reader.optional("decoupled", spec.decoupled);
  reader.finish();
}

/// The members of Triton's model configuration that a deployment has, put in the place of its own; what
/// follows from the package is refused. Throws Error(kInvalidJson), Error(kInvalidArgument).
void read_config(const std::string& text, const std::string& model, services::DeploymentSpec& spec) {
  const Json json = parse_json(text);
  schema::Problems problems;
  ObjectReader config(json, "/parameters/config", problems);
  for (const char* name : {"platform", "backend"}) read_same(config, name, "tensormill");
  read_same(config, "name", model);
  // 0: the model has no batch, which is one row at a time here.
  if (const auto rows = read_count(config, "max_batch_size", 0, 65536))
    spec.max_batch = static_cast<int>(std::max<int64_t>(*rows, 1));
  read_batching(config, spec);
  read_instances(config, spec);
  read_policy(config, spec);
  config.finish();
  problems.throw_if_any();
}

/// Nothing where the load says nothing of its own.
std::optional<std::string> config_of(const Json& body) {
  std::optional<std::string> config;
  const Json parameters = parameters_of(body);
  for (const auto& [name, value] : parameters.items()) {
    if (name != "config")
      throw Error(ErrorCode::kNotSupported, "parameter \"" + name +
                                                "\": models come by POST /v1/models, and what a deployment "
                                                "serves by PUT /v1/deployments/{deployment}");
    if (!value.is_string()) throw Error(ErrorCode::kInvalidArgument, "config is no text");
    config = value.get<std::string>();
  }
  return config;
}

void load(const Context& context, http::Request& request, const std::string& name) {
  services::DeploymentService& deployments = *context.services.deployments;
  const std::optional<std::string> config = config_of(v2_control_body(request));
  if (!deployments.has(name)) throw Error(ErrorCode::kNotFound, "there is no model of this name");
  if (!config) return deployments.load(name);
  const services::Deployment model = deployments.get(name);
  if (model.versions.empty()) throw Error(ErrorCode::kConflict, "it has no version yet");
  const std::string& version =
      model.default_version.empty() ? model.versions.back().version : model.default_version;
  services::DeploymentSpec spec = deployments.spec(name, version);
  spec.weights = model.weights;
  read_config(*config, name, spec);
  if (!deployments.put(name, spec, call_context(request)).ready)
    throw Error(ErrorCode::kUnavailable, "it is still being loaded");
}

}  // namespace

http::Response load_v2_model(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("model");
  try {
    load(context, request, name);
  } catch (Error& error) {
    // In the words that clients look for.
    error.add_context("failed to load '" + name + "'");
    throw;
  }
  return http::json_response("{}");
}

http::Response unload_v2_model(const Context& context, http::Request& request) {
  const Json parameters = parameters_of(v2_control_body(request));
  for (const auto& [name, value] : parameters.items()) {
    // No model is made of others here.
    if (name != "unload_dependents")
      throw Error(ErrorCode::kNotSupported, "parameter \"" + name + "\" of an unload");
  }
  context.services.deployments->unload(request.path_parameter("model"));
  return http::json_response("{}");
}

}  // namespace tensormill::endpoints
