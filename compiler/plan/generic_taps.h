/// Summands that count under a condition: taps of a window that may lie outside of what it reads.
/// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

struct Taps {
  te::Expr value;                    ///< of a tap that counts; indices are simple where the conditions hold
  std::vector<te::Expr> conditions;  ///< all of them hold where it counts
};

/// The taps of a reduction of one value whose source is select(conditions, value, identity), the conditions
/// being of indices alone: leaving the others out changes nothing. `context`: of the nest's axes.
std::optional<Taps> taps_of(const te::Reduction& reduction, const te::BoundsContext& context);

/// A condition that implies `condition` for all values of `var`, 0 to `count` - 1; null where none is known.
te::Expr for_all(const te::Expr& condition, const te::Var& var, int64_t count);

}  // namespace tensormill::plan
