/// One HTTP exchange, and nothing of S3: what the module storage/s3_curl does with libcurl, and tests with
/// faults of their own. Thread-safety: send may be called from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::storage {

struct HttpExchange {
  std::string method;
  std::string url;  ///< escaped
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view body;  ///< lives until send returns
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds stall_timeout{20'000};  ///< without a byte either way
  std::string ca_file;                              ///< PEM; "": the system's
};

struct HttpAnswer {
  int status = 0;  ///< 0: there is no answer, or only a part of one; `failure` says why
  std::string failure;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;                                          ///< what no sink took
  /// The value; "" when there is none.
  std::string header(std::string_view name) const {
    for (const auto& [known, value] : headers) {
      if (known == name) return value;
    }
    return "";
  }
};

/// Takes the body of a 2xx answer as it comes; false gives the exchange up.
using HttpSink = std::function<bool(int status, std::string_view bytes)>;

class HttpTransport {
public:
  virtual ~HttpTransport() = default;
  /// Never throws for the network's sake. Redirects are not followed. A body past 16 MiB that no sink takes
  /// is a failure.
  virtual HttpAnswer send(const HttpExchange& exchange, const HttpSink& sink) = 0;
};

/// The module's: libcurl is loaded by the first call of a process. Throws Error(kNotSupported) where the
/// module is not installed.
std::unique_ptr<HttpTransport> load_http_transport();

}  // namespace tensormill::storage
