/// Which requests that bring no trace of their own become one. Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "api/services/trace_service.h"

namespace tensormill::trace {

class TraceSettings final : public services::TraceService {
public:
  /// Until they are changed, `percent` of 100 requests, at even distances, are traced.
  explicit TraceSettings(int percent);
  services::TraceSetting get(const std::string& model) override;
  services::TraceSetting change(const std::string& model, const services::TraceChange& change) override;
  /// Whether a request that begins now is traced; counts it. `target`: its path, which may name a model.
  bool takes(std::string_view target);

private:
  /// What a model has of its own, or the server.
  struct Own {
    services::TraceChange set;  ///< what was changed, and not taken back
    int64_t seen = 0;           ///< requests
  };
  services::TraceSetting setting_of(const Own* own) const;

  const int percent_;
  const services::TraceSetting start_;
  std::mutex mutex_;
  Own server_;
  std::map<std::string, Own, std::less<>> models_;
};

/// The deployment that a path of /v1/deployments or /v2/models names; "" for another path.
std::string_view model_of_path(std::string_view target);

}  // namespace tensormill::trace
