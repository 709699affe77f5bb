/// Bodies of KServe v2 inference: JSON, and JSON followed by raw little-endian tensors (the binary tensor
/// data extension: the header Inference-Header-Content-Length tells where the JSON ends, binary_data_size how
/// much is whose). Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/endpoints/shared_regions.h"
#include "api/http/tensor_body.h"
#include "api/services/deployment_service.h"
#include "api/services/package_service.h"

namespace tensormill::endpoints {

struct V2Output {
  std::string name;
  bool binary = false;
  int64_t classes =
      0;  ///< above 0: so many "value:index:label" texts, best first, take the place of the values
  std::optional<SharedPlace> place;  ///< where its bytes go, and not into the answer
};

struct V2Request {
  std::string id;
  services::NamedTensors inputs;
  std::optional<services::PictureFiles> pictures;  ///< the only input, where the model takes files
  std::vector<V2Output> outputs;                   ///< as requested; empty: all
  bool binary_by_default = false;
  std::optional<std::chrono::microseconds> timeout;
  int priority = services::kDefaultPriority;
  std::optional<services::SequencePart> sequence;
};

struct V2Response {
  std::string body;
  size_t json_size = 0;  ///< of the JSON in front; all of it when nothing is binary
  bool binary = false;
};

/// `regions`: where outputs with a place go; null: such are not supported. `has_batch`: the first dim counts
/// the rows of a batch, each of which is classified. Throws Error(kInvalidArgument) when an output that was
/// requested is not there.
V2Response print_v2_response(const V2Request& request, std::string_view model, bool has_batch,
                             const services::RunResult& result, const SharedRegions* regions = nullptr);

}  // namespace tensormill::endpoints
