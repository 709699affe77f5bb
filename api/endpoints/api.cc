#include "api/endpoints/api.h"

#include <algorithm>
#include <future>
#include <new>
#include <set>

#include "api/endpoints/context.h"
#include "api/endpoints/direct.h"
#include "api/endpoints/repeats.h"
#include "api/http/coding.h"
#include "api/http/problem.h"
#include "api/http/rate_limit.h"
#include "api/http/router.h"
#include "api/http/scopes.h"
#include "api/http/security.h"
#include "api/http/target.h"

namespace tensormill::endpoints {
namespace {

bool is_health(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return path == "/healthz" || path == "/readyz";
}

void check_query(const http::Request& request, const RouteRow& row) {
  std::set<std::string_view> seen;
  // Clients of the public protocol add parameters of their own, which other servers of it leave alone.
  const bool takes_any = row.path.starts_with("/v2");
  for (const auto& [name, value] : request.query) {
    if (std::find(row.query.begin(), row.query.end(), name) == row.query.end()) {
      if (takes_any) continue;
      throw Error(ErrorCode::kInvalidRequest, "query parameter \"" + name + "\" is not known here");
    }
    if (!seen.insert(name).second) {
      throw Error(ErrorCode::kInvalidRequest, "query parameter \"" + name + "\" is there twice");
    }
  }
}

/// Whether `type` may carry a body of `kind`. Binary bodies take what curl sends by itself: no type with -T,
/// a form's type with --data-binary.
bool is_media_type_accepted(BodyKind kind, const std::string& type) {
  if (kind == BodyKind::kNone) return true;
  if (kind == BodyKind::kJson) return type == "application/json";
  if (type.empty() || type == "application/octet-stream" || type == "application/x-www-form-urlencoded")
    return true;
  if (kind == BodyKind::kInference || kind == BodyKind::kControl) return type == "application/json";
  if (kind == BodyKind::kImage) return type.starts_with("image/");
  if (kind == BodyKind::kRecords) return type == "application/x-ndjson" || type == "application/json";
  if (kind == BodyKind::kTensors) return type == "application/x-npz" || type == "application/zip";
  return type == "application/onnx" || type == "application/x-onnx" || type == "application/x-tar" ||
         type == "application/zip" || type == "application/protobuf" || type == "application/x-protobuf";
}

/// Whether looking takes a child process, or reads much.
bool costs(const RouteRow& row) {
  return row.endpoint == get_model_graph || row.endpoint == get_package_code ||
         row.endpoint == get_package_archive || row.endpoint == get_package_bundle;
}

bool has_body(const http::Request& request) {
  return request.headers.has("Transfer-Encoding") || request.body->length().value_or(1) > 0;
}

void check_media_type(const http::Request& request, BodyKind kind) {
  if (kind == BodyKind::kNone || !has_body(request)) return;
  const std::string type = request.content_type();
  if (is_media_type_accepted(kind, type)) return;
  const bool json = kind == BodyKind::kJson || kind == BodyKind::kInference;
  const std::string wanted = json ? "application/json"
                             : kind == BodyKind::kTensors
                                 ? "application/x-npz (tensors as JSON go to /v2/models/NAME/infer)"
                             : kind == BodyKind::kImage   ? "image/jpeg or image/png"
                             : kind == BodyKind::kRecords ? "application/x-ndjson"
                                                          : "application/octet-stream";
  throw Error(ErrorCode::kUnsupportedMediaType, "content type is \"" + type + "\", expected " + wanted);
}

class Api : public http::Handler {
public:
  Api(services::Services services, ApiOptions options)
      : services_(services),
        options_(std::move(options)),
        rates_(options_.max_rate),
        repeats_(*services_.answers) {
    if (!options_.memory) options_.memory = std::make_shared<MemoryBudget>("limits.memory_in_flight", 0);
    for (std::string& host : options_.allowed_hosts) host = http::to_lower(host);
    rules_ = {options_.allowed_hosts, options_.allowed_origins};
    const std::vector<RouteRow>& rows = all_routes();
    for (size_t i = 0; i < rows.size(); ++i) router_.add(rows[i].method, rows[i].path, static_cast<int>(i));
  }

  http::Lane lane(const http::Request& request, std::string_view body) const noexcept override {
    if (is_health(request.target)) return http::Lane::kReserved;
    const std::string name = inferred_deployment(request.target);
    const std::string direct = direct_inference(request, body);
    if (!direct.empty() && services_.deployments->is_quick(direct)) return http::Lane::kDirect;
    const uint64_t ordinary = name.empty() ? 0 : services_.deployments->largest_inputs(name);
    return is_bulk(request, body, ordinary) ? http::Lane::kBulk : http::Lane::kWorker;
  }

  http::Response handle(http::Request& request) noexcept override {
    const auto answered = std::make_shared<std::promise<http::Response>>();
    answer(request, [answered](http::Response response) { answered->set_value(std::move(response)); });
    return answered->get_future().get();
  }

  void answer(http::Request& request, const std::function<void(http::Response)>& respond) noexcept override {
    request.request_id = http::request_id_for(request.headers);
    request.client = http::client_address(request.headers, request.peer, options_.trusted_proxies,
                                          options_.forwarded_field);
    if (services_.keys != nullptr) {
      request.caller.clear();
      request.is_admin = false;
      request.scopes.clear();
    }
    request.memory = std::make_shared<MemoryShare>(options_.memory);
    std::string route;
    http::Response response = guarded(request, [&] { return dispatch(request, route); });
    const auto* later = std::get_if<http::LaterResponse>(&response.body);
    if (later == nullptr) return respond(complete(request, std::move(response), route));
    const auto made = [this, &request, route, respond](const http::MakeResponse& make) {
      respond(complete(request, guarded(request, make), route));
    };
    bool begun = false;
    http::Response failure = guarded(request, [&] {
      (*later)(made);
      begun = true;
      return http::Response();
    });
    if (!begun) respond(complete(request, std::move(failure), route));
  }

private:
  /// What every response has.
  http::Response complete(const http::Request& request, http::Response response, const std::string& route) {
    // Past here it is told to log and metrics as it is.
    if (request.take_stream && std::holds_alternative<std::shared_ptr<http::ResponseStream>>(response.body)) {
      response = guarded(request, [&] {
        request.take_stream();
        return std::move(response);
      });
    }
    if (const auto* bytes = std::get_if<std::string>(&response.body)) request.memory->add(bytes->size());
    http::encode_response(request.headers, response);
    http::add_cors(request, rules_, response);
    response.headers.set("X-Request-Id", request.request_id);
    response.headers.set("X-Content-Type-Options", "nosniff");
    if (!response.headers.has("Cache-Control") && !response.headers.has("ETag")) {
      response.headers.set("Cache-Control", "no-store");
    }
    if (options_.on_response) options_.on_response(request, response, route);
    return response;
  }

  /// The only place where exceptions become answers.
  template <typename Make>
  static http::Response guarded(const http::Request& request, const Make& make) {
    const http::Dialect dialect = http::dialect_of(request.target);
    const auto problem = [&](const Error& error) {
      return http::problem_response(error, request.request_id, dialect);
    };
    try {
      return make();
    } catch (const Error& error) {
      return problem(error);
    } catch (const std::bad_alloc&) {
      return problem(Error(ErrorCode::kMemoryBudget, "the request needs more memory than there is"));
    } catch (const std::exception& error) {
      return problem(Error(ErrorCode::kInternal, error.what()));
    }
  }

  http::Response dispatch(http::Request& request, std::string& route) {
    http::parse_target(request.target, request);
    // Probes come with the address of a container as Host.
    if (!is_health(request.target)) http::check_host(request, rules_);
    http::check_origin(request, rules_);
    http::Router::Match match = router_.match(request.method, request.segments);
    if (match.route < 0) return no_route(request, match);
    const RouteRow& row = all_routes()[static_cast<size_t>(match.route)];
    route = row.path;
    request.route = row.path;
    request.path_parameters = std::move(match.parameters);
    check_scope(request, row);
    const bool changes = row.method != "GET" && (row.scope == Scope::kWrite || row.scope == Scope::kAdmin ||
                                                 row.scope == Scope::kWorker);
    if (options_.read_only && changes) throw Error(ErrorCode::kForbidden, "this server is read-only");
    // Where nobody needs a key, a foreign page must not make a visitor's browser start work that costs.
    if (services_.keys == nullptr && costs(row)) http::check_sender(request, rules_);
    check_query(request, row);
    check_media_type(request, row.body);
    limit_body(request, row.body);
    const auto call = [&] {
      const std::vector<std::string> others = elsewhere(request, row);
      return others.empty() ? row.endpoint(context_, request) : options_.forward(request, others);
    };
    // PUT and DELETE may be repeated as they are; a job is made in one transaction with its key.
    const bool repeats = takes_idempotency_key(row) && row.endpoint != submit_job;
    const auto key = repeats ? idempotency_key(request) : std::nullopt;
    return key ? repeats_.answer(*key, request, call) : call();
  }

  /// Who answers what is about a deployment that is not loaded here; nobody where somebody has passed it on
  /// already.
  std::vector<std::string> elsewhere(const http::Request& request, const RouteRow& row) const {
    if (!options_.forward || request.headers.has(http::kPassedOn)) return {};
    const std::string_view parameter = deployment_parameter(row);
    const bool asks_package = row.scope == Scope::kInfer || row.path.starts_with("/v2/models/{model}");
    if (parameter.empty() || !asks_package) return {};
    return services_.deployments->elsewhere(request.path_parameter(parameter), v2_version_of(request));
  }

  static http::Response no_route(const http::Request& request, const http::Router::Match& match) {
    std::string allowed;
    for (const std::string& method : match.allowed) allowed += (allowed.empty() ? "" : ", ") + method;
    if (request.target == "*" && request.method == "OPTIONS")
      allowed = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (allowed.empty()) throw Error(ErrorCode::kNotFound, "there is no endpoint " + path);
    http::Response response = http::empty_response();
    if (request.method != "OPTIONS") {
      const Error error(ErrorCode::kMethodNotAllowed, path + " takes " + allowed + ", not " + request.method);
      response = http::problem_response(error, request.request_id, http::dialect_of(request.target));
    }
    response.headers.set("Allow", allowed);
    return response;
  }

  void check_scope(http::Request& request, const RouteRow& row) {
    if (services_.keys == nullptr || row.scope == Scope::kPublic) return;
    const std::string_view token = http::bearer_token(request.headers.get("Authorization").value_or(""));
    services::KeyService::Key key;
    if (!token.empty()) key = services_.keys->find(token);
    if (key.name.empty()) throw Error(ErrorCode::kUnauthorized, "this needs a valid API key as bearer token");
    if (key.is_expired) throw Error(ErrorCode::kUnauthorized, "the key " + key.name + " has expired");
    request.caller = key.name;
    request.is_admin = http::grants(key.scopes, scope_name(Scope::kAdmin));
    request.scopes = key.scopes;
    rates_.take(key.name, request.received);
    check_grant(request, row, key);
  }

  /// The scope itself, or one for the deployment that the request is about. Whether there is such a
  /// deployment is not looked at: a key for another one learns nothing.
  static void check_grant(http::Request& request, const RouteRow& row, const services::KeyService::Key& key) {
    const std::string scope(scope_name(row.scope));
    if (http::grants(key.scopes, scope)) return;
    const std::vector<std::string> names = http::granted_names(key.scopes, scope);
    // What a worker may do stands behind its scope's name; the service looks at each.
    if (row.scope == Scope::kWorker && !names.empty()) return;
    const std::string_view parameter = deployment_parameter(row);
    if (!parameter.empty() && http::matches_name(names, request.path_parameter(parameter))) return;
    if (!names.empty() && lists_deployments(row)) {
      request.only_names = names;
      return;
    }
    const std::string what =
        parameter.empty() ? "" : " for the deployment \"" + request.path_parameter(parameter) + "\"";
    throw Error(ErrorCode::kForbidden, "key " + key.name + " lacks the scope " + scope + what);
  }

  void limit_body(http::Request& request, BodyKind kind) const {
    switch (kind) {
      case BodyKind::kNone:
        request.body = std::make_shared<http::BytesBody>("");
        return;
      case BodyKind::kJson:
      case BodyKind::kControl:
        return limit_to(request, options_.max_json_bytes, "limits.json_bytes");
      case BodyKind::kModel:
        return limit_to(request, options_.max_model_bytes, "limits.model_bytes");
      case BodyKind::kTensors:
      case BodyKind::kInference:
        return limit_to(request, options_.max_tensor_bytes, "limits.tensor_bytes");
      case BodyKind::kRecords:
        return limit_to(request, options_.max_records_bytes, "limits.records_bytes");
      case BodyKind::kImage:
        return limit_to(request, options_.max_image_bytes, "limits.image_bytes");
    }
  }

  /// The limit holds for the bytes as they were sent and, where they are coded, for what they unfold to.
  static void limit_to(http::Request& request, uint64_t limit, std::string_view name) {
    request.body = std::make_shared<http::LimitedBody>(request.body, limit, name);
    const http::Coding coding = http::content_coding(request.headers);
    if (coding == http::Coding::kIdentity) return;
    request.body = std::make_shared<http::LimitedBody>(http::decoded_body(request.body, coding), limit, name);
  }

  services::Services services_;
  ApiOptions options_;
  http::AccessRules rules_;
  http::Router router_;
  http::RateLimiter rates_;
  Repeats repeats_;
  std::atomic<int> waiting_{0};
  SharedRegions regions_{options_.shared_memory_prefixes, options_.cuda_library};
  const Context context_{services_, options_, waiting_, regions_};
};

}  // namespace

std::unique_ptr<http::Handler> make_api(services::Services services, ApiOptions options) {
  return std::make_unique<Api>(services, std::move(options));
}

}  // namespace tensormill::endpoints
