/// Simplification and interval bounds of integer index expressions.
/// Index arithmetic is taken not to overflow where that can be shown from ranges: free variables and loop
/// variables are assumed to lie within ±2^47 (no larger extent can be allocated); loaded values may be
/// anything. Thread-safety: pure; a context belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/te/stmt.h"

namespace tensormill::te {

struct Linear;

/// Inclusive bounds; a missing end is unbounded. Ends are int64 (analysis saturates to "unbounded" on
/// overflow).
struct Interval {
  std::optional<int64_t> low;
  std::optional<int64_t> high;
  bool is_point() const { return low && high && *low == *high; }
};

/// Ranges of the variables in scope, and conditions known to hold there.
class BoundsContext {
public:
  /// A missing end means that the variable may be any int64 on that side (it was loaded).
  void bind(const Var& var, Interval range) { ranges_[var.get()] = {range, false}; }
  /// From now on expressions mean integers without bound, as dims do, and what is shown holds where no value
  /// on the way leaves int64; else they wrap, and a sum is used where it is shown that it does not.
  void take_integers() { integers_ = true; }
  /// A loop variable: min <= var < min + extent. Symbolic ends are kept as conditions.
  void bind_extent(const Var& var, const Expr& min, const Expr& extent);
  /// A let: the variable has the bounds of the value and, where that does not depend on memory, equals it in
  /// proofs.
  void bind_value(const Var& var, const Expr& value);
  /// Forgets the variable and what was noted of it when it was bound.
  void unbind(const Var& var);
  /// Takes a condition as true (a guard around a statement). Comparisons of i64 and conjunctions of them are
  /// used, anything else is ignored. To leave the guard, go back to a copy made before.
  void assume(const Expr& condition);
  /// Bounds of an int64 expression over all of its lanes; loads and unknown variables are unbounded.
  Interval bounds(const Expr& expr) const;
  /// True when the condition holds for all values in range, in every lane; false when not known.
  bool proves(const Expr& condition) const;
  const Interval* find(const Var& var) const;
  /// What was assumed, and the symbolic ends of loops, but for ranges of variables.
  std::vector<Expr> conditions() const;

private:
  friend class Prover;
  struct Entry {
    Interval range;
    bool is_index;  ///< a missing end is a large index, not arbitrary data
  };
  struct Fact {
    const VarNode* owner;                       ///< the loop variable it came with, null for assumptions
    std::shared_ptr<const Linear> nonpositive;  ///< this sum is <= 0
  };
  void assume_nonpositive(const Expr& expr, const VarNode* owner);

  std::unordered_map<const VarNode*, Entry> ranges_;
  std::vector<Fact> facts_;
  bool integers_ = false;
};

/// Integer rewriting: linear forms are collected, floordiv/floormod of affine sums split where ranges allow,
/// min, max, comparisons and selects decided by bounds; vectors of affine indices become ramps. Float
/// arithmetic is never reassociated.
Expr simplify(const Expr& expr, const BoundsContext& context);
Expr simplify(const Expr& expr);
/// True for an expression with a check_index in it, which can stop the kernel with an error: a rewriting that
/// leaves the expression out because its value is known would lose the error.
bool has_check(const Expr& expr);
/// Simplifies all expressions under the loops and guards around them, drops dead branches and empty or
/// single-trip loops (vectorized loops stay), and puts constants and variables in place of lets.
Stmt simplify(const Stmt& stmt);
Stmt simplify(const Stmt& stmt, BoundsContext context);

}  // namespace tensormill::te
