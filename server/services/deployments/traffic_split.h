/// Spreads requests over versions by weights. Thread-safety: next() from many threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "api/services/deployment_service.h"

namespace tensormill::server {

/// Which version the request number `index` goes to: of any successive requests as many as the weights' sum,
/// each version has exactly its weight, and those of one version are distributed among them. At least one
/// weight is above 0.
int version_at(const services::VersionWeights& weights, uint64_t index);

/// Counts the requests of a deployment since its weights were set.
class TrafficSplit {
public:
  uint64_t next() { return next_.fetch_add(1, std::memory_order_relaxed); }

private:
  std::atomic<uint64_t> next_{0};
};

}  // namespace tensormill::server
