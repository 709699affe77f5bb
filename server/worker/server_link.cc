#define _TURN_OFF_PLATFORM_STRING
#include "server/worker/server_link.h"

#include <cpprest/http_client.h>
#include <cpprest/rawptrstream.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/registry/response_body.h"

namespace tensormill::worker {
namespace {

using web::http::http_request;
using web::http::http_response;
using web::http::methods;
using web::http::client::http_client;

constexpr size_t kMaxText = size_t{64} << 20;
/// Of tensors.
constexpr size_t kMaxBytes = size_t{16} << 30;
/// Without a byte. A poll is answered within half a minute.
constexpr std::chrono::seconds kQuick{15}, kPoll{60};

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

/// Whether the certificate has a key of this digest.
bool has_key(X509* certificate, const std::vector<Digest>& pins) {
  unsigned char* raw = nullptr;
  const int size = ::i2d_X509_PUBKEY(::X509_get_X509_PUBKEY(certificate), &raw);
  if (size <= 0) return false;
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(
      raw, [](unsigned char* bytes) { OPENSSL_free(bytes); });
  const Digest key =
      Digest::of(std::string_view(reinterpret_cast<const char*>(raw), static_cast<size_t>(size)));
  return std::find(pins.begin(), pins.end(), key) != pins.end();
}

/// In the place of all other checks: a pinned key is the server, whatever its name and whoever signed it.
int verify_pin(X509_STORE_CTX* store, void* pins) {
  X509* certificate = ::X509_STORE_CTX_get0_cert(store);
  const bool good = certificate != nullptr && has_key(certificate, *static_cast<std::vector<Digest>*>(pins));
  if (!good) ::X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED);
  return good ? 1 : 0;
}

}  // namespace

struct ServerLink::Http {
  explicit Http(ServerLinkOptions with)
      : options(std::move(with)), quick(options.url, settings(kQuick)), poll(options.url, settings(kPoll)) {}

  web::http::client::http_client_config settings(std::chrono::seconds timeout) {
    web::http::client::http_client_config config;
    config.set_timeout(timeout);
    // Where the key goes, the command line says.
    config.set_max_redirects(0);
    if (options.url.starts_with("https:")) {
      config.set_ssl_context_callback([this](boost::asio::ssl::context& context) {
        if (!options.ca_file.empty()) context.load_verify_file(options.ca_file);
        if (!options.pins.empty())
          ::SSL_CTX_set_cert_verify_callback(context.native_handle(), &verify_pin, &options.pins);
      });
    }
    return config;
  }

  http_response send(http_client& client, http_request request, const std::stop_token& stop) {
    if (!options.key.empty()) request.headers().add("Authorization", "Bearer " + options.key);
    pplx::cancellation_token_source cancel;
    const std::stop_callback on_stop(stop, [&cancel] { cancel.cancel(); });
    try {
      return client.request(request, cancel.get_token()).get();
    } catch (const std::exception& error) {
      if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the request was given up");
      throw Error(ErrorCode::kUnavailable, options.url + " does not answer: " + error.what());
    }
  }

  std::string text_of(const http_response& response, size_t limit = kMaxText) const {
    std::string text;
    try {
      registry::read_body(response, [&](std::string_view bytes) {
        if (text.size() + bytes.size() > limit)
          throw Error(ErrorCode::kTooLarge,
                      "an answer of " + options.url + " has more than " + std::to_string(limit) + " bytes");
        text += bytes;
      });
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kUnavailable, options.url + " answered in part: " + error.what());
    }
    return text;
  }

  /// Throws unless the answer is 2xx.
  void check(const http_response& response, const std::string& path) const {
    const int status = response.status_code();
    if (status / 100 == 2) return;
    std::string detail = text_of(response).substr(0, 2000);
    ErrorCode code = status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInvalidRequest;
    try {
      const Json problem = parse_json(detail);
      const std::string name = problem.at("code").get<std::string>();
      // What is wrong with the server itself mends itself, or somebody mends it; a full disk is the job's
      // end.
      if (status < 500 || name == "disk_full") code = error_code_from_name(name);
      detail = problem.at("detail").get<std::string>();
    } catch (const std::exception&) {
      // No problem of ours: a proxy's page.
      detail = "status " + std::to_string(status);
    }
    for (char& c : detail) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    throw Error(code, options.url + path + ": " + detail);
  }

  ServerLinkOptions options;
  http_client quick, poll;
};

namespace {

ServerLinkOptions checked(ServerLinkOptions options) {
  while (options.url.ends_with('/')) options.url.pop_back();
  try {
    const web::uri url(options.url);
    const bool plain = url.scheme() == "http" && is_this_machine(url.host());
    if (url.scheme() != "https" && !plain)
      throw Error(ErrorCode::kUsage, "--server " + options.url +
                                         ": expected https://HOST[:PORT]; http:// is for this machine alone");
    if (!url.user_info().empty() || url.host().empty() || url.path() != "/" || !url.query().empty())
      throw Error(ErrorCode::kUsage, "--server " + options.url + ": expected https://HOST[:PORT]");
  } catch (const web::uri_exception& error) {
    throw Error(ErrorCode::kUsage, "--server " + options.url + ": " + error.what());
  }
  return options;
}

}  // namespace

ServerLink::ServerLink(ServerLinkOptions options)
    : http_(std::make_unique<Http>(checked(std::move(options)))) {}

ServerLink::~ServerLink() = default;

const std::string& ServerLink::url() const { return http_->options.url; }

Json ServerLink::post(const std::string& path, const Json& body, Kind kind, const std::stop_token& stop) {
  http_request request(methods::POST);
  request.set_request_uri(path);
  request.set_body(body.dump(-1, ' ', false, Json::error_handler_t::replace), "application/json");
  const http_response response = http_->send(kind == Kind::kPoll ? http_->poll : http_->quick, request, stop);
  http_->check(response, path);
  if (response.status_code() == web::http::status_codes::NoContent) return {};
  return parse_json(http_->text_of(response), 128);
}

Json ServerLink::get(const std::string& path) {
  http_request request(methods::GET);
  request.set_request_uri(path);
  const http_response response = http_->send(http_->quick, request, {});
  http_->check(response, path);
  return parse_json(http_->text_of(response), 128);
}

ServerLink::Bytes ServerLink::exchange(const std::string& path, std::string_view body,
                                       const std::string& accept) {
  http_request request(methods::POST);
  request.set_request_uri(path);
  request.headers().add("Accept", accept);
  request.set_body(concurrency::streams::rawptr_stream<uint8_t>::open_istream(
                       reinterpret_cast<const uint8_t*>(body.data()), body.size()),
                   body.size(), "application/octet-stream");
  const http_response response = http_->send(http_->poll, request, {});
  http_->check(response, path);
  Bytes answer;
  answer.bytes = http_->text_of(response, kMaxBytes);
  const auto times = response.headers().find("Server-Timing");
  const std::string text = times == response.headers().end() ? "" : times->second;
  const size_t at = text.find("compute;dur=");
  if (at != std::string::npos) answer.runs_ms.push_back(std::atof(text.c_str() + at + 12));
  return answer;
}

void ServerLink::get_file(const std::string& path, const std::string& file, uint64_t max_bytes,
                          const std::function<void()>& alive) {
  http_request request(methods::GET);
  request.set_request_uri(path);
  const http_response response = http_->send(http_->poll, request, {});
  http_->check(response, path);
  const FileDescriptor into(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!into.valid()) throw_errno(errno, "cannot make " + file);
  uint64_t size = 0;
  try {
    registry::read_body(response, [&](std::string_view part) {
      size += part.size();
      if (size > max_bytes)
        throw Error(ErrorCode::kTooLarge,
                    http_->options.url + path + " has more than " + std::to_string(max_bytes) + " bytes");
      write_all(into.get(), part, file);
      alive();
    });
  } catch (const web::http::http_exception& error) {
    throw Error(ErrorCode::kUnavailable, http_->options.url + path + " came in part: " + error.what());
  }
}

void ServerLink::post_file(const std::string& path, int fd, uint64_t size, const std::stop_token& stop) {
  const auto mapped = MappedFile::map(fd, "the end of a lease");
  TM_CHECK(mapped->bytes().size() == size, "a file of another size");
  http_request request(methods::POST);
  request.set_request_uri(path);
  request.set_body(concurrency::streams::rawptr_stream<uint8_t>::open_istream(
                       reinterpret_cast<const uint8_t*>(mapped->bytes().data()), mapped->bytes().size()),
                   mapped->bytes().size(), "application/octet-stream");
  http_->check(http_->send(http_->poll, request, stop), path);
}

}  // namespace tensormill::worker
