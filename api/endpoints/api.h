/// The REST API as one http::Handler over the services: request id, security rules, routing, scopes, body
/// limits, errors as problem+json. The order is that of the checks in handle(): a refused request costs
/// nothing. Thread-safety: immutable after construction; handle() from many threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/http/client_address.h"
#include "api/http/handler.h"
#include "api/services/services.h"
#include "api/services/trace_service.h"
#include "runtime/base/memory_budget.h"

namespace tensormill::endpoints {

struct ApiOptions {
  /// Host names (without port) that are answered beside the loopback names, or "*." and a domain; all others
  /// are 421.
  std::vector<std::string> allowed_hosts;
  /// Origins ("https://console.example") that may send state-changing requests beside the own one.
  std::vector<std::string> allowed_origins;
  uint64_t max_json_bytes = uint64_t{1} << 20;
  uint64_t max_image_bytes = uint64_t{32} << 20;
  uint64_t max_records_bytes = uint64_t{64} << 20;
  uint64_t max_tensor_bytes = uint64_t{256} << 20;
  uint64_t max_model_bytes = uint64_t{16} << 30;
  /// Proxies whose word counts about who is behind them, and the field in which they tell it.
  http::AddressSet trusted_proxies;
  http::ForwardedField forwarded_field = http::ForwardedField::kXForwardedFor;
  /// Of all requests in flight, taken before bytes are read or unfolded; null: they have a sum and no
  /// bounded.
  std::shared_ptr<MemoryBudget> memory;
  bool shared_memory = false;  ///< KServe's system shared memory, for clients on this machine
  std::vector<std::string> shared_memory_prefixes = {"tensormill-"};  ///< as SharedRegions
  bool cuda_shared_memory = false;                                    ///< the same of GPUs
  std::string cuda_library = "libcuda.so.1";                          ///< as SharedRegions
  bool shares_memory() const { return shared_memory || cuda_shared_memory; }
  std::string v2_name = "tensormill";  ///< of the server, in the metadata of KServe v2
  bool read_only = false;              ///< what needs write or admin is 403, but for looking
  int max_rate = 0;                    ///< requests a second of one key; 0: no bound
  std::string version = "0.1.0";       ///< of the OpenAPI document
  /// Answers a request by passing it on to one of these URLs, which have what it asks for; empty: none is.
  std::function<http::Response(http::Request&, const std::vector<std::string>&)> forward;
  /// Which requests become traces, borrowed; null: none are made.
  services::TraceService* traces = nullptr;
  /// Called once for each answered request, from the handler's thread; must not throw. May be empty.
  std::function<void(const http::Request&, const http::Response&, const std::string& route)> on_response;
};

std::unique_ptr<http::Handler> make_api(services::Services services, ApiOptions options);

}  // namespace tensormill::endpoints
