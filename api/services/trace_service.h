/// Which requests become traces, as KServe's trace extension asks and changes it, while the process lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tensormill::services {

struct TraceSetting {
  bool is_on = false;
  int64_t rate = 1;    ///< one of so many requests, from 1
  int64_t count = -1;  ///< so many more traces; -1: without end
};

/// A member that is absent stays as it is; one that is null becomes the server's again or, for the server,
/// what it was at the start.
struct TraceChange {
  std::optional<std::optional<bool>> is_on = std::nullopt;
  std::optional<std::optional<int64_t>> rate = std::nullopt;
  std::optional<std::optional<int64_t>> count = std::nullopt;
};

/// Thread-safety: all methods from many threads.
class TraceService {
public:
  virtual ~TraceService() = default;
  /// `model`: a deployment; "": the server, for all that have no setting of their own.
  virtual TraceSetting get(const std::string& model) = 0;
  /// Returns what holds from now on. Throws Error(kTooLarge) for more models with settings than are kept.
  virtual TraceSetting change(const std::string& model, const TraceChange& change) = 0;
};

}  // namespace tensormill::services
