#include "server/registry/client.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/registry/artifact.h"
#include "server/transport/http_client.h"

namespace tensormill::registry {
namespace {

using transport::Address;
using transport::HttpAnswer;
using transport::HttpClient;
using transport::HttpRequest;
using transport::with_parameter;

constexpr size_t kMaxText = size_t{4} << 20;
constexpr std::chrono::seconds kTimeout{300};

/// `realm="https://auth/token",service="x"` of a challenge: the value, or "".
std::string parameter_of(const std::string& challenge, const std::string& name) {
  const size_t at = challenge.find(name + "=\"");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return challenge.substr(begin, challenge.find('"', begin) - begin);
}

unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

const unsigned char* raw(const std::string& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

std::string from_base64(const std::string& text) {
  std::string bytes(text.size(), '\0');
  const int size = ::EVP_DecodeBlock(raw(bytes), raw(text), static_cast<int>(text.size()));
  if (size < 0) throw Error(ErrorCode::kUsage, "the login in Docker's config.json is no base64");
  // What the letters "=" stand for comes out as zeros.
  const size_t filled = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes.resize(static_cast<size_t>(size) - filled);
  return bytes;
}

std::string to_base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  text.resize(static_cast<size_t>(::EVP_EncodeBlock(raw(text), raw(bytes), static_cast<int>(bytes.size()))));
  return text;
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

  std::string basic() const { return "Basic " + to_base64(login.user + ":" + login.password); }

  /// The answer, after a login where one is asked for, and at the end of redirects, which a body is not sent
  /// after.
  HttpAnswer send(const HttpRequest& request) {
    HttpAnswer answer = send_once(request);
    if (answer.status() == 401 && log_in(answer)) answer = send_once(request);
    HttpRequest next = request;
    for (int redirects = 0; answer.status() / 100 == 3 && request.content_type.empty() && redirects < 5;
         ++redirects) {
      const std::string location = answer.field("Location");
      if (location.empty()) break;
      next.target = location;
      answer = send_once(next);
    }
    return answer;
  }

  /// An address that an answer named.
  Address address_from_host(const std::string& text) const {
    try {
      return transport::address_of(text);
    } catch (const Error& error) {
      throw Error(ErrorCode::kUnavailable, base + " names an address that is none: " + error.what());
    }
  }

  /// The target is a path of this host, or any address: an answer may lead to another host, which must not
  /// get the login.
  HttpAnswer send_once(HttpRequest request) {
    const Address target = address_from_host(request.target);
    request.target = target.target;
    if (!target.base.empty() && target.base != transport::address_of(base).base) {
      if (target.scheme != "https")
        throw Error(ErrorCode::kUnavailable, base + " leads to " + target.base + " without TLS");
      return HttpClient({.base = target.base, .timeout = kTimeout}).send(request);
    }
    if (!authorization.empty()) request.fields.emplace_back("Authorization", authorization);
    return HttpClient({.base = base, .timeout = kTimeout}).send(request);
  }

  /// True when there is an answer to the challenge that was not given before.
  bool log_in(const HttpAnswer& answer) {
    const std::string challenge = answer.field("WWW-Authenticate");
    if (!authorization.empty()) return false;
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
    static_cast<void>(address_from_host(realm));
    const Address asked = transport::address_of(
        with_parameter(with_parameter(realm, "service", parameter_of(challenge, "service")), "scope",
                       parameter_of(challenge, "scope")));
    HttpRequest request{.target = asked.target};
    if (!login.user.empty()) request.fields.emplace_back("Authorization", basic());
    const HttpAnswer given = HttpClient({.base = asked.base, .timeout = kTimeout}).send(request);
    if (given.status() != 200)
      throw Error(ErrorCode::kUnauthorized, "the token service of " + base + " gives no token");
    const Json answer = parse_json(given.text(kMaxText));
    for (const char* name : {"token", "access_token"}) {
      if (answer.is_object() && answer.contains(name) && answer[name].is_string())
        return answer[name].get<std::string>();
    }
    throw Error(ErrorCode::kUnauthorized, "the token service of " + base + " gives no token");
  }

  [[noreturn]] void refuse(const HttpAnswer& answer, const std::string& what) const {
    const int status = answer.status();
    const ErrorCode code = status == 404                    ? ErrorCode::kNotFound
                           : status == 401 || status == 403 ? ErrorCode::kUnauthorized
                                                            : ErrorCode::kUnavailable;
    std::string why = answer.text(kMaxText).substr(0, 300);
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

std::string Client::address_of(const Digest& digest) const {
  return "/v2/" + reference_.repository + "/blobs/" + digest.text();
}

bool Client::has_blob(const Digest& digest) {
  const HttpAnswer answer = http_->send({.method = "HEAD", .target = address_of(digest)});
  if (answer.status() == 200) return true;
  if (answer.status() == 404) return false;
  http_->refuse(answer, "HEAD of a blob");
}

void Client::put_blob(const Digest& digest, std::string_view bytes) {
  if (has_blob(digest)) return;
  const HttpAnswer begun =
      http_->send({.method = "POST", .target = "/v2/" + reference_.repository + "/blobs/uploads/"});
  const std::string location = begun.field("Location");
  if (begun.status() != 202 || location.empty()) http_->refuse(begun, "an upload");
  static_cast<void>(http_->address_from_host(location));
  const HttpAnswer done = http_->send({.method = "PUT",
                                       .target = with_parameter(location, "digest", digest.text()),
                                       .body = bytes,
                                       .content_type = "application/octet-stream"});
  if (done.status() != 201) http_->refuse(done, "PUT of a blob");
}

void Client::get_blob(const Digest& digest, uint64_t bytes, const std::string& path) {
  const std::string what = "blob " + digest.text();
  const HttpAnswer answer = http_->send({.target = address_of(digest)});
  if (answer.status() != 200) http_->refuse(answer, "GET of " + what);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(errno, "cannot make " + path);
  try {
    Hasher hasher;
    uint64_t size = 0;
    answer.read([&](std::string_view part) {
      size += part.size();
      if (size > bytes)
        throw Error(ErrorCode::kDigestMismatch, what + " has more bytes than its manifest says");
      hasher.update(part);
      write_all(file.get(), part, path);
    });
    const Digest actual = hasher.finish();
    if (actual != digest)
      throw Error(ErrorCode::kDigestMismatch, what + " came as bytes of digest " + actual.text());
  } catch (const std::exception&) {
    ::unlink(path.c_str());
    throw;
  }
}

void Client::put_manifest(const std::string& version, const std::string& text) {
  const HttpAnswer answer = http_->send({.method = "PUT",
                                         .target = "/v2/" + reference_.repository + "/manifests/" + version,
                                         .body = text,
                                         .content_type = kManifestType});
  if (answer.status() != 201) http_->refuse(answer, "PUT of the manifest");
}

std::string Client::get_manifest(const std::string& version) {
  const HttpAnswer answer = http_->send({.target = "/v2/" + reference_.repository + "/manifests/" + version,
                                         .fields = {{"Accept", kManifestType}}});
  if (answer.status() != 200) http_->refuse(answer, "GET of the manifest " + version);
  std::string text = answer.text(kMaxText);
  if (reference_.is_digest() && Digest::of(text).text() != version)
    throw Error(ErrorCode::kDigestMismatch,
                "the manifest came as bytes of digest " + Digest::of(text).text());
  return text;
}

}  // namespace tensormill::registry
