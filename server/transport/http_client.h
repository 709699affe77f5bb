/// Requests to another server, over cpprestsdk's client. Errors: Error(kUnavailable) where nothing answers,
/// or the answer stops before its end; Error(kCancelled) when a stop was requested. Thread-safety: all
/// methods of HttpClient from many threads; an HttpAnswer is one thread's at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::transport {

/// The parts of an address (RFC 3986).
struct Address {
  std::string base;    ///< scheme, user, host and port; "" for a path alone
  std::string scheme;  ///< "" for a path alone
  std::string user;    ///< with the password
  std::string host;    ///< "[::1]" in brackets
  std::string path;    ///< "/" where there is none
  std::string target;  ///< path and query
};

/// Throws Error(kUsage) for what is no address.
Address address_of(const std::string& text);
/// The address, of which the query has this parameter too.
std::string with_parameter(const std::string& address, const std::string& name, const std::string& value);

struct HttpClientOptions {
  std::string base;                     ///< http or https address; a path in it stands before each target
  std::chrono::milliseconds timeout{};  ///< without a byte
  bool checks_certificate = true;
  std::string ca_file = {};       ///< PEM of authorities instead of the system's; "" for those
  std::vector<Digest> pins = {};  ///< SHA-256 of SubjectPublicKeyInfo: one of these alone, whatever signed it
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::string_view body = {};  ///< stays where it is, until the answer's head is there
  std::string content_type = {};
};

class HttpAnswer {
public:
  int status() const;
  /// "" where the answer does not have it.
  std::string field(const std::string& name) const;
  /// Calls `take` with the body, part by part, once. Throws what `take` throws.
  void read(const std::function<void(std::string_view)>& take) const;
  /// The body. Throws Error(kTooLarge) for more than `most` bytes, whole MiB.
  std::string text(size_t most) const;

private:
  friend class HttpClient;
  struct Response;
  std::string base_;
  std::shared_ptr<const Response> response_;
};

class HttpClient {
public:
  /// Throws Error(kUsage) for a base that is no http or https address.
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const std::string& base() const;
  /// The answer, whose body may still be on its way. Redirects are not followed: where a key goes, its owner
  /// says.
  HttpAnswer send(const HttpRequest& request, const std::stop_token& stop = {});

private:
  struct Http;
  const std::unique_ptr<Http> http_;
};

}  // namespace tensormill::transport
