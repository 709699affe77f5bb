/// What convolutions of every layout and direction share. Thread-safety: pure functions.
#pragma once

#include "compiler/ir/op_def.h"
#include "compiler/te/expr.h"

namespace tensormill::ops {

/// Inputs x [N,C,spatial...], w [M,C/group,kernel...], bias [M] (may be null); attributes as conv.
/// Accumulates in double with the blocked product of gemm.h.
void conv_reference(const ir::ReferenceContext& context);

/// The output of an operator whose input 2 is a bias [M] or absent, from its widened sums [N,M,spatial...].
te::Tensor with_channel_bias(const ir::ComputeContext& context, const te::Tensor& sums);

}  // namespace tensormill::ops
