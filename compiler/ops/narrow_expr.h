/// Conversions of the narrow types' bytes (runtime/base/narrow.h) as expressions. Thread-safety: pure
/// functions.
#pragma once

#include "compiler/ops/te_util.h"
#include "runtime/base/narrow.h"

namespace tensormill::ops {

/// The value of a byte of type `from`: f32, or i32 for integers.
Expr decode_narrow_expr(const Expr& byte, DType from);
/// The byte of type `to` that holds `value`, a number of any type: as encode_narrow; integers keep their low
/// bits, floats become the nearest integer's.
Expr encode_narrow_expr(const Expr& value, DType to, bool saturate, PowerRounding rounding);

}  // namespace tensormill::ops
