// PUT, GET, DELETE /v1/deployments/{deployment}; GET /v1/deployments, …/traffic, …/versions; PUT …/weights;
// POST …/rollback, …/infer, …/classify
#include "api/endpoints/context.h"
#include "api/endpoints/tensor_codec.h"
#include "api/http/tensor_body.h"
#include "api/schema/print.h"
#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/names.h"

namespace tensormill::endpoints {
namespace {

/// The body of a request that would be taken now. Its place in the queue is not kept while the body comes: a
/// client that is slow to send it would keep it from others.
http::TensorBody read_admitted_body(const Context& context, http::Request& request, const std::string& name) {
  context.services.deployments->admit(name, "");
  return http::read_tensor_body(*request.body, request.memory.get());
}

http::Response put_response(const std::string& name, const services::PutResult& result) {
  const int status = !result.ready ? 202 : result.created ? 201 : 200;
  http::Response response = http::json_response(schema::print(schema::to_json(result.deployment)), status);
  response.headers.set("Location", "/v1/deployments/" + name);
  if (!result.ready) response.headers.set("Retry-After", "1");
  return response;
}

}  // namespace

http::Response put_deployment(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("deployment");
  if (!is_name(name)) {
    throw Error(ErrorCode::kInvalidArgument, "\"" + name + "\" is no name of a deployment");
  }
  const services::DeploymentSpec spec = schema::read_deployment_spec(json_body(request));
  return put_response(name, context.services.deployments->put(name, spec, call_context(request)));
}

http::Response put_weights(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("deployment");
  const services::VersionWeights weights = schema::read_version_weights(json_body(request));
  return put_response(name, context.services.deployments->set_weights(name, weights, call_context(request)));
}

http::Response roll_back(const Context& context, http::Request& request) {
  const std::string& name = request.path_parameter("deployment");
  return put_response(name, context.services.deployments->rollback(name, call_context(request)));
}

http::Response list_deployments(const Context& context, http::Request& request) {
  const auto page = list_visible_deployments(*context.services.deployments, page_query(request), request);
  return page_response(request, schema::print(schema::page_json(page)), page.next_cursor);
}

http::Response get_deployment(const Context& context, http::Request& request) {
  return http::json_response(schema::print(
      schema::to_json(context.services.deployments->get(request.path_parameter("deployment")))));
}

http::Response get_deployment_version(const Context& context, http::Request& request) {
  return http::json_response(schema::print(schema::to_json(context.services.deployments->spec(
      request.path_parameter("deployment"), request.path_parameter("version")))));
}

http::Response get_traffic(const Context& context, http::Request& request) {
  return http::json_response(schema::print(
      schema::to_json(context.services.deployments->traffic(request.path_parameter("deployment")))));
}

http::Response delete_deployment(const Context& context, http::Request& request) {
  context.services.deployments->remove(request.path_parameter("deployment"), std::nullopt,
                                       call_context(request));
  return http::empty_response();
}

http::Response delete_deployment_version(const Context& context, http::Request& request) {
  context.services.deployments->remove(request.path_parameter("deployment"),
                                       request.path_parameter("version"), call_context(request));
  return http::empty_response();
}

http::Response infer(const Context& context, http::Request& request) {
  const services::RunOptions options = run_options(request);
  const std::string& name = request.path_parameter("deployment");
  const http::TensorBody body = read_admitted_body(context, request, name);
  services::NamedTensors inputs;
  {
    const std::shared_ptr<void> place = context.services.deployments->admit(name, "");
    inputs = decode_tensors(request, body, options, context.options.max_tensor_bytes);
  }
  return later<services::RunResult>(
      [&context, &request, &name, options, inputs = std::move(inputs)](const auto& done) mutable {
        context.services.deployments->infer(name, "", std::move(inputs), options, call_context(request),
                                            done);
      },
      [&request](const services::RunResult& result) { return run_response(request, result); });
}

http::Response classify(const Context& context, http::Request& request) {
  const int top = static_cast<int>(request.query_int("top", 5, 1, 1000));
  const std::string& name = request.path_parameter("deployment");
  return later<services::ClassifyResult>(
      [&context, &request, &name, top, image = read_admitted_body(context, request, name)](const auto& done) {
        context.services.deployments->classify(name, image.text(), top, call_context(request), done);
      },
      [](const services::ClassifyResult& result) {
        http::Response response = http::json_response(schema::print(schema::to_json(result)));
        response.headers.set("Server-Timing", server_timing(result.timing));
        return response;
      });
}

}  // namespace tensormill::endpoints
