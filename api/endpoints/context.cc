#include "api/endpoints/context.h"

#include "api/http/headers.h"
#include "api/http/scopes.h"
#include "api/http/target.h"
#include "api/http/tensor_body.h"
#include "api/http/trace_context.h"
#include "runtime/base/json.h"
#include "runtime/base/percent.h"

namespace tensormill::endpoints {
namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> list;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    list.push_back(text.substr(0, space));
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  return list;
}

}  // namespace

std::string_view scope_name(Scope scope) {
  switch (scope) {
    case Scope::kPublic:
      return "";
    case Scope::kInfer:
      return "infer";
    case Scope::kRead:
      return "read";
    case Scope::kWrite:
      return "write";
    case Scope::kAdmin:
      return "admin";
    case Scope::kWorker:
      return services::kWorkerScope;
  }
  return "";
}

const std::vector<RouteRow>& all_routes() {
  static const std::vector<RouteRow> rows = {
#define TM_ROUTE(function, method, path, scope, body, query, request, answers, summary) \
  {function,       #function,    method,  path,           Scope::scope,                 \
   BodyKind::body, words(query), request, words(answers), summary},
#include "api/endpoints/routes.def"
#undef TM_ROUTE
  };
  return rows;
}

bool takes_idempotency_key(const RouteRow& row) {
  // The answer to a new key has its text, which nothing may keep.
  return row.method == "POST" && (row.scope == Scope::kWrite || row.scope == Scope::kAdmin) &&
         row.endpoint != create_key;
}

std::string_view deployment_parameter(const RouteRow& row) {
  if (row.path.find("{deployment}") != std::string_view::npos) return "deployment";
  // In KServe's interface a model is what is called a deployment here.
  const bool is_v2 = row.path.starts_with("/v2/") && row.path.find("{model}") != std::string_view::npos;
  return is_v2 ? "model" : "";
}

bool lists_deployments(const RouteRow& row) {
  return row.endpoint == list_deployments || row.endpoint == get_v2_all_stats ||
         row.endpoint == index_v2_repository;
}

std::string v2_version_of(const http::Request& request) {
  const auto found = request.path_parameters.find("version");
  return found == request.path_parameters.end() ? "" : found->second;
}

services::Deployment get_v2_deployment(const Context& context, const std::string& name) {
  try {
    return context.services.deployments->get(name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound, "Request for unknown model: '" + name + "' is not found");
  }
}

Json v2_control_body(http::Request& request) {
  const std::string body = json_body(request);
  if (body.empty()) return Json::object();
  Json json = parse_json(body);
  if (!json.is_object()) throw Error(ErrorCode::kInvalidArgument, "the request is no object");
  return json;
}

const services::DeploymentVersion* find_v2_version(const services::Deployment& model,
                                                   const std::string& version) {
  const std::string& wanted = version.empty() ? model.default_version : version;
  for (const services::DeploymentVersion& one : model.versions) {
    if (one.version == wanted) return &one;
  }
  return nullptr;
}

std::string json_body(http::Request& request) {
  // "{}," is an empty map of 64 bytes with what the allocator adds, and its place of 16 in a growing array.
  constexpr uint64_t kParsed = 32;
  std::string text = http::read_all(*request.body, request.memory.get());
  request.memory->take(kParsed * text.size());
  return text;
}

services::CallContext call_context(const http::Request& request) {
  return {request.request_id,
          request.caller,
          request.cancelled,
          request.later,
          request.is_admin,
          request.scopes,
          request.memory,
          idempotency_key(request).value_or(""),
          http::recorded_trace_of(request.headers)};
}

std::optional<std::string> idempotency_key(const http::Request& request) {
  const auto key = request.headers.get("Idempotency-Key");
  if (!key) return std::nullopt;
  if (key->empty() || key->size() > 128) {
    throw Error(ErrorCode::kInvalidRequest,
                "Idempotency-Key has " + std::to_string(key->size()) + " characters, expected 1 to 128");
  }
  return std::string(*key);
}

services::Page<services::Deployment> list_visible_deployments(services::DeploymentService& deployments,
                                                              services::PageQuery page,
                                                              const http::Request& request) {
  if (request.only_names.empty()) return deployments.list(page);
  const auto limit = static_cast<size_t>(page.limit);
  services::Page<services::Deployment> visible;
  do {
    services::Page<services::Deployment> found = deployments.list(page);
    for (services::Deployment& one : found.items) {
      if (!http::matches_name(request.only_names, one.name)) continue;
      if (visible.items.size() == limit) {
        // Deployments stand in order of name, and a page begins behind the name that is its cursor.
        visible.next_cursor = visible.items.back().name;
        return visible;
      }
      visible.items.push_back(std::move(one));
    }
    page.cursor = found.next_cursor;
  } while (!page.cursor.empty());
  return visible;
}

services::PageQuery page_query(const http::Request& request) {
  services::PageQuery page;
  page.limit = static_cast<int>(request.query_int("limit", 50, 1, 500));
  page.cursor = request.query_value("cursor").value_or("");
  return page;
}

http::Response page_response(const http::Request& request, const std::string& json,
                             const std::string& next_cursor) {
  http::Response response = http::json_response(json);
  if (next_cursor.empty()) return response;
  std::string link = "<" + request.target.substr(0, request.target.find('?')) + "?";
  for (const auto& [name, value] : request.query) {
    if (name != "cursor") link += percent_encode(name) + "=" + percent_encode(value) + "&";
  }
  response.headers.set("Link", link + "cursor=" + percent_encode(next_cursor) + ">; rel=\"next\"");
  return response;
}

}  // namespace tensormill::endpoints
