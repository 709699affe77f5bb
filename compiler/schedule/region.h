/// Which part of a producer a consumer needs: symbolic intervals of index expressions.
/// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <optional>

#include "compiler/te/affine.h"

namespace tensormill::schedule {

/// Inclusive bounds as expressions over fixed variables.
struct SymbolicInterval {
  te::Linear low;
  te::Linear high;
};

/// Bounds of a scalar int64 expression while the variables for which `relaxed` holds run over their ranges
/// and the others are fixed. Nothing when an end is not known.
std::optional<SymbolicInterval> interval_of(const te::Expr& expr,
                                            const std::function<bool(const te::Var&)>& relaxed,
                                            const te::BoundsContext& ranges);
/// The smallest interval that is known to contain both.
SymbolicInterval unite(const SymbolicInterval& a, const SymbolicInterval& b, const te::BoundsContext& ranges);

}  // namespace tensormill::schedule
