/// A connection to a server that stays open from request to request; made again after an error.
/// Thread-safety: a client belongs to one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/load/tls_client.h"

namespace tensormill::load {

struct Url {
  std::string host;  ///< without the brackets of an IPv6 address
  std::string port = "80";
  bool tls = false;
  std::string path;  ///< "" or "/..."
  /// As the Host header has it.
  std::string authority() const;
};
/// Throws Error(kUsage) for what is no http or https address.
Url parse_url(const std::string& text);

struct Answer {
  int status = 0;       ///< 0: none came
  std::string failure;  ///< why: "timeout", "connection", "tls"
  std::string body;
};

/// Why no answer came, in words.
std::string why_lost(const Answer& answer);

class HttpClient {
public:
  /// `tls`: for an https address. Throws Error(kUnavailable) for a host that has no address.
  HttpClient(const Url& url, std::chrono::milliseconds timeout, TlsContext tls = {});
  /// Sends `wire`, a whole request of HTTP/1.1, and reads its answer, within the timeout.
  Answer send(std::string_view wire);
  /// GET of a path; throws Error(kUnavailable) without an answer, Error(kInvalidRequest) with the server's
  /// words for one that is not 200.
  std::string get(const std::string& path, const std::string& headers);

private:
  using Deadline = std::chrono::steady_clock::time_point;
  /// What stops a step; "": it went well.
  using Failure = std::string;
  Failure connect(Deadline deadline);
  Failure connect_socket(Deadline deadline);
  Failure write(std::string_view bytes, Deadline deadline);
  /// `count` 0: the peer has ended its side.
  Failure receive(char* data, size_t size, size_t& count, Deadline deadline);
  Answer read(Deadline deadline);
  void close();
  /// False past the deadline.
  bool wait_for(short events, Deadline deadline);
  /// Calls `step` until it is through; waits in between as it asks.
  template <typename Step>
  TlsSession::Step drive(const Step& step, Deadline deadline, bool& is_late);

  const Url url_;
  const std::chrono::milliseconds timeout_;
  const TlsContext tls_;
  std::string address_;  ///< bytes of a sockaddr
  int family_ = 0;
  FileDescriptor socket_;
  std::unique_ptr<TlsSession> session_;
  std::string reason_;  ///< of the last failure of TLS
};

/// The head of a request, with the empty line at its end; `headers` are whole lines.
std::string request_head(const Url& url, std::string_view method, const std::string& path,
                         const std::string& headers, size_t body_bytes);

}  // namespace tensormill::load
