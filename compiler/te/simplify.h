/// Simplification and interval bounds of integer index expressions.
/// Thread-safety: pure; a context belongs to one thread.
#pragma once

#include <optional>
#include <unordered_map>

#include "compiler/te/stmt.h"

namespace tensormill::te {

/// Inclusive bounds; a missing end is unbounded. Ends are int64 (analysis saturates to "unbounded" on overflow).
struct Interval {
  std::optional<int64_t> low;
  std::optional<int64_t> high;
  bool is_point() const { return low && high && *low == *high; }
};

/// Ranges of the variables in scope.
class BoundsContext {
public:
  void bind(const Var& var, Interval range) { ranges_[var.get()] = range; }
  void bind_extent(const Var& var, const Expr& min, const Expr& extent);
  void unbind(const Var& var) { ranges_.erase(var.get()); }
  /// Bounds of an int64 expression; loads and unknown variables are unbounded.
  Interval bounds(const Expr& expr) const;
  /// True when the condition holds for all values in range; false when not known.
  bool proves(const Expr& condition) const;
  const Interval* find(const Var& var) const;

private:
  std::unordered_map<const VarNode*, Interval> ranges_;
};

/// Integer rewriting: linear forms are collected, floordiv/floormod of affine sums split where ranges allow, min,
/// max, comparisons and selects decided by bounds. Float arithmetic is never reassociated.
Expr simplify(const Expr& expr, const BoundsContext& context);
Expr simplify(const Expr& expr);
/// Simplifies all expressions, drops dead branches and empty or single-trip loops (vectorized loops stay).
Stmt simplify(const Stmt& stmt);

}  // namespace tensormill::te
