/// Functions of real numbers that the graph has no operator for, made of those that it has. They are computed
/// in float64, within some units of its last place, and rounded to the operand's type, which is a float type:
/// so float32 is exact but for its last place. Thread-safety: as the builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// log |gamma(x)|; infinite at 0, -1, -2 ...
ir::ValueId log_gamma(OpBuilder& builder, ir::ValueId x);
/// Its derivative: of 0 infinite with the other sign, NaN at -1, -2 ...
ir::ValueId digamma(OpBuilder& builder, ir::ValueId x);
/// The y of erf(y) = x: infinite at -1 and 1, NaN outside of them.
ir::ValueId erf_inverse(OpBuilder& builder, ir::ValueId x);
/// The quantile of the normal distribution: what is below it with probability x. NaN outside of [0,1].
ir::ValueId normal_quantile(OpBuilder& builder, ir::ValueId x);
/// What a host step computes: the function of that name (runtime/host_ops/special.h) of operands of one type,
/// which are broadcast.
ir::ValueId special_function(OpBuilder& builder, const std::string& name, std::vector<ir::ValueId> operands);

}  // namespace tensormill::build
