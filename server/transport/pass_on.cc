#define _TURN_OFF_PLATFORM_STRING
#include "server/transport/pass_on.h"

#include <cpprest/http_client.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "api/http/tensor_body.h"
#include "runtime/base/error.h"

namespace tensormill::transport {
namespace {

using web::http::client::http_client;

/// Of one connection alone, or made anew for the next one.
bool is_of_connection(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames = {"connection",
                                                       "keep-alive",
                                                       "transfer-encoding",
                                                       "te",
                                                       "trailer",
                                                       "upgrade",
                                                       "expect",
                                                       "content-encoding",
                                                       "content-length",
                                                       "x-request-id",
                                                       "x-content-type-options"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view one) { return http::equals_ignoring_case(one, name); });
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

http::Response response_of(const web::http::http_response& answer, std::string body) {
  http::Response response;
  response.status = answer.status_code();
  for (const auto& [name, value] : answer.headers()) {
    if (!is_of_connection(name)) response.headers.set(name, value);
  }
  response.body = std::move(body);
  return response;
}

}  // namespace

void check_address(const std::string& setting, const std::string& url) {
  bool good = false;
  if (web::uri::validate(url)) {
    const web::uri parsed(url);
    const bool plain = parsed.scheme() == "http" && is_this_machine(parsed.host());
    good = (parsed.scheme() == "https" || plain) && !parsed.host().empty() && parsed.user_info().empty() &&
           parsed.path() == "/" && parsed.query().empty();
  }
  if (good) return;
  throw Error(ErrorCode::kUsage,
              setting + " " + url + ": expected https://HOST[:PORT]; http:// is for this machine alone");
}

/// One client for each process that was asked, which keeps its connections.
struct PassOn::Clients {
  explicit Clients(PassOnOptions with) : options(std::move(with)) {}

  std::shared_ptr<http_client> client(const std::string& url) {
    const std::lock_guard lock(mutex);
    if (const auto known = by_url.find(url); known != by_url.end()) return known->second;
    check_address("replica", url);
    web::http::client::http_client_config config;
    config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(options.timeout));
    config.set_max_redirects(0);
    if (!options.ca_file.empty()) {
      config.set_ssl_context_callback(
          [file = options.ca_file](boost::asio::ssl::context& context) { context.load_verify_file(file); });
    }
    return by_url[url] = std::make_shared<http_client>(web::uri(url), config);
  }

  const PassOnOptions options;
  std::atomic<size_t> turn{0};
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<http_client>> by_url;
};

namespace {

using Tell = std::function<void(const http::MakeResponse&)>;

/// One request, until its answer is told.
struct Passed : std::enable_shared_from_this<Passed> {
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> fields;
  std::vector<std::pair<std::string, std::shared_ptr<http_client>>> others;  ///< that are still to be asked
  Tell tell;

  void ask() {
    const auto [url, client] = others.back();
    others.pop_back();
    web::http::http_request request{web::http::method(method)};
    request.set_request_uri(web::uri(target));
    for (const auto& [name, value] : fields) request.headers().add(name, value);
    if (!body.empty()) {
      request.set_body(std::vector<unsigned char>(body.begin(), body.end()));
      for (const auto& [name, value] : fields) {
        if (http::equals_ignoring_case(name, "content-type")) request.headers().set_content_type(value);
      }
    }
    auto self = shared_from_this();
    auto answer = std::make_shared<web::http::http_response>();
    client->request(request)
        .then([answer](const web::http::http_response& found) {
          *answer = found;
          return found.extract_vector();
        })
        .then([self, url = url, answer](const pplx::task<std::vector<unsigned char>>& read) {
          self->end(url, *answer, read);
        });
  }

  void end(const std::string& url, const web::http::http_response& answer,
           const pplx::task<std::vector<unsigned char>>& read) {
    std::string why;
    std::optional<std::vector<unsigned char>> bytes;
    try {
      bytes = read.get();
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (bytes) {
      tell([&] { return response_of(answer, std::string(bytes->begin(), bytes->end())); });
      return;
    }
    if (!others.empty()) return ask();
    tell([&]() -> http::Response {
      throw Error(ErrorCode::kUnavailable,
                  "the replica " + url + " has the model and does not answer: " + why);
    });
  }
};

}  // namespace

PassOn::PassOn(PassOnOptions options) : clients_(std::make_shared<Clients>(std::move(options))) {}

PassOn::~PassOn() = default;

http::Response PassOn::answer(http::Request& request, const std::vector<std::string>& urls) {
  const auto passed = std::make_shared<Passed>();
  passed->method = request.method;
  passed->target = request.target;
  passed->body = http::read_all(*request.body, request.memory.get());
  for (const auto& [name, value] : request.headers.fields()) {
    if (!is_of_connection(name) && !http::equals_ignoring_case(name, "accept-encoding"))
      passed->fields.emplace_back(name, value);
  }
  passed->fields.emplace_back("X-Request-Id", request.request_id);
  passed->fields.emplace_back(http::kPassedOn, "1");
  const size_t first = clients_->turn.fetch_add(1);
  for (size_t i = 0; i < urls.size(); ++i) {
    const std::string& url = urls[(first + i) % urls.size()];
    passed->others.emplace_back(url, clients_->client(url));
  }
  http::Response response;
  response.body = http::LaterResponse([passed](Tell tell) {
    passed->tell = std::move(tell);
    passed->ask();
  });
  return response;
}

}  // namespace tensormill::transport
