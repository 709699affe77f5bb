/// What Strassen's algorithm in f32 costs in accuracy for given weights. Thread-safety: pure functions.
#pragma once

#include "runtime/base/tensor.h"

namespace tensormill::passes {

/// Largest |a - b| over largest |b| in sampled elements of a product: a by product_strassen in f32, b
/// directly in double, on seeded inputs in [-1, 1). `panels` are the weights as [columns/b, depth, b],
/// `factors` what ops::strassen_weights made of them. A fixed small part of the columns is looked at.
double strassen_error(const Tensor& panels, const Tensor& factors, int64_t depth, int64_t b);

}  // namespace tensormill::passes
