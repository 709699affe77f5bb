/// What the convolutions on blocked tensors share. A blocked activation is [N, ceil(C/b), spatial..., b], of
/// one to three spatial dimensions: b channels side by side, pad lanes zero. Taps that fall outside the input
/// do not contribute: the expression of a tap is select(inside, x * w, 0) with clamped indices, of which
/// the schedules make guards around the accumulation. Thread-safety: pure functions.
#pragma once

#include "compiler/ops/te_util.h"
#include "compiler/ops/windows/window.h"

namespace tensormill::ops {

/// One convolution: extents of the input, of the window and of the result.
struct BlockedConv {
  ir::SymInt batch = 0;
  int64_t out_blocks = 0;
  int64_t block = 0;
  ir::SymShape in;  ///< spatial extents
  ir::SymShape out;
  Window window;
  bool has_input = true;  ///< the input has elements
  size_t rank() const { return in.size(); }
  /// One tap, no padding, no stride: rows of the image follow each other, so that the image is one row.
  bool is_pointwise() const;
  /// [N, out_blocks, spatial..., b]
  ir::SymShape out_shape() const;
};

/// The window of `attrs` over the spatial extents `in` of the input. Throws Error(kInvalidModel).
BlockedConv read_blocked_conv(const ir::Attrs& attrs, const ir::SymInt& batch, const ir::SymShape& in,
                              const Shape& kernel, int64_t out_blocks, int64_t block);
/// Input 0 as a blocked tensor of one to three spatial dimensions, of a type that is allowed.
const ir::ValueType& blocked_input(const ir::InferContext& context, DTypeSet allowed = kFloats);
/// The `rank` extents of `shape` from `first` on.
ir::SymShape extents_of(const ir::SymShape& shape, size_t first, size_t rank);
/// Input `index` with `rank` dimensions, of a type that is allowed (input 0) or of input 0's, called `what`
/// in errors.
const ir::ValueType& ranked_input(const ir::InferContext& context, size_t index, size_t rank,
                                  const std::string& what, DTypeSet allowed = kFloats);
/// Fails unless an optional bias (input 2) has the shape [channels].
void check_bias(const ir::InferContext& context, int64_t channels);

/// Where a tap reads the input.
struct TapPosition {
  std::vector<Expr> at;  ///< one for each spatial dimension, in bounds for every point
  Expr inside;           ///< whether the tap is in the input; null: always
};
/// `out` and `taps`: one index for each spatial dimension.
TapPosition tap_position(const BlockedConv& conv, const std::vector<Expr>& out,
                         const std::vector<Expr>& taps);
/// first, then `middle`, then last: an index of a blocked tensor or of packed weights.
std::vector<Expr> index_around(std::vector<Expr> first, const std::vector<Expr>& middle,
                               const std::vector<Expr>& last);

/// The summand of one tap: `position` is where the input is read, taps[lead] and what follows it, one for
/// each spatial dimension, are the window's.
using TapProduct = std::function<Expr(const std::vector<Expr>& axes, const std::vector<Expr>& taps,
                                      const TapPosition& position)>;
/// The sums over `taps`, of which those from `lead` on run over the window, plus the bias where it is given.
TeOutputs blocked_conv_stages(const ir::ComputeContext& context, const BlockedConv& conv, const Shape& taps,
                              size_t lead, const TapProduct& product);

/// The dimensions of `tensor` in another order, with the shape `shape` afterwards.
Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order, const Shape& shape);
/// Evaluates conv on plain x and w and stores the blocked result.
void blocked_conv_reference(const ir::ReferenceContext& context, const Tensor& x, const Tensor& w,
                            int64_t groups, int64_t block);

}  // namespace tensormill::ops
