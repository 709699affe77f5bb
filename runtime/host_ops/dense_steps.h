/// Host steps with a result of a known shape whose work depends on data: sorting, scattering and iterations
/// until they converge. Thread-safety: pure functions.
#pragma once

#include <span>

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// x -> i64: positions of the first k elements of x sorted along attribute "axis", ties by position; k is
/// what the output holds. Attribute "largest": 1 for falling order, in which NaN is first. O(n log n) a row.
void sort_positions(const HostCall& call);
/// x, indices, updates -> x with x[.., indices[i], ..] = updates[i] along attribute "axis", or combined by
/// attribute "reduction" (none, add, mul, min, max), in the updates' row-major order. Linear. Where the
/// indices have an extent of one along another axis, they hold for all of it. An index outside of the axis is
/// Error(kTensorData). The result may lie on x.
void scatter(const HostCall& call);
/// x (float32, float64, float16, bfloat16, 32- and 64-bit integers) -> its running sums along attribute
/// "axis", or products where attribute "product" is 1; from the end where "reverse" is, without the element
/// itself where "exclusive" is. Floats are rounded once, integers wrap around. Linear.
void running_totals(const HostCall& call);
/// x, y (i64) of one shape -> the largest number that divides both at each place, 0 of two zeros; modulo 2^64
/// where it is 2^63.
void common_divisors(const HostCall& call);
/// x of one element, bool holds [1], numbers ... -> x. Where it does not hold, Error(kTensorData) with the
/// text of attribute "what", in which the numbers, or else x, stand for each "{}".
void require(const HostCall& call);
/// boxes f32 [n,4] of two opposite corners, scores f32 [classes,n], limits f64 [4] -> i32 [classes,most]: the
/// boxes of each class that stay, best first, of equal scores the first one first; f32 [classes,most]: their
/// scores; i32 [classes]: how many; zeros behind them. Limits: the number of boxes, no more than attribute
/// "most"; the overlap from which on a worse box is dropped; the score that boxes must be above; and sigma: a
/// box that stays below that overlap loses of its score by a Gaussian of it, unless sigma is 0 (Bodla et al.
/// 2017, "Soft-NMS").
void suppress_boxes(const HostCall& call);
/// boxes f32 [rows,n,4] of two opposite corners, scores f32 [rows,n], limits f64 [4], which says what that of
/// suppress_boxes says with a sigma of 0, groups i64 [rows,n] (optional) -> bool [rows,n]: which boxes of
/// each row stay. A box goes for a better one of its group alone.
void keep_boxes(const HostCall& call);
/// f32 [n, pairs] probabilities of the first of each two classes (0,1), (0,2) .. (1,2) .. -> f32 [n,
/// classes].
void couple_pairs(const HostCall& call);

/// Probabilities of k classes from those of each two of them: `first` has the probability of class i against
/// j > i, within (0, 1), pairs in rising order (Wu, Lin, Weng 2004, "Probability Estimates for Multi-class
/// Classification by Pairwise Coupling", algorithm 2, stopped as LIBSVM does).
void pairwise_coupling(std::span<const double> first, std::span<double> classes);

}  // namespace tensormill::host_ops
