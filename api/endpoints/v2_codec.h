/// Bodies of KServe v2 inference: JSON, and JSON followed by raw little-endian tensors (the binary tensor
/// data extension: the header Inference-Header-Content-Length tells where the JSON ends, binary_data_size how
/// much is whose). Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/services/common.h"

namespace tensormill::endpoints {

struct V2Output {
  std::string name;
  bool binary = false;
};

struct V2Request {
  std::string id;
  services::NamedTensors inputs;
  std::vector<V2Output> outputs;  ///< as asked for; empty: all
  bool binary_by_default = false;
  std::optional<std::chrono::milliseconds> timeout;
};

struct V2Response {
  std::string body;
  size_t json_size = 0;  ///< of the JSON in front; all of it when nothing is binary
  bool binary = false;
};

/// `json_size`: the value of Inference-Header-Content-Length, when there is one. Throws Error(kInvalidJson),
/// Error(kInvalidArgument) or Error(kInvalidTensor) naming the input, Error(kNotSupported) for BYTES.
V2Request read_v2_request(std::string_view body, std::optional<size_t> json_size);
/// Throws Error(kInvalidArgument) when an output that was asked for is not there.
V2Response print_v2_response(const V2Request& request, std::string_view model, std::string_view version,
                             const services::NamedTensors& outputs);

}  // namespace tensormill::endpoints
