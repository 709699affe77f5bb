/// Requests and responses as values: what stands between the transport, which knows sockets, and the
/// endpoints, which do not.
/// Thread-safety: values; a Request and its body belong to the thread that handles it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/http/body.h"
#include "api/http/headers.h"
#include "runtime/base/memory_budget.h"

namespace tensormill::http {

struct Request {
  std::string method;
  std::string target;                                               ///< as sent: "/v1/models?limit=2"
  std::vector<std::string> segments;                                ///< of the path, percent-decoded
  std::vector<std::pair<std::string, std::string>> query;           ///< percent-decoded, in order
  std::map<std::string, std::string, std::less<>> path_parameters;  ///< filled by the router
  Headers headers;
  std::shared_ptr<BodySource> body;  ///< never null in a handler; empty when there is none
  /// What the request has of the memory of all requests in flight, until its answer is out. Set by the
  /// dispatcher, never null in an endpoint.
  std::shared_ptr<MemoryShare> memory;
  std::string request_id;
  std::string route;             ///< path of the row that answers, set by the dispatcher; "" where none does
  std::string caller = "local";  ///< name of the key that was shown; "" where one is needed and none was
  bool is_admin = true;          ///< the key has the scope admin, or none is needed
  std::vector<std::string> scopes = {"admin"};  ///< of the key, or where none is needed
  /// The deployments that the key may see here: patterns of scopes.h; empty: all.
  std::vector<std::string> only_names;
  std::string peer;    ///< "127.0.0.1:40312", for the log
  std::string client;  ///< address of who is behind trusted proxies, else the peer's; set by the dispatcher
  bool peer_is_loopback = true;
  std::stop_token cancelled;  ///< stops when the client has gone
  /// Set where the handler runs on a thread that reads requests: as services::CallContext::later.
  std::function<void(std::function<void()>)> later;
  /// Set by a transport that bounds live responses: takes a place for this request's, or throws
  /// Error(kUnavailable). Asked once, before such a response is given to it.
  std::function<void()> take_stream;
  /// Set by a transport that can: from here on, a client that sends no more counts as gone at once. For
  /// answers that must not be made for nobody.
  std::function<void()> ends_with_client;
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();

  /// The value of a query parameter, of which there is one at most (the dispatcher refuses repeats).
  std::optional<std::string_view> query_value(std::string_view name) const;
  /// True for "1" and "true", false for "0" and "false" and when absent; Error(kInvalidRequest) otherwise.
  bool query_flag(std::string_view name) const;
  /// A whole number within [low, high]; Error(kInvalidRequest) naming both limits otherwise.
  int64_t query_int(std::string_view name, int64_t fallback, int64_t low, int64_t high) const;
  /// A path parameter that the route has.
  const std::string& path_parameter(std::string_view name) const;
  /// Media type of the body without parameters, lower case; "" when there is none.
  std::string content_type() const;
  /// Whether the Accept header prefers `wanted` to `other` (types such as "application/json").
  bool accepts(std::string_view wanted, std::string_view other) const;
};

/// Content or a part of it.
struct ContentBody {
  std::shared_ptr<Content> content;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct Response;
/// Makes a response, or throws as an endpoint does.
using MakeResponse = std::function<Response()>;
/// A response that is not there yet. To be called once, with what takes a function that makes it, and calls
/// that: on any thread, before the call returns already. Throws as an endpoint does; then nothing is called.
using LaterResponse = std::function<void(std::function<void(const MakeResponse&)>)>;

struct Response {
  int status = 200;
  Headers headers;
  /// A LaterResponse stands for the whole response, and is met between endpoint and dispatcher alone.
  std::variant<std::string, ContentBody, std::shared_ptr<ResponseStream>, LaterResponse> body;
  /// Told once when the response could not be sent because the client has gone, which one that sends no more
  /// has, too. On any thread; must not throw or wait. A client may go without this when it has got the answer
  /// as far as anybody here can know.
  std::function<void()> undelivered = {};

  /// Length of the body; nothing for a stream.
  std::optional<uint64_t> content_length() const;
};

/// 200 with `text` (JSON that is printed already) as application/json, or another status.
Response json_response(std::string text, int status = 200);
Response text_response(std::string text, std::string_view content_type = "text/plain; charset=utf-8");
/// 204
Response empty_response(int status = 204);

/// "OK", "Not Found"; "Status" for one that is not known.
std::string_view reason_phrase(int status);

}  // namespace tensormill::http
