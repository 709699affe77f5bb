/// The linear form in which index expressions are scheduled and lowered: remainders are held as quotients,
/// floormod(x, c) as x - c*floordiv(x, c), so that fusing axes and flattening their indices cancels exactly;
/// to_expr folds what is left back to floormod. Unlike simplify() it keeps terms in the order in which they
/// appeared, and it decides by ranges alone, without a search. Indices are taken not to wrap.
/// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/te/linear.h"
#include "compiler/te/simplify.h"

namespace tensormill::te {

/// Inclusive bounds, both known, within ±2^56.
struct IndexRange {
  int64_t low = 0;
  int64_t high = 0;
  operator Interval() const { return {low, high}; }  // NOLINT: bounds are bounds
};

/// The normal form of a scalar int64 expression; any other is an atom.
Linear to_affine(const Expr& expr, const BoundsContext& context);
Expr to_expr(const Linear& affine, const BoundsContext& context);
/// The same value with k*x - k*c*floordiv(x,c) written as k*floormod(x,c).
Linear fold_mods(Linear affine, const BoundsContext& context);
/// The normal form, or the expression as it stands where the normal form says less about its bounds
/// (divisions that don't cancel): what follows must be able to show that an index is in bounds.
Expr bounded_form(const Expr& expr, const BoundsContext& context);
/// bounded_form for scalar int64 and bool expressions; other types are returned unchanged.
Expr normalize(const Expr& expr, const BoundsContext& context);
/// Bounds; nothing when an end is not known.
std::optional<IndexRange> range_of(const Expr& expr, const BoundsContext& context);
std::optional<IndexRange> range_of(const Linear& affine, const BoundsContext& context);
/// Whether a comparison (or conjunction of them) of int64 expressions always holds, never holds, or neither.
std::optional<bool> decide(const Expr& condition, const BoundsContext& context);
/// True when a floordiv or floormod occurs anywhere in `expr`.
bool has_division(const Expr& expr);

}  // namespace tensormill::te
