/// Spans, sent to an OpenTelemetry collector by OTLP over HTTP as JSON. Thread-safety: add() from many
/// threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "server/metrics/registry.h"

namespace tensormill::transport {
class HttpClient;
}

namespace tensormill::trace {

struct Span {
  std::string trace_id;   ///< 32 hexadecimal digits
  std::string span_id;    ///< 16
  std::string parent_id;  ///< "" for the first of a trace
  std::string name;
  bool is_server = true;  ///< else a part of this process's own work
  int64_t start_ns = 0;   ///< since 1970
  int64_t end_ns = 0;
  bool failed = false;
  std::vector<std::pair<std::string, std::variant<std::string, int64_t>>> attributes;
};

struct ExportOptions {
  std::string endpoint;  ///< "http://127.0.0.1:4318"; spans go to /v1/traces below it
  std::string service = "tensormill";
  std::string version;
  std::chrono::milliseconds pause{1000};  ///< between two batches
};

/// The endpoint without a slash at its end. Throws Error(kUsage) for one that is no http or https URL.
std::string checked_endpoint(std::string endpoint);
/// 16 or 8 random bytes in hexadecimal digits.
std::string random_hex(size_t bytes);

class TraceExport {
public:
  /// Throws Error(kUsage) for an endpoint that is no http or https URL.
  TraceExport(ExportOptions options, metrics::Registry& registry);
  /// Sends what there is, once.
  ~TraceExport();
  TraceExport(const TraceExport&) = delete;
  TraceExport& operator=(const TraceExport&) = delete;

  /// Never waits. Past what is held while the collector is unreachable, the span is dropped, which a metric
  /// says.
  void add(std::vector<Span> spans);

private:
  void work(const std::stop_token& stop);
  /// Whether the collector took it.
  bool send(const std::vector<Span>& batch);
  std::string document(const std::vector<Span>& batch) const;

  const ExportOptions options_;
  const std::string instance_;
  metrics::Registry& registry_;
  const std::unique_ptr<transport::HttpClient> client_;
  std::mutex mutex_;
  std::condition_variable_any wanted_;
  std::deque<Span> spans_;
  std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace tensormill::trace
