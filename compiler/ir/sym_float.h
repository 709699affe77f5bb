/// Float32 numbers that depend on a graph's symbols, as in sizes that are scaled and rounded: SymInts of
/// their float_code (runtime/base/extents/extent_functions.h), which are ordered as the numbers are, so that
/// minima, maxima and comparisons are those of integers. Exact: each step is the one that a kernel makes.
/// Thread-safety: as SymInt.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/sym_int.h"
#include "compiler/te/expr.h"

namespace tensormill::ir {

/// The integer as float32.
SymInt float_of(const SymInt& value);
/// The float32 of that code, toward zero.
SymInt int_of_float(const SymInt& code);
/// The operation of float32 numbers; nothing for one that is not in extent_functions.def.
std::optional<SymInt> float_operation(te::ExprOp op, const std::vector<SymInt>& codes);
/// The largest integer that is not above x times the factor, which is a code: the product is one of float32,
/// so that it may round up to the next integer (ONNX operator specification, Resize).
SymInt floor_of_product(const SymInt& x, const SymInt& factor);

}  // namespace tensormill::ir
