/// What convolutions of every layout and direction share. Thread-safety: pure functions.
#pragma once

#include "compiler/ir/op_def.h"
#include "compiler/te/expr.h"

namespace tensormill::ops {

/// Inputs x [N,C,spatial...], w [M,C/group,kernel...], bias [M] (may be null); attributes as conv, but for
/// channels_last: these are the functions of channels first.
/// Accumulates in double with the blocked product of gemm.h.
void conv_reference(const ir::ReferenceContext& context);

/// What a part of the result needs, as ir::OpDef::part.
bool part_of_conv(ir::PartContext& context);

/// The type rule of conv, and its tensor expression in the types of its operands, of channels last, too.
std::vector<ir::ValueType> infer_conv(const ir::InferContext& context);
std::vector<std::shared_ptr<const te::TensorNode>> compute_conv(const ir::ComputeContext& context);

/// The types of a convolution's input 0 and weights: floats of one dtype and rank, 3 to 5. Returns attribute
/// group, at least 1. Throws as a type rule does.
int64_t check_conv_operands(const ir::InferContext& context);

/// The output of an operator whose input 2 is a bias [M] or absent, from its widened sums, which are a map.
te::Tensor with_channel_bias(const ir::ComputeContext& context, const te::Tensor& sums);

}  // namespace tensormill::ops
