#include "server/worker/server_link.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "api/http/problem.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/transport/http_client.h"

namespace tensormill::worker {
namespace {

using transport::HttpAnswer;
using transport::HttpClient;
using transport::HttpRequest;

constexpr size_t kMaxText = size_t{64} << 20;
/// Bytes of a refusal that are repeated.
constexpr size_t kMostWords = 2000;
/// Of tensors.
constexpr size_t kMaxBytes = size_t{16} << 30;
/// Without a byte. A poll is answered within half a minute.
constexpr std::chrono::seconds kQuick{15}, kPoll{60};

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

struct ServerLink::Http {
  explicit Http(const ServerLinkOptions& options)
      : key(options.key), quick(settings(options, kQuick)), poll(settings(options, kPoll)) {}

  static transport::HttpClientOptions settings(const ServerLinkOptions& options,
                                               std::chrono::seconds timeout) {
    return {.base = options.url, .timeout = timeout, .ca_file = options.ca_file, .pins = options.pins};
  }

  const std::string& url() const { return quick.base(); }

  HttpAnswer send(HttpClient& client, HttpRequest request, const std::string& path,
                  const std::stop_token& stop = {}) const {
    request.target = path;
    if (!key.empty()) request.fields.emplace_back("Authorization", "Bearer " + key);
    HttpAnswer answer = client.send(request, stop);
    check(answer, path);
    return answer;
  }

  /// Throws unless the answer is 2xx.
  void check(const HttpAnswer& answer, const std::string& path) const {
    const int status = answer.status();
    if (status / 100 == 2) return;
    std::string detail;
    std::vector<ErrorDetail> details;
    ErrorCode code = status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalidRequest;
    try {
      const Error told = http::error_of_problem(parse_json(answer.text(kMaxText)));
      // What is wrong with the server itself mends itself, or somebody mends it; a full disk is the job's
      // end.
      if (status < 500 || told.code() == ErrorCode::kDiskFull) code = told.code();
      detail = told.message().substr(0, kMostWords);
      details = told.details();
    } catch (const std::exception&) {
      // No problem of ours: a proxy's page.
      detail = "status " + std::to_string(status);
    }
    for (char& c : detail) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    throw Error(code, url() + path + ": " + detail, std::move(details));
  }

  const std::string key;
  HttpClient quick, poll;
};

namespace {

ServerLinkOptions checked(ServerLinkOptions options) {
  while (options.url.ends_with('/')) options.url.pop_back();
  const transport::Address url = transport::address_of(options.url);
  const bool plain = url.scheme == "http" && is_this_machine(url.host);
  if (url.scheme != "https" && !plain)
    throw Error(ErrorCode::kUsage, "--server " + options.url +
                                       ": expected https://HOST[:PORT]; http:// is for this machine alone");
  if (!url.user.empty() || url.host.empty() || url.target != "/")
    throw Error(ErrorCode::kUsage, "--server " + options.url + ": expected https://HOST[:PORT]");
  return options;
}

}  // namespace

ServerLink::ServerLink(ServerLinkOptions options)
    : http_(std::make_unique<Http>(checked(std::move(options)))) {}

ServerLink::~ServerLink() = default;

const std::string& ServerLink::url() const { return http_->url(); }

Json ServerLink::post(const std::string& path, const Json& body, Kind kind, const std::stop_token& stop) {
  const std::string text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const HttpAnswer answer =
      http_->send(kind == Kind::kPoll ? http_->poll : http_->quick,
                  {.method = "POST", .body = text, .content_type = "application/json"}, path, stop);
  if (answer.status() == 204) return {};
  return parse_json(answer.text(kMaxText), 128);
}

Json ServerLink::get(const std::string& path) {
  return parse_json(http_->send(http_->quick, {}, path).text(kMaxText), 128);
}

ServerLink::Bytes ServerLink::exchange(const std::string& path, std::string_view body,
                                       const std::string& accept) {
  const HttpAnswer answer = http_->send(http_->poll,
                                        {.method = "POST",
                                         .fields = {{"Accept", accept}},
                                         .body = body,
                                         .content_type = "application/octet-stream"},
                                        path);
  Bytes result;
  result.bytes = answer.text(kMaxBytes);
  const std::string times = answer.field("Server-Timing");
  const size_t at = times.find("compute;dur=");
  if (at != std::string::npos) result.runs_ms.push_back(std::atof(times.c_str() + at + 12));
  return result;
}

void ServerLink::get_file(const std::string& path, const std::string& file, uint64_t max_bytes,
                          const std::function<void()>& alive) {
  const HttpAnswer answer = http_->send(http_->poll, {}, path);
  const FileDescriptor into(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!into.valid()) throw_errno(errno, "cannot make " + file);
  uint64_t size = 0;
  answer.read([&](std::string_view part) {
    size += part.size();
    if (size > max_bytes)
      throw Error(ErrorCode::kTooLarge,
                  url() + path + " has more than " + std::to_string(max_bytes) + " bytes");
    write_all(into.get(), part, file);
    alive();
  });
}

void ServerLink::post_file(const std::string& path, int fd, uint64_t size, const std::stop_token& stop) {
  const auto mapped = MappedFile::map(fd, "the end of a lease");
  TM_CHECK(mapped->bytes().size() == size, "a file of another size");
  const std::string_view body(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  http_->send(http_->poll, {.method = "POST", .body = body, .content_type = "application/octet-stream"}, path,
              stop);
}

}  // namespace tensormill::worker
