/// Rewrites statements from the outside in while tracking what is known of integer variables: loop ranges,
/// lets, guards. All index expressions are brought into normal form on the way, conditions that are decided
/// disappear, and a variable bound to one value is replaced by it. Passes override what they treat
/// differently. Thread-safety: a rewriter belongs to one thread.
#pragma once

#include <vector>

#include "compiler/te/affine.h"
#include "compiler/te/stmt.h"

namespace tensormill::lower {

class RangeRewriter {
public:
  virtual ~RangeRewriter() = default;
  virtual te::Stmt rewrite(const te::Stmt& stmt);
  virtual te::Expr rewrite(const te::Expr& expr) { return te::normalize(expr, ranges_); }

protected:
  virtual te::Stmt rewrite_for(const te::Stmt& stmt);
  virtual te::Stmt rewrite_store(const te::Stmt& stmt);
  virtual te::Stmt rewrite_allocate(const te::Stmt& stmt);
  virtual te::Stmt rewrite_if(const te::Stmt& stmt);
  virtual te::Stmt rewrite_let(const te::Stmt& stmt);

  /// The body with the loop's variable bound to [min, min + extent) where they are constants.
  void bind_loop(const te::Var& var, const te::Expr& min, const te::Expr& extent);
  /// Rewrites with the ranges that `condition` (or its negation) implies for single variables.
  te::Stmt rewrite_under(const te::Expr& condition, bool holds, const te::Stmt& stmt);

  te::BoundsContext ranges_;
};

/// An empty sequence.
te::Stmt nothing();
bool is_nothing(const te::Stmt& stmt);
/// Constant value of an expression, or -1.
int64_t constant_or(const te::Expr& expr, int64_t otherwise);

}  // namespace tensormill::lower
