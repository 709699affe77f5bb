/// From expressions over tensors to stores: reads become loads, values used more than once get a name,
/// reductions become init and update. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/schedule/nest.h"

namespace tensormill::schedule {

/// What a stage's expressions are evaluated at.
struct Point {
  std::vector<te::Expr> data;    ///< positions in the stage's dimensions
  std::vector<te::Expr> reduce;  ///< values of the reduction axes
  te::Var lane;                  ///< a reduction axis whose iterations are lanes of one vector; or null
  int lanes = 1;
  std::vector<te::Expr> values = {};  ///< what is computed there, in place of the stage's definition
  te::Expr kept = {};  ///< where it does not hold, a register's element keeps what it has; null: nowhere
};

/// Stores the body's values (a stage without reduction).
te::Stmt emit_body(const State& state, const Plan& plan, int stage, const Point& point);
/// Stores the identity.
te::Stmt emit_init(const State& state, const Plan& plan, int stage, const Point& point);
/// Combines what is stored with the source at the point; the lanes of a vectorized reduction axis are reduced
/// to one value first.
te::Stmt emit_update(const State& state, const Plan& plan, int stage, const Point& point);

}  // namespace tensormill::schedule
