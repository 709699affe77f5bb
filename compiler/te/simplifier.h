/// The rewriting behind simplify(). Not for other folders: use simplify.h.
/// Thread-safety: an object belongs to one thread and must not outlive its context.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/te/linear.h"
#include "compiler/te/prover.h"
#include "compiler/te/simplify.h"

namespace tensormill::te {

/// The comparison that holds where `op` does not (of integers: floats may be NaN).
ExprOp opposite(ExprOp op);

class Simplifier {
public:
  explicit Simplifier(const BoundsContext& context) : context_(context) {}
  Expr visit(const Expr& expr);

private:
  Expr visit_uncached(const Expr& expr);
  Linear visit_linear(const Expr& expr);
  std::vector<Expr> visit_args(const Expr& expr);
  Expr rebuild(const Expr& expr, std::vector<Expr> args, Expr mask) const;
  Expr simplify_node(const Expr& expr);
  Expr simplify_node_or_const(const Expr& expr);
  Expr simplify_extremum(const Expr& expr);
  Expr simplify_compare(const Expr& expr);
  Expr cancel(const Expr& expr);
  Expr simplify_select(const Expr& expr);
  Expr simplify_not(const Expr& expr);
  Expr simplify_check(const Expr& expr);
  Expr simplify_division(const Expr& expr);
  Expr floordiv_of(const Linear& dividend, int64_t divisor, const Expr& fallback);
  Expr floormod_of(const Linear& dividend, int64_t divisor, const Expr& fallback);
  Expr as_ramp(const Expr& expr);
  static Expr without_factor(const Expr& atom, const Var& var);

  const BoundsContext& context_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::vector<Expr> kept_;
};

}  // namespace tensormill::te
