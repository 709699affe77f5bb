// KServe v2: /v2, /v2/health/…, /v2/models/{model}[/versions/{version}][/ready|/infer]; a deployment is a
// model
#include <algorithm>
#include <charconv>

#include "api/endpoints/context.h"
#include "api/endpoints/tensor_codec.h"
#include "api/endpoints/v2_codec.h"
#include "api/schema/print.h"

namespace tensormill::endpoints {
namespace {

constexpr std::string_view kHeaderLength = "Inference-Header-Content-Length";

/// The version that the path names; "": the default one.
std::string version_of(const http::Request& request) {
  const auto found = request.path_parameters.find("version");
  return found == request.path_parameters.end() ? "" : found->second;
}

std::optional<size_t> header_length(const http::Request& request) {
  const auto text = request.headers.get(kHeaderLength);
  if (!text) return std::nullopt;
  size_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size()) {
    throw Error(ErrorCode::kInvalidRequest, std::string(kHeaderLength) + " is no number");
  }
  return value;
}

const services::DeploymentVersion* find_version(const services::Deployment& model,
                                                const std::string& version) {
  const std::string& wanted = version.empty() ? model.default_version : version;
  for (const services::DeploymentVersion& one : model.versions) {
    if (one.version == wanted) return &one;
  }
  return nullptr;
}

Json tensors_json(const std::vector<services::TensorSpec>& specs) {
  Json list = Json::array();
  for (const services::TensorSpec& spec : specs) {
    Json shape = Json::array();
    for (const Dim& dim : spec.shape) {
      const int64_t* extent = std::get_if<int64_t>(&dim);
      shape.push_back(extent == nullptr ? -1 : *extent);
    }
    list.push_back(
        {{"name", spec.name}, {"datatype", dtype_v2_name(spec.dtype)}, {"shape", std::move(shape)}});
  }
  return list;
}

http::Response state_response(bool good) {
  http::Response response = http::text_response("");
  response.status = good ? 200 : 400;
  return response;
}

}  // namespace

http::Response get_v2_server(const Context& context, http::Request&) {
  return http::json_response(schema::print({{"name", "tensormill"},
                                            {"version", context.services.info->info().version},
                                            {"extensions", {"binary_tensor_data"}}}));
}

http::Response get_v2_live(const Context& context, http::Request&) {
  return state_response(context.services.health->live());
}

http::Response get_v2_ready(const Context& context, http::Request&) {
  return state_response(context.services.health->ready().ready);
}

http::Response get_v2_model(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("model");
  const services::Deployment model = context.services.deployments->get(name);
  const std::string version = version_of(request);
  if (!version.empty() && find_version(model, version) == nullptr) {
    throw Error(ErrorCode::kNotFound, "model \"" + name + "\" has no version \"" + version + "\"");
  }
  Json versions = Json::array();
  for (const services::DeploymentVersion& one : model.versions) versions.push_back(one.version);
  return http::json_response(schema::print({{"name", name},
                                            {"versions", std::move(versions)},
                                            {"platform", "tensormill"},
                                            {"inputs", tensors_json(model.inputs)},
                                            {"outputs", tensors_json(model.outputs)}}));
}

http::Response get_v2_model_ready(const Context& context, http::Request& request) {
  const services::Deployment model = context.services.deployments->get(request.path_parameter("model"));
  const services::DeploymentVersion* version = find_version(model, version_of(request));
  return state_response(version != nullptr && version->state == services::DeploymentState::kReady);
}

http::Response infer_v2(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("model");
  const std::string body = http::read_all(*request.body);
  V2Request asked = read_v2_request(body, header_length(request));
  services::RunOptions options;
  options.timeout = asked.timeout;
  const services::RunResult result = context.services.deployments->infer(
      name, version_of(request), std::move(asked.inputs), options, call_context(request));
  const V2Response printed = print_v2_response(asked, name, result.version, result.outputs);
  http::Response response =
      http::text_response(printed.body, printed.binary ? "application/octet-stream" : "application/json");
  if (printed.binary) response.headers.set(kHeaderLength, std::to_string(printed.json_size));
  response.headers.set("Server-Timing", server_timing(result.timing));
  return response;
}

http::Response get_v2_version(const Context& context, http::Request& request) {
  return get_v2_model(context, request);
}

http::Response get_v2_version_ready(const Context& context, http::Request& request) {
  return get_v2_model_ready(context, request);
}

http::Response infer_v2_version(const Context& context, http::Request& request) {
  return infer_v2(context, request);
}

}  // namespace tensormill::endpoints
