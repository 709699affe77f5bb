/// The side of the process that runs a deployment's package: it reads requests from one pipe and writes
/// answers into another until the first one ends. Thread-safety: belongs to one thread; the package's own
/// threads answer.
#pragma once

#include <cstdint>
#include <memory>

#include "server/services/deployments/executor_host.h"

namespace tensormill::server {

/// Runs what comes, `instances` requests at once. Returns at the end of `requests`, when all that runs is
/// answered. Throws Error(kIo) for what is no frame.
void serve_executor(const std::shared_ptr<HostedPackage>& package, int requests, int answers, int instances,
                    uint64_t max_request_bytes);

}  // namespace tensormill::server
