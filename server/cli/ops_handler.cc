#include "server/cli/ops_handler.h"

#include "api/http/problem.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::cli {

namespace {

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

http::Lane OpsHandler::lane(const http::Request& request, std::string_view) const noexcept {
  return path_of(request.target) == "/metrics" ? http::Lane::kWorker : http::Lane::kReserved;
}

http::Response OpsHandler::respond(const http::Request& request) {
  const std::string_view path = path_of(request.target);
  if (request.method != "GET" && request.method != "HEAD") {
    throw Error(ErrorCode::kMethodNotAllowed, std::string(path) + " takes GET and HEAD alone");
  }
  if (path == "/metrics") {
    http::check_operator_host(request, rules_);
    // Who asks for OpenMetrics, as Prometheus does where it takes exemplars, gets it.
    const std::string_view accepted = request.headers.get("Accept").value_or("");
    if (accepted.find("application/openmetrics-text") != std::string_view::npos) {
      return http::text_response(registry_.text(metrics::Registry::Form::kOpenMetrics),
                                 "application/openmetrics-text; version=1.0.0; charset=utf-8");
    }
    return http::text_response(registry_.text(), "text/plain; version=0.0.4; charset=utf-8");
  }
  if (path == "/healthz") {
    const bool live = health_.live();
    return http::json_response(Json{{"live", live}}.dump() + "\n", live ? 200 : 503);
  }
  if (path == "/readyz") {
    const services::Readiness readiness = health_.ready();
    return http::json_response(Json{{"ready", readiness.ready}, {"reason", readiness.reason}}.dump() + "\n",
                               readiness.ready ? 200 : 503);
  }
  throw Error(ErrorCode::kNotFound, "there is no endpoint " + std::string(path) + " here");
}

http::Response OpsHandler::handle(http::Request& request) noexcept {
  const std::string id = http::request_id_for(request.headers);
  try {
    return respond(request);
  } catch (const Error& error) {
    return http::problem_response(error, id);
  } catch (const std::exception& error) {
    return http::problem_response(Error(ErrorCode::kInternal, error.what()), id);
  }
}

}  // namespace tensormill::cli
