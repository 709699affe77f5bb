/// What the server and the process that runs a deployment's package say to each other, through two pipes. A
/// frame is a head of fixed size, a JSON text and the bytes of tensors. Thread-safety: pure functions on
/// their arguments.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/services/package_service.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/deployments/executor_host.h"

namespace tensormill::server {

enum class FrameKind : uint32_t { kRun = 1, kCancel, kResult, kError };

struct Frame {
  FrameKind kind = FrameKind::kRun;
  uint64_t id = 0;  ///< of the request
  Json json;
  services::NamedTensors tensors;
};

/// A frame as bytes: what comes before the tensors' own.
std::string frame_head(FrameKind kind, uint64_t id, Json json, const services::NamedTensors& tensors);
/// Reads one frame; empty at the end of the pipe. Throws Error(kIo) when it cannot be read, and when it is
/// none: `max_bytes` bounds what its tensors may have.
std::optional<Frame> read_frame(int fd, uint64_t max_bytes);
/// Writes all of a frame. With a pipe that does not block, waits until `deadline` at most. False when the
/// other end has gone or does not take it.
bool write_frame(int fd, const std::string& head, const services::NamedTensors& tensors,
                 std::chrono::steady_clock::time_point deadline);

Json run_options_to_json(const services::RunOptions& options);
/// Throws Json::exception, Error(kInvalidArgument) for what run_options_to_json did not make.
services::RunOptions run_options_from_json(const Json& json);
Json timing_to_json(const services::RunResult& result);
/// Throws Json::exception for what timing_to_json did not make.
void read_timing(const Json& json, services::RunResult& result);

}  // namespace tensormill::server
