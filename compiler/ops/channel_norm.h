/// What normalizations per channel share. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/ir/op_def.h"

namespace tensormill::ops {

/// The type rule: x [N,C,...] of rank `min_rank` or more, inputs 1 to `rows` of shape [C], attribute epsilon;
/// the output is like x. Throws as every type rule.
std::vector<ir::ValueType> channel_norm_type(const ir::InferContext& context, size_t min_rank, size_t rows);

}  // namespace tensormill::ops
