/// A connection to a server that stays open from request to request; made again after an error.
/// Thread-safety: a client belongs to one thread at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::load {

struct Url {
  std::string host;  ///< without the brackets of an IPv6 address
  std::string port = "80";
  std::string path;  ///< "" or "/..."
  /// As the Host header has it.
  std::string authority() const;
};
/// Throws Error(kUsage) for what is no http address, Error(kNotSupported) for https.
Url parse_url(const std::string& text);

struct Answer {
  int status = 0;       ///< 0: none came
  std::string failure;  ///< why: "timeout", "connection"
  std::string body;
};

class HttpClient {
public:
  /// Throws Error(kUnavailable) for a host that has no address.
  HttpClient(const Url& url, std::chrono::milliseconds timeout);
  /// Sends `wire`, a whole request of HTTP/1.1, and reads its answer, within the timeout.
  Answer send(std::string_view wire);
  /// GET of a path; throws Error(kUnavailable) without an answer, Error(kInvalidRequest) with the server's
  /// words for one that is not 200.
  std::string get(const std::string& path, const std::string& headers);

private:
  using Deadline = std::chrono::steady_clock::time_point;
  bool connect(Deadline deadline);
  bool write(std::string_view bytes, Deadline deadline);
  Answer read(Deadline deadline);
  /// False past the deadline.
  bool wait_for(short events, Deadline deadline);

  const Url url_;
  const std::chrono::milliseconds timeout_;
  std::string address_;  ///< bytes of a sockaddr
  int family_ = 0;
  FileDescriptor socket_;
};

/// The head of a request, with the empty line at its end; `headers` are whole lines.
std::string request_head(const Url& url, std::string_view method, const std::string& path,
                         const std::string& headers, size_t body_bytes);

}  // namespace tensormill::load
