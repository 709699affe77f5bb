/// The JSON bodies of requests, read into the structs of the services.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/services/deployment_service.h"
#include "api/services/job_service.h"
#include "api/services/key_service.h"
#include "api/services/worker_service.h"

namespace tensormill::schema {

/// All of them throw Error(kInvalidJson) for what cannot be parsed or is nested deeper than 64, and
/// Error(kInvalidArgument) with one detail for each member that is unknown, missing or wrong.

/// {"target": "llvm -mcpu=…"}
std::string read_target(std::string_view body);
/// POST /v1/jobs
services::JobRequest read_job_request(std::string_view body);
/// PUT /v1/deployments/{name}
services::DeploymentSpec read_deployment_spec(std::string_view body);
/// PUT /v1/deployments/{name}/weights
services::VersionWeights read_version_weights(std::string_view body);
/// POST /v1/workers/lease
services::WorkerOffer read_worker_offer(std::string_view body);
/// POST /v1/workers/leases/{lease}/heartbeat
services::WorkerBeat read_worker_beat(std::string_view body);
services::WorkerLeave read_worker_leave(std::string_view body);
/// POST /v1/workers/leases/{lease}/kernels
std::vector<std::string> read_worker_kernels(std::string_view body);
/// POST /v1/keys
services::NewKey read_key_spec(std::string_view body);

}  // namespace tensormill::schema
