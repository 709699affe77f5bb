// GET /healthz, /readyz, /v1/info, /v1/targets, POST /v1/targets/parse
#include "api/endpoints/context.h"
#include "api/schema/print.h"
#include "api/schema/requests.h"

namespace tensormill::endpoints {

http::Response get_healthz(const Context& context, http::Request&) {
  const bool live = context.services.health->live();
  return http::json_response(schema::print({{"live", live}}), live ? 200 : 503);
}

http::Response get_readyz(const Context& context, http::Request&) {
  const services::Readiness readiness = context.services.health->ready();
  http::Response response = http::json_response(
      schema::print({{"ready", readiness.ready}, {"reason", readiness.reason}}), readiness.ready ? 200 : 503);
  if (!readiness.ready) response.headers.set("Retry-After", "1");
  return response;
}

http::Response get_info(const Context& context, http::Request&) {
  return http::json_response(schema::print(schema::to_json(context.services.info->info())));
}

http::Response list_targets(const Context& context, http::Request&) {
  services::Page<services::TargetPreset> page;
  page.items = context.services.targets->list();
  return http::json_response(schema::print(schema::page_json(page)));
}

http::Response parse_target(const Context& context, http::Request& request) {
  const std::string target = schema::read_target(json_body(request));
  return http::json_response(schema::print(schema::to_json(context.services.targets->parse(target))));
}

}  // namespace tensormill::endpoints
