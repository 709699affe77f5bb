/// Values that inputs of a model get for good when it is compiled, as JSON says them.
/// Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/services/common.h"
#include "compiler/frontend/importer/importer.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::server {

/// {"sr":16000,"axes":[0,1]} -> tensors of the inputs' dtypes; of inputs that are no tensor null -> an
/// optional value that holds nothing, [] -> a sequence without elements. What `options` had before stays.
/// Throws Error(kInvalidArgument), pointer "/input_values/NAME", naming the input.
void bind_input_values(const Json& values, const std::vector<services::TensorSpec>& inputs,
                       frontend::ImportOptions& options);

}  // namespace tensormill::server
