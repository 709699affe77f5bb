/// Requests of KServe v2 inference, read in one pass: what is no data of a tensor is small, and the data
/// becomes tensors while it is read. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "api/endpoints/v2_codec.h"
#include "api/http/tensor_body.h"
#include "runtime/base/json_reader.h"

namespace tensormill::endpoints {

/// What a request may have beside the data of its inputs, in bytes of JSON.
inline constexpr uint64_t kV2JsonBytes = uint64_t{16} << 20;

struct V2Limits {
  uint64_t tensor_bytes = 0;  ///< of all inputs
  /// Elements that all inputs may have together as JSON; called when there are many. May throw.
  std::function<uint64_t()> elements;
  const SharedRegions* regions = nullptr;  ///< null: inputs in shared memory are not supported
  MemoryShare* memory = nullptr;           ///< for what is copied from there; null: without a share
  /// Whether an input of BYTES is files of pictures; asked where there is one. None: it is strings.
  std::function<bool()> takes_pictures = {};
};

/// `rest` is called once, when the JSON is read: what stands behind it. Tensors that are aligned there share
/// its memory. Throws Error(kInvalidJson), Error(kInvalidArgument) or Error(kInvalidTensor) naming the input
/// and the element, Error(kTooLarge) past a limit, before more is read, Error(kNotSupported) for
/// shared memory where there is none, and what `text` and `rest` throw.
V2Request read_v2_request(JsonText& text, const V2Limits& limits,
                          const std::function<http::TensorBody()>& rest);
/// A body that is one tensor without JSON: the only input of a model, all outputs binary. A free first dim is
/// 1. `takes_pictures`: it is the file of one. Throws Error(kInvalidTensor).
V2Request read_v2_raw_request(const http::TensorBody& body, const std::vector<services::TensorSpec>& inputs,
                              bool takes_pictures = false);

}  // namespace tensormill::endpoints
