/// Functions of real numbers that are more than one operator of expressions, on float expressions, in their
/// type. Of f64 each is within 2 ulp or so, near 0 as well. Thread-safety: pure functions.
#pragma once

#include "compiler/te/expr.h"

namespace tensormill::ops {

/// e^x - 1 and log(1 + x) without cancellation.
te::Expr expm1_expr(const te::Expr& x);
te::Expr log1p_expr(const te::Expr& x);
te::Expr asinh_expr(const te::Expr& x);
te::Expr acosh_expr(const te::Expr& x);
te::Expr atanh_expr(const te::Expr& x);

}  // namespace tensormill::ops
