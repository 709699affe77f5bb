/// Finds the free dims that a model takes as 1 beside others, though elsewhere they are other dims or
/// numbers: a row of an operand that stands for all rows of another one, a mask for all batches and heads.
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// Plans of a package, all in all: each has samples of its own.
inline constexpr size_t kMostGenericPlans = 8;

/// Whether the model takes the values of its free dims.
using TakesAt = std::function<bool(const std::vector<int64_t>&)>;

/// Sets of free dims to be 1, the most likely ones first, so that all have kMostGenericPlans with the plan of
/// `samples`: those of dims that are dependents there, or that dependents are made of. `inputs`: the free
/// dims of each input, in order. Each set is found by imports of the model.
std::vector<std::vector<size_t>> find_spread_dims(const TakesAt& takes, const ir::SampleSet& samples,
                                                  const std::vector<std::vector<size_t>>& inputs);

}  // namespace tensormill::frontend::onnx
