/// Host steps whose results have an extent that depends on data. Such a result is stored in a buffer of the
/// largest extent that the inputs' shapes allow, zeros behind what is there, and its last output, an i64 of
/// one element, says how much that is. Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// x -> i64 [max(1, rank), elements of x]: a column for each element that is not zero, in row-major order.
void find_nonzero(const HostCall& call);
/// x, bool condition [m] -> the slices of x along attribute "axis" where the condition holds.
void compress(const HostCall& call);
/// boxes, scores -> rows of select_boxes; attributes max_per_class, iou_threshold, score_threshold (if
/// any), center_form. Limits of the run (f64 [2] or [3], optional): max_per_class, no more than the
/// attribute, and the thresholds in their place.
void select_boxes_step(const HostCall& call);
/// x -> the distinct slices of x along attribute "axis", i64 [extent] each: where each stands first, which of
/// them each slice is, how often each is there. Attribute "sorted": 1 for rising order.
void distinct_step(const HostCall& call);
/// costs f32 [rows, columns] -> i32 [2, rows + columns - 1]: rows and columns of the cells of the cheapest
/// path from the first cell to the last, each step to the next row, the next column or both.
void warping_path(const HostCall& call);
/// x, i64 n [1] -> x with its first n elements along attribute "axis", of which there are n within [0,
/// extent].
void take_first(const HostCall& call);
/// x, i64 n [1], a part -> x with the part from element n on along attribute "axis", as far as x reaches. The
/// result may lie where x does: then nothing but the part is moved.
void append(const HostCall& call);
/// i64 numbers [n] -> the same, which the executor takes for extents of the steps behind (RunDim).
void bind_extents(const HostCall& call);
/// A condition (bool, one element), two values of one type -> the first where it holds, else the second. The
/// result may lie where either does.
void choose(const HostCall& call);
/// x, i64 counts [1] -> the first elements of x along each of attribute "axes" (or its one "axis"), as many
/// as its count says, close together; what is behind them in the buffer is unspecified. The executor takes
/// the counts for the output's extents.
void trim(const HostCall& call);
/// Stands for a whole model that an interpreter runs (runtime/package/model_step.h); where there is none it
/// is Error(kInvalidTensor) with the text of attribute "reason".
[[noreturn]] void run_model(const HostCall& call);

}  // namespace tensormill::host_ops
