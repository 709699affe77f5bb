/// Interval arithmetic and a small search for proofs over linear forms. Not for other folders: use
/// BoundsContext. Thread-safety: an object belongs to one thread.
#pragma once

#include "compiler/te/linear.h"
#include "compiler/te/simplify.h"

namespace tensormill::te {

/// Bounds that always exist; `known_*` tells an end that follows from what was bound from one that is merely
/// assumed (±2^47 for an index, the type's limits for data).
struct Range {
  __int128 low, high;
  bool known_low, known_high;
};

class Prover {
public:
  explicit Prover(const BoundsContext& context) : context_(context) {}
  /// Over the integers: may lie outside int64.
  Range linear_range(const Linear& linear) const;
  /// Of the wrapped value: always within int64.
  Range range(const Expr& expr) const;
  /// True when the sum over the integers is the value of the expression: nothing wraps.
  bool is_exact(const Linear& linear) const;
  bool nonpositive(const Linear& linear) { return nonpositive(linear, kMaxDepth); }
  /// A scalar condition; with `negated`, that it is false everywhere.
  bool holds(const Expr& condition, bool negated = false);

private:
  static constexpr int kMaxDepth = 6;
  static constexpr int kMaxSteps = 160;

  Range wrapped(const Range& range) const;
  Range atom_range(const Expr& atom) const;
  Range division_range(const Expr& atom) const;
  bool nonpositive(Linear linear, int depth);
  Linear replaced(const Linear& linear, size_t index, const Expr& value) const;
  Linear with_remainder(const Linear& linear, const Expr& atom) const;
  bool by_cases(const Linear& linear, int depth);
  bool by_facts(const Linear& linear, int depth);
  bool by_parts(const Linear& linear, int depth);
  bool by_dividend(const Linear& linear);
  bool by_quotient(const Linear& linear, int depth);
  bool by_division(const Linear& linear, int depth);
  bool by_end(const Linear& linear, int depth);
  bool by_remainder(const Linear& linear, int depth);
  bool by_digits(const Linear& linear, int depth);
  bool by_check(const Linear& linear, int depth);
  bool compares(ExprOp op, const Expr& a, const Expr& b);

  const BoundsContext& context_;
  int steps_ = kMaxSteps;
  bool remainders_ = false;     ///< whether the rules for remainders are used
  bool met_remainder_ = false;  ///< whether they might have helped
  bool parts_ = false;          ///< whether sums are split into terms
  bool met_part_ = false;       ///< whether that might have helped
};

/// A vector expression seen as a scalar over its lane number.
struct LaneView {
  Expr expr;
  Var lane;
  BoundsContext context;  ///< the given one with the lane (and opaque vector values) bound
  bool has_opaque = false;
};
LaneView view_lanes(const Expr& expr, const BoundsContext& context);
/// Views of several expressions of as many lanes over one lane variable; scalars stand for themselves.
std::vector<Expr> view_lanes(const std::vector<Expr>& exprs, LaneView& view);

}  // namespace tensormill::te
