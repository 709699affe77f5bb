/// Requests to a deployment. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/npz/npz.h"
#include "server/load/http_client.h"

namespace tensormill::load {

/// POST /v1/deployments/NAME/infer with the tensors as NPZ. `headers`: further whole lines.
std::string npz_request(const Url& url, const std::string& deployment,
                        const std::vector<npz::NamedTensor>& tensors, const std::string& headers);
/// POST /v2/models/NAME/infer with the tensors as the protocol's binary extension has them, in and out.
/// Throws Error(kNotSupported) for strings.
std::string v2_request(const Url& url, const std::string& deployment,
                       const std::vector<npz::NamedTensor>& tensors, const std::string& headers);

}  // namespace tensormill::load
