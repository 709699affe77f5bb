#include "api/services/worker_service.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::services {
namespace {

std::string range(int oldest, int newest) {
  return oldest == newest ? "protocol " + std::to_string(newest)
                          : "protocols " + std::to_string(oldest) + " to " + std::to_string(newest);
}

}  // namespace

int common_protocol(const WorkerOffer& offer) {
  const int newest = std::min(offer.protocol, kWorkerProtocol);
  if (newest >= std::max(offer.oldest_protocol, kOldestWorkerProtocol)) return newest;
  throw Error(ErrorCode::kNotSupported, "the worker speaks " + range(offer.oldest_protocol, offer.protocol) +
                                            ", this server speaks " +
                                            range(kOldestWorkerProtocol, kWorkerProtocol));
}

}  // namespace tensormill::services
