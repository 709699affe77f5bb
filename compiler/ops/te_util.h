/// What the tensor expressions of operators share. f16 and bf16 are computed in f32 and rounded at the end,
/// so that no executor needs arithmetic in them. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::ops {

using te::Expr;
using TeOutputs = std::vector<std::shared_ptr<const te::TensorNode>>;

/// The dtype in which values of `dtype` are computed and accumulated: f32 for f16 and bf16, else itself.
DType compute_dtype(DType dtype);
/// Casts to compute_dtype.
Expr widen(const Expr& value);
/// e^(x - most) as a weight among up to 2^24, of which the largest is 1: zero where, divided by their sum, it
/// would be no normal number. Products with such ones take a core some hundred cycles each, as masks of -100
/// make them, and change no sum.
Expr weight_exp(const Expr& difference);
/// Casts back; nothing when it is `dtype` already.
Expr narrow(const Expr& value, DType dtype);
/// A constant of `like`'s type.
Expr constant_like(const Expr& like, double value);
/// A number of elements, and 1 over one (0 of none), as values of a float dtype or, the first, of any.
Expr count_of(const ir::SymInt& count, DType dtype);
Expr share_of(const ir::SymInt& count, DType dtype);
/// The largest (smallest) value: infinity for floats.
Expr largest_of(DType dtype);
Expr lowest_of(DType dtype);

/// Whether the extent is 1, or one of them 0, at all shapes: known without a guard.
bool is_one(const ir::SymInt& extent);
bool is_empty(const ir::SymShape& shape);

/// te::compute, or constant zeros (never executed) when `shape` is empty, so that no body addresses an empty
/// input.
te::Tensor compute_safe(const std::string& name, const ir::SymShape& shape, DType dtype,
                        const std::function<Expr(const std::vector<Expr>&)>& body);
/// The elements of input 0 at their own indices.
TeOutputs compute_copy(const ir::ComputeContext& context);
/// te::reduce, or the constant identity when there is nothing to reduce or to compute.
te::Tensor reduce_safe(const std::string& name, te::ReduceOp op, const ir::SymShape& shape,
                       const ir::SymShape& extents, DType dtype,
                       const std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>& body);
/// `tensor` cast to `dtype` in a stage of its own, or itself.
te::Tensor narrow_stage(const std::string& name, const te::Tensor& tensor, const ir::SymShape& shape,
                        DType dtype);

/// Element of `tensor` (of shape `shape`) for index `axes` of an output of shape `out` under numpy's
/// broadcasting.
Expr read_broadcast(const te::Tensor& tensor, const ir::SymShape& shape, const ir::SymShape& out,
                    const std::vector<Expr>& axes);
/// The same along one axis: one element is there for all of the output's, or as many as those are.
Expr broadcast_index(const ir::SymInt& extent, const ir::SymInt& out, const Expr& axis);
/// `index` limited to [0, extent).
Expr clamp_index(const Expr& index, const ir::SymInt& extent);
/// An index that is data (negative ones count from the end), checked against an axis of `extent`.
Expr checked_index(const Expr& index, const ir::SymInt& extent);
/// 0 <= index < extent
Expr in_range(const Expr& index, const ir::SymInt& extent);
/// Row-major position of `index` in `shape`.
Expr flatten_index(const std::vector<Expr>& index, const ir::SymShape& shape);
/// `index` without / with another expression at `axis`.
std::vector<Expr> replaced(std::vector<Expr> index, size_t axis, const Expr& value);

/// A stage that is `tensor` with `before[d]` and `after[d]` elements of `value` around each dimension d;
/// `tensor` itself when all are zero.
te::Tensor padded_stage(const std::string& name, const te::Tensor& tensor, const ir::SymShape& shape,
                        const ir::SymShape& before, const ir::SymShape& after, const Expr& value);

}  // namespace tensormill::ops
