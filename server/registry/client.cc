#define _TURN_OFF_PLATFORM_STRING
#include "server/registry/client.h"

#include <cpprest/http_client.h>
#include <cpprest/rawptrstream.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/registry/artifact.h"
#include "server/registry/response_body.h"

namespace tensormill::registry {
namespace {

using web::http::http_request;
using web::http::http_response;
using web::http::methods;

constexpr size_t kMaxText = size_t{4} << 20;
constexpr std::chrono::seconds kTimeout{300};

/// `realm="https://auth/token",service="x"` of a challenge: the value, or "".
std::string parameter_of(const std::string& challenge, const std::string& name) {
  const size_t at = challenge.find(name + "=\"");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return challenge.substr(begin, challenge.find('"', begin) - begin);
}

std::string from_base64(const std::string& text) {
  try {
    const std::vector<unsigned char> bytes = utility::conversions::from_base64(text);
    return {bytes.begin(), bytes.end()};
  } catch (const std::exception&) {
    throw Error(ErrorCode::kUsage, "the login in Docker's config.json is no base64");
  }
}

}  // namespace

Login login_of(const std::string& config_json, const std::string& host) {
  const Json config = parse_json(config_json);
  const auto auths = config.is_object() ? config.find("auths") : config.end();
  if (auths == config.end() || !auths->is_object() || !auths->contains(host)) return {};
  const Json& entry = (*auths)[host];
  if (!entry.is_object() || !entry.contains("auth") || !entry["auth"].is_string()) return {};
  const std::string both = from_base64(entry["auth"].get<std::string>());
  const size_t colon = both.find(':');
  if (colon == std::string::npos)
    throw Error(ErrorCode::kUsage, "the login for " + host + " in Docker's config.json has no password");
  return {both.substr(0, colon), both.substr(colon + 1)};
}

/// One host's requests, and what proves who asks.
struct Client::Http {
  Http(const Reference& reference, Login with) : base(url_of(reference)), login(std::move(with)) {}

  static web::http::client::http_client_config settings() {
    web::http::client::http_client_config config;
    config.set_timeout(kTimeout);
    return config;
  }

  std::string basic() const {
    const std::string both = login.user + ":" + login.password;
    return "Basic " + utility::conversions::to_base64(std::vector<unsigned char>(both.begin(), both.end()));
  }

  /// `make` is called again where the first answer asks for a login.
  http_response send(const std::function<http_request()>& make) {
    try {
      http_response response = send_once(make());
      if (response.status_code() != 401 || !log_in(response)) return response;
      return send_once(make());
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kUnavailable, base + " does not answer: " + error.what());
    }
  }

  http_response send_once(http_request request) {
    if (!authorization.empty()) request.headers().add("Authorization", authorization);
    // A Location may lead to another host, which must not get the login.
    const web::uri target = request.request_uri();
    web::uri host(base);
    if (!target.scheme().empty()) {
      const web::uri authority = target.authority();
      if (authority.to_string() != host.authority().to_string()) {
        if (target.scheme() != "https")
          throw Error(ErrorCode::kUnavailable, base + " leads to " + authority.to_string() + " without TLS");
        request.headers().remove("Authorization");
      }
      host = authority;
      request.set_request_uri(target.resource());
    }
    web::http::client::http_client client(host, settings());
    return client.request(request).get();
  }

  /// True when there is an answer to the challenge that was not given before.
  bool log_in(const http_response& response) {
    const auto field = response.headers().find("WWW-Authenticate");
    if (field == response.headers().end() || !authorization.empty()) return false;
    const std::string challenge = field->second;
    if (challenge.starts_with("Basic")) {
      if (login.user.empty()) return false;
      authorization = basic();
      return true;
    }
    if (!challenge.starts_with("Bearer")) return false;
    authorization = "Bearer " + token_of(challenge);
    return true;
  }

  std::string token_of(const std::string& challenge) {
    const std::string realm = parameter_of(challenge, "realm");
    if (!realm.starts_with("https://") && !realm.starts_with(base + "/"))
      throw Error(ErrorCode::kUnauthorized, base + " names a token service without TLS");
    web::uri_builder query{web::uri(realm)};
    query.append_query("service", parameter_of(challenge, "service"));
    query.append_query("scope", parameter_of(challenge, "scope"));
    http_request request(methods::GET);
    request.set_request_uri(query.to_uri().resource());
    if (!login.user.empty()) request.headers().add("Authorization", basic());
    web::http::client::http_client client(web::uri(realm).authority(), settings());
    const http_response response = client.request(request).get();
    if (response.status_code() != 200)
      throw Error(ErrorCode::kUnauthorized, "the token service of " + base + " gives no token");
    const Json answer = parse_json(text_of(response));
    for (const char* name : {"token", "access_token"}) {
      if (answer.is_object() && answer.contains(name) && answer[name].is_string())
        return answer[name].get<std::string>();
    }
    throw Error(ErrorCode::kUnauthorized, "the token service of " + base + " gives no token");
  }

  static std::string text_of(const http_response& response) {
    std::string text;
    read_body(response, [&](std::string_view bytes) {
      if (text.size() + bytes.size() > kMaxText)
        throw Error(ErrorCode::kTooLarge, "an answer of the registry has more than 4 MiB");
      text += bytes;
    });
    return text;
  }

  [[noreturn]] void refuse(const http_response& response, const std::string& what) const {
    const int status = response.status_code();
    const ErrorCode code = status == 404                    ? ErrorCode::kNotFound
                           : status == 401 || status == 403 ? ErrorCode::kUnauthorized
                                                            : ErrorCode::kUnavailable;
    std::string why = text_of(response).substr(0, 300);
    for (char& c : why) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    throw Error(code, base + " answers " + std::to_string(status) + " to " + what + ": " + why);
  }

  const std::string base;
  const Login login;
  std::string authorization;
};

Client::Client(const Reference& reference, Login login)
    : reference_(reference), http_(std::make_unique<Http>(reference_, std::move(login))) {}

Client::~Client() = default;

bool Client::has_blob(const Digest& digest) {
  const http_response response = http_->send([&] {
    http_request request(methods::HEAD);
    request.set_request_uri("/v2/" + reference_.repository + "/blobs/" + digest.text());
    return request;
  });
  if (response.status_code() == 200) return true;
  if (response.status_code() == 404) return false;
  http_->refuse(response, "HEAD of a blob");
}

void Client::put_blob(const Digest& digest, std::string_view bytes) {
  if (has_blob(digest)) return;
  const http_response begun = http_->send([&] {
    http_request request(methods::POST);
    request.set_request_uri("/v2/" + reference_.repository + "/blobs/uploads/");
    return request;
  });
  const auto location = begun.headers().find("Location");
  if (begun.status_code() != 202 || location == begun.headers().end()) http_->refuse(begun, "an upload");
  web::uri_builder target{web::uri(location->second)};
  target.append_query("digest", digest.text());
  const http_response done = http_->send([&] {
    http_request request(methods::PUT);
    request.set_request_uri(target.to_uri());
    request.set_body(concurrency::streams::rawptr_stream<uint8_t>::open_istream(
                         reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
                     bytes.size(), "application/octet-stream");
    return request;
  });
  if (done.status_code() != 201) http_->refuse(done, "PUT of a blob");
}

void Client::get_blob(const Digest& digest, uint64_t bytes, const std::string& path) {
  const std::string what = "blob " + digest.text();
  http_response response = http_->send([&] {
    http_request request(methods::GET);
    request.set_request_uri("/v2/" + reference_.repository + "/blobs/" + digest.text());
    return request;
  });
  for (int redirects = 0; response.status_code() / 100 == 3 && redirects < 5; ++redirects) {
    const auto location = response.headers().find("Location");
    if (location == response.headers().end()) break;
    const web::uri target(location->second);
    response = http_->send([&] {
      http_request request(methods::GET);
      request.set_request_uri(target);
      return request;
    });
  }
  if (response.status_code() != 200) http_->refuse(response, "GET of " + what);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(errno, "cannot make " + path);
  try {
    Hasher hasher;
    uint64_t size = 0;
    read_body(response, [&](std::string_view part) {
      size += part.size();
      if (size > bytes)
        throw Error(ErrorCode::kDigestMismatch, what + " has more bytes than its manifest says");
      hasher.update(part);
      write_all(file.get(), part, path);
    });
    const Digest actual = hasher.finish();
    if (actual != digest)
      throw Error(ErrorCode::kDigestMismatch, what + " came as bytes of digest " + actual.text());
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  } catch (const std::exception& error) {
    ::unlink(path.c_str());
    throw Error(ErrorCode::kUnavailable, what + " came in part: " + error.what());
  }
}

void Client::put_manifest(const std::string& version, const std::string& text) {
  const http_response response = http_->send([&] {
    http_request request(methods::PUT);
    request.set_request_uri("/v2/" + reference_.repository + "/manifests/" + version);
    request.set_body(text, kManifestType);
    request.headers().set_content_type(kManifestType);
    return request;
  });
  if (response.status_code() != 201) http_->refuse(response, "PUT of the manifest");
}

std::string Client::get_manifest(const std::string& version) {
  const http_response response = http_->send([&] {
    http_request request(methods::GET);
    request.set_request_uri("/v2/" + reference_.repository + "/manifests/" + version);
    request.headers().add("Accept", kManifestType);
    return request;
  });
  if (response.status_code() != 200) http_->refuse(response, "GET of the manifest " + version);
  std::string text = Http::text_of(response);
  if (reference_.is_digest() && Digest::of(text).text() != version)
    throw Error(ErrorCode::kDigestMismatch,
                "the manifest came as bytes of digest " + Digest::of(text).text());
  return text;
}

}  // namespace tensormill::registry
