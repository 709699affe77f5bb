/// Tensors in requests and responses: NPZ, and JSON when the client prefers it.
/// Thread-safety: pure functions.
#pragma once

#include <string>

#include "api/http/message.h"
#include "api/http/tensor_body.h"
#include "api/services/common.h"
#include "api/services/package_service.h"

namespace tensormill::endpoints {

/// The tensors of an NPZ, which is the request's body; it may be empty where `options` say how to fill
/// inputs. Throws Error(kInvalidRequest), Error(kInvalidNpz), Error(kTooLarge) when it inflates past
/// `max_bytes`.
services::NamedTensors decode_tensors(const http::Request& request, const http::TensorBody& body,
                                      const services::RunOptions& options, uint64_t max_bytes);

/// fill_mode, seed, repeat, number and profile. Throws Error(kInvalidRequest).
services::RunOptions run_options(const http::Request& request);

/// application/x-npz, or JSON {"outputs","timing"} when Accept prefers that; Server-Timing always.
http::Response run_response(const http::Request& request, const services::RunResult& result);

/// "queue;dur=0.1, compute;dur=2.5"
std::string server_timing(const services::Timing& timing);

}  // namespace tensormill::endpoints
