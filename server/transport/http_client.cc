#define _TURN_OFF_PLATFORM_STRING
#include "server/transport/http_client.h"

#include <cpprest/http_client.h>
#include <cpprest/rawptrstream.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::transport {
namespace {

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

web::uri parsed(const std::string& text) {
  try {
    return web::uri(text);
  } catch (const web::uri_exception& error) {
    throw Error(ErrorCode::kUsage, text + ": " + error.what());
  }
}

}  // namespace

Address address_of(const std::string& text) {
  const web::uri uri = parsed(text);
  std::string base = uri.scheme().empty() ? "" : uri.authority().to_string();
  if (base.ends_with('/')) base.pop_back();
  return {.base = base,
          .scheme = uri.scheme(),
          .user = uri.user_info(),
          .host = uri.host(),
          .path = uri.path(),
          .target = uri.resource().to_string()};
}

std::string with_parameter(const std::string& address, const std::string& name, const std::string& value) {
  return web::uri_builder(parsed(address)).append_query(name, value).to_string();
}

struct HttpAnswer::Response {
  web::http::http_response response;
};

int HttpAnswer::status() const { return response_->response.status_code(); }

std::string HttpAnswer::field(const std::string& name) const {
  const auto found = response_->response.headers().find(name);
  return found == response_->response.headers().end() ? "" : found->second;
}

void HttpAnswer::read(const std::function<void(std::string_view)>& take) const {
  constexpr size_t kPart = size_t{1} << 20;
  concurrency::streams::istream body = response_->response.body();
  std::string part(kPart, '\0');
  for (;;) {
    concurrency::streams::rawptr_buffer<uint8_t> buffer(reinterpret_cast<uint8_t*>(part.data()), part.size(),
                                                        std::ios::out);
    size_t size = 0;
    try {
      size = body.read(buffer, part.size()).get();
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kUnavailable, base_ + " answered in part: " + error.what());
    }
    if (size == 0) return;
    take(std::string_view(part).substr(0, size));
  }
}

std::string HttpAnswer::text(size_t most) const {
  std::string text;
  read([&](std::string_view bytes) {
    if (text.size() + bytes.size() > most)
      throw Error(ErrorCode::kTooLarge,
                  "an answer of " + base_ + " has more than " + std::to_string(most >> 20) + " MiB");
    text += bytes;
  });
  return text;
}

struct HttpClient::Http {
  explicit Http(HttpClientOptions with) : options(std::move(with)), client(parsed(options.base), config()) {}

  web::http::client::http_client_config config() {
    web::http::client::http_client_config config;
    config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(options.timeout));
    config.set_max_redirects(0);
    config.set_validate_certificates(options.checks_certificate);
    if (options.ca_file.empty() && options.pins.empty()) return config;
    config.set_ssl_context_callback([this](boost::asio::ssl::context& context) {
      if (!options.ca_file.empty()) context.load_verify_file(options.ca_file);
      if (!options.pins.empty())
        ::SSL_CTX_set_cert_verify_callback(context.native_handle(), &verify_pin, &options.pins);
    });
    return config;
  }

  HttpClientOptions options;
  web::http::client::http_client client;
};

namespace {

HttpClientOptions checked(HttpClientOptions options) {
  const std::string scheme = address_of(options.base).scheme;
  if (scheme != "http" && scheme != "https")
    throw Error(ErrorCode::kUsage, "\"" + options.base + "\" is no http or https address");
  return options;
}

}  // namespace

HttpClient::HttpClient(HttpClientOptions options)
    : http_(std::make_unique<Http>(checked(std::move(options)))) {}

HttpClient::~HttpClient() = default;

const std::string& HttpClient::base() const { return http_->options.base; }

HttpAnswer HttpClient::send(const HttpRequest& request, const std::stop_token& stop) {
  web::http::http_request asked(request.method);
  asked.set_request_uri(parsed(request.target));
  for (const auto& [name, value] : request.fields) asked.headers().add(name, value);
  if (!request.content_type.empty())
    asked.set_body(concurrency::streams::rawptr_stream<uint8_t>::open_istream(
                       reinterpret_cast<const uint8_t*>(request.body.data()), request.body.size()),
                   request.body.size(), request.content_type);
  pplx::cancellation_token_source cancel;
  const std::stop_callback on_stop(stop, [&cancel] { cancel.cancel(); });
  HttpAnswer answer;
  answer.base_ = base();
  try {
    answer.response_ = std::make_shared<const HttpAnswer::Response>(
        HttpAnswer::Response{http_->client.request(asked, cancel.get_token()).get()});
  } catch (const std::exception& error) {
    if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the request was given up");
    throw Error(ErrorCode::kUnavailable, base() + " does not answer: " + error.what());
  }
  return answer;
}

}  // namespace tensormill::transport
