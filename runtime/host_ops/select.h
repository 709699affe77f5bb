/// Results whose extent depends on the data: which boxes stay, which values differ, which elements are not
/// zero. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/tensor.h"

namespace tensormill::host_ops {

struct BoxSelection {
  int64_t max_per_class = 0;
  double iou_threshold = 0;               ///< boxes that overlap a better one by more are dropped
  std::optional<double> score_threshold;  ///< boxes need a higher score
  bool center_form = false;               ///< [x center, y center, width, height], else two opposite corners
};
/// Greedy non-maximum suppression of f32 boxes [batch, n, 4] with f32 scores [batch, classes, n]: rows
/// [batch, class, box], i64, by batch, class and falling score; equal scores by index. Throws
/// Error(kInvalidTensor) for other types and shapes.
Tensor select_boxes(const Tensor& boxes, const Tensor& scores, const BoxSelection& selection);

struct Distinct {
  Tensor values;
  Tensor first;    ///< i64: where each value stands first
  Tensor inverse;  ///< i64: which value each element is
  Tensor counts;   ///< i64
};
/// The distinct elements of `x`, flattened, or its distinct slices along `axis` (which is in [0, rank)): in
/// rising lexicographic order, or in order of first occurrence. NaNs come last; they equal each other unless
/// `nans_apart` is set.
Distinct distinct(const Tensor& x, std::optional<size_t> axis, bool sorted, bool nans_apart = false);

}  // namespace tensormill::host_ops
