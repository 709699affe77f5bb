/// Runs of packages in child processes: what a stranger's code or model does ends with its child.
/// Thread-safety: all functions from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "api/services/deployment_service.h"
#include "server/services/jobs/child_runner.h"
#include "server/services/store/package_archive.h"

namespace tensormill::server {

struct ApartLimits {
  std::chrono::microseconds timeout{30'000'000};  ///< of the run, where the request says no less
  uint64_t memory = uint64_t{8} << 30;
  int threads = 1;
};

/// Also serves shapes that none of the package's plans takes, where the package holds its model. Throws what
/// the run throws, Error(kCancelled), Error(kDeadlineExceeded).
services::RunResult run_apart(ChildRunner& children, const MemberBlobs& members,
                              const services::NamedTensors& inputs, const services::RunOptions& options,
                              const ApartLimits& limits, const std::stop_token& cancelled);

}  // namespace tensormill::server
