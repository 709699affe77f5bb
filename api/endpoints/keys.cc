// GET, POST /v1/keys; GET, DELETE /v1/keys/{key}; GET /v1/audit
#include "api/endpoints/context.h"
#include "api/http/time.h"
#include "api/schema/print.h"
#include "api/schema/requests.h"

namespace tensormill::endpoints {
namespace {

services::KeyService& keys_of(const Context& context) {
  if (context.services.keys != nullptr) return *context.services.keys;
  throw Error(ErrorCode::kConflict,
              "API keys are off: start the server with keys_file, as `tensormill keys add` makes one");
}

std::optional<services::Timestamp> time_of(const http::Request& request, std::string_view name) {
  const auto text = request.query_value(name);
  if (!text) return std::nullopt;
  const auto ms = http::parse_timestamp(*text);
  if (ms) return services::Timestamp{*ms};
  throw Error(ErrorCode::kInvalidRequest, "query parameter " + std::string(name) + " is \"" +
                                              std::string(*text) + "\", expected 2026-01-31T12:00:00Z");
}

}  // namespace

http::Response list_keys(const Context& context, http::Request& request) {
  const auto page = keys_of(context).list(page_query(request));
  return page_response(request, schema::print(schema::page_json(page)), page.next_cursor);
}

http::Response create_key(const Context& context, http::Request& request) {
  services::KeyService& keys = keys_of(context);
  const services::CreatedKey created = keys.create(schema::read_key_spec(json_body(request)));
  Json json = schema::to_json(created.info);
  json["key"] = created.key;
  http::Response response = http::json_response(schema::print(json), 201);
  response.headers.set("Location", "/v1/keys/" + created.info.name);
  return response;
}

http::Response get_key(const Context& context, http::Request& request) {
  return http::json_response(
      schema::print(schema::to_json(keys_of(context).get(request.path_parameter("key")))));
}

http::Response revoke_key(const Context& context, http::Request& request) {
  keys_of(context).revoke(request.path_parameter("key"));
  return http::empty_response();
}

http::Response list_audit(const Context& context, http::Request& request) {
  services::AuditQuery query;
  query.page = page_query(request);
  if (const auto caller = request.query_value("caller")) query.caller = std::string(*caller);
  query.method = request.query_value("method").value_or("");
  query.status = static_cast<int>(request.query_int("status", 0, 100, 599));
  query.since = time_of(request, "since");
  query.until = time_of(request, "until");
  const auto page = context.services.audit->list(query);
  return page_response(request, schema::print(schema::page_json(page)), page.next_cursor);
}

}  // namespace tensormill::endpoints
