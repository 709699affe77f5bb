/// Operators that the executor runs itself: what they give depends on when they run, so that they have
/// neither a tensor expression nor a value that folds. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/ir/op_def.h"

namespace tensormill::ops {

/// An operator of `least` to `most` operands (-1: any number). To evaluate it throws Error(kTensorData).
ir::OpDef executor_step(std::string_view name, int32_t least, int32_t most,
                        std::vector<ir::ValueType> (*infer)(const ir::InferContext&), std::string_view doc);

}  // namespace tensormill::ops
