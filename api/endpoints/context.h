/// What every endpoint gets, the rows of routes.def, and the declarations of all endpoints.
/// Thread-safety: immutable but for `waiting` and `regions`.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/endpoints/api.h"
#include "api/endpoints/shared_regions.h"
#include "api/http/message.h"
#include "api/services/services.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::endpoints {

enum class Scope { kPublic, kInfer, kRead, kWrite, kAdmin, kWorker };

/// "infer"; "" for kPublic.
std::string_view scope_name(Scope scope);

/// What a request may carry: decides the limit (named as in /v1/info) and the media types.
enum class BodyKind {
  kNone,       ///< a body is left unread
  kJson,       ///< application/json
  kModel,      ///< any binary type
  kTensors,    ///< application/x-npz; may be empty
  kImage,      ///< JPEG or PNG
  kRecords,    ///< tuning records: JSON lines
  kInference,  ///< KServe v2: JSON, with or without binary tensors behind it
  kControl,    ///< KServe v2: JSON that may be absent, of any type
};

struct Context {
  const services::Services& services;
  const ApiOptions& options;
  std::atomic<int>& waiting;  ///< requests that wait for a job's end now
  SharedRegions& regions;
};

/// A JSON body of /v1, and memory for what is made of it: a parsed value takes up to some thirty times its
/// text.
std::string json_body(http::Request& request);

using Endpoint = http::Response (*)(const Context&, http::Request&);

/// One row of routes.def.
struct RouteRow {
  Endpoint endpoint;
  std::string_view name;
  std::string_view method;
  std::string_view path;
  Scope scope;
  BodyKind body;
  std::vector<std::string_view> query;
  std::string_view request;               ///< schema of a JSON body; may be ""
  std::vector<std::string_view> answers;  ///< as routes.def says
  std::string_view summary;
};

const std::vector<RouteRow>& all_routes();
/// Whether it is a POST that may change something and whose answer may be stored.
bool takes_idempotency_key(const RouteRow& row);
/// The path parameter that names the deployment which a route is about; "" when it is about something else.
std::string_view deployment_parameter(const RouteRow& row);
/// Whether the route lists deployments, of which Request::only_names says which a key may see.
bool lists_deployments(const RouteRow& row);

#define TM_ROUTE(function, method, path, scope, body, query, request, answers, summary) \
  http::Response function(const Context&, http::Request&);
#include "api/endpoints/routes.def"
#undef TM_ROUTE

/// KServe v2: a deployment as a model. Throws Error(kNotFound) in the words that its clients look for.
services::Deployment get_v2_deployment(const Context& context, const std::string& name);
/// KServe v2: the version that the path names; "": the default one.
std::string v2_version_of(const http::Request& request);
/// That version of a deployment, or the default one for ""; null when it is not there.
const services::DeploymentVersion* find_v2_version(const services::Deployment& model,
                                                   const std::string& version);

/// KServe v2: the object of a body that may be empty. Throws Error(kInvalidJson) or Error(kInvalidArgument).
Json v2_control_body(http::Request& request);

/// The deployments of a page, of those that the request's key may see; the cursor names none of the others.
services::Page<services::Deployment> list_visible_deployments(services::DeploymentService& deployments,
                                                              services::PageQuery page,
                                                              const http::Request& request);

/// A response that `print` makes of what `start` tells the Done that it is given. `start` and `print` may
/// refer to the context and the request, which live until the response is made.
template <typename Result, typename Start, typename Print>
http::Response later(Start start, Print print) {
  http::Response response;
  response.body =
      http::LaterResponse([start = std::move(start), print = std::move(print)](const auto& tell) mutable {
        start(services::Done<Result>([tell, print](services::Outcome<Result> outcome) {
          tell([&] { return print(outcome.take()); });
        }));
      });
  return response;
}

/// Who asks, for the services.
services::CallContext call_context(const http::Request& request);
/// The caller's Idempotency-Key, 1 to 128 characters. Throws Error(kInvalidRequest) for another length.
std::optional<std::string> idempotency_key(const http::Request& request);
/// limit and cursor. Throws Error(kInvalidRequest).
services::PageQuery page_query(const http::Request& request);
/// A page as 200 with a Link field to the next one.
http::Response page_response(const http::Request& request, const std::string& json,
                             const std::string& next_cursor);

}  // namespace tensormill::endpoints
