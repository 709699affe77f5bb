/// The process's log: one JSON object a line on stderr, with the fields of the contract (ts, level, msg,
/// request_id …). Thread-safety: all methods from many threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::metrics {

struct AnsweredRequest {
  std::string request_id;
  std::string method;
  std::string target;
  std::string route;
  std::string caller;
  std::string peer;
  int status = 0;
  double ms = 0;            ///< from the request's head to its answer
  std::string trace_id;     ///< of the caller's W3C trace context; "" without one
  std::string client = {};  ///< address of who is behind trusted proxies
};

/// The target of a request as logs may have it: what looks like an API key, which a client may have put there
/// by mistake, is replaced, and what is very long is cut.
std::string logged_target(std::string_view target);

class RequestLog {
public:
  /// `level` is one of trace, debug, info, warn, error; Error(kUsage) otherwise.
  explicit RequestLog(const std::string& level);
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;
  /// At info; from status 500 on at error.
  void answered(const AnsweredRequest& request) noexcept;
  /// A line of the process itself, at error.
  void fail(const std::string& message,
            const std::vector<std::pair<std::string, std::string>>& fields) noexcept;
  /// A line of the process itself, at info.
  void note(const std::string& message,
            const std::vector<std::pair<std::string, std::string>>& fields) noexcept;

private:
  struct Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace tensormill::metrics
