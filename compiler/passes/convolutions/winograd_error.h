/// What minimal filtering in f32 costs in accuracy for given weights. Thread-safety: pure functions.
#pragma once

#include "runtime/base/tensor.h"

namespace tensormill::passes {

/// Largest |a - b| over largest |b| in sampled outputs of a 3x3 convolution: a by F(tile, 3) in f32, b
/// directly in double, on seeded inputs in [-1, 1). `blocked` [OCb, ICb, 3, 3, b, b] are the weights,
/// `transformed` what ops::winograd_weights made of them. A fixed small part of the output channels is looked
/// at.
double winograd_error(const Tensor& blocked, const Tensor& transformed, int64_t tile);

}  // namespace tensormill::passes
