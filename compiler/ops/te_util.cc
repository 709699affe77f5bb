#include "compiler/ops/te_util.h"
#include "runtime/base/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensormill::ops {

DType compute_dtype(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

Expr widen(const Expr& value) { return narrow(value, compute_dtype(value->type.dtype)); }

Expr weight_exp(const Expr& difference) {
  // Of up to 2^24 weights of a row the largest is divided by as many at most: what is less than so many times
  // the smallest normal number may be none then, and is far below the rounding of the largest.
  const double least = difference->type.dtype == DType::kFloat64 ? std::numeric_limits<double>::min()
                                                                 : std::numeric_limits<float>::min();
  const Expr least_power = constant_like(difference, std::log(least * 0x1p24));
  return te::select(difference < least_power, constant_like(difference, 0),
                    te::make(te::ExprOp::kExp, {difference}));
}

Expr narrow(const Expr& value, DType dtype) {
  const DType stored = storage_dtype(dtype);
  return value->type.dtype == stored ? value : te::cast(stored, value);
}

Expr constant_like(const Expr& like, double value) { return te::imm_like(like->type, value); }

Expr count_of(const ir::SymInt& count, DType dtype) {
  return count.is_constant() ? te::imm_like({dtype, 1}, static_cast<double>(count.hint()))
                             : te::cast(dtype, Expr(count));
}

Expr share_of(const ir::SymInt& count, DType dtype) {
  if (!count.is_constant()) return te::imm_like({dtype, 1}, 1) / count_of(count, dtype);
  return te::imm_like({dtype, 1}, count.hint() > 0 ? 1 / static_cast<double>(count.hint()) : 0);
}

Expr largest_of(DType dtype) {
  if (is_float(dtype)) return te::float_imm(dtype, std::numeric_limits<double>::infinity());
  const DTypeInfo& info = dtype_info(dtype);
  if (dtype == DType::kBool) return te::bool_imm(true);
  if (!info.is_signed) return te::int_imm(dtype, -1);
  return te::int_imm(dtype, std::numeric_limits<int64_t>::max() >> (64 - info.bits));
}

Expr lowest_of(DType dtype) {
  if (is_float(dtype)) return te::float_imm(dtype, -std::numeric_limits<double>::infinity());
  const DTypeInfo& info = dtype_info(dtype);
  if (dtype == DType::kBool) return te::bool_imm(false);
  if (!info.is_signed) return te::int_imm(dtype, 0);
  return te::int_imm(dtype, std::numeric_limits<int64_t>::min() >> (64 - info.bits));
}

bool is_one(const ir::SymInt& extent) { return is_proven(ir::Relation::kEqual, extent, 1); }

bool is_empty(const ir::SymShape& shape) {
  return std::any_of(shape.begin(), shape.end(),
                     [](const ir::SymInt& extent) { return is_proven(ir::Relation::kEqual, extent, 0); });
}

te::Tensor compute_safe(const std::string& name, const ir::SymShape& shape, DType dtype,
                        const std::function<Expr(const std::vector<Expr>&)>& body) {
  if (is_empty(shape)) {
    return te::compute(name, shape.exprs(), [&](const std::vector<Expr>&) {
      return te::imm_like({storage_dtype(dtype), 1}, 0);
    });
  }
  return te::compute(name, shape.exprs(), body);
}

namespace {

Expr identity_of(te::ReduceOp op, DType dtype) {
  switch (op) {
    case te::ReduceOp::kSum:
      return te::imm_like({dtype, 1}, 0);
    case te::ReduceOp::kProduct:
      return te::imm_like({dtype, 1}, 1);
    case te::ReduceOp::kMin:
      return largest_of(dtype);
    case te::ReduceOp::kMax:
      return lowest_of(dtype);
  }
  return te::imm_like({dtype, 1}, 0);
}

}  // namespace

TeOutputs compute_copy(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  return {compute_safe(context.name, out.shape, out.dtype,
                       [&](const std::vector<Expr>& axes) { return te::read(context.inputs[0], axes); })};
}

te::Tensor reduce_safe(const std::string& name, te::ReduceOp op, const ir::SymShape& shape,
                       const ir::SymShape& extents, DType dtype,
                       const std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>& body) {
  if (is_empty(shape) || is_empty(extents)) {
    return te::compute(name, shape.exprs(), [&](const std::vector<Expr>&) { return identity_of(op, dtype); });
  }
  return te::reduce(name, op, shape.exprs(), extents.exprs(), body);
}

te::Tensor narrow_stage(const std::string& name, const te::Tensor& tensor, const ir::SymShape& shape,
                        DType dtype) {
  if (tensor->dtypes[0] == dtype) return tensor;
  return compute_safe(name, shape, dtype,
                      [&](const std::vector<Expr>& axes) { return te::cast(dtype, te::read(tensor, axes)); });
}

Expr broadcast_index(const ir::SymInt& extent, const ir::SymInt& out, const Expr& axis) {
  if (is_one(extent)) return Expr(0);
  if (same(extent, out) || is_proven(ir::Relation::kEqual, extent, out)) return axis;
  // Which of the two it is only the run says.
  return te::min(axis, Expr(extent - 1));
}

Expr read_broadcast(const te::Tensor& tensor, const ir::SymShape& shape, const ir::SymShape& out,
                    const std::vector<Expr>& axes) {
  std::vector<Expr> index;
  const size_t skipped = axes.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    index.push_back(broadcast_index(shape[i], out[skipped + i], axes[skipped + i]));
  return te::read(tensor, index);
}

Expr checked_index(const Expr& index, const ir::SymInt& extent) {
  const Expr wide = narrow(index, DType::kInt64);
  return te::check_index(te::select(wide < Expr(0), wide + Expr(extent), wide), Expr(extent));
}

Expr clamp_index(const Expr& index, const ir::SymInt& extent) {
  return te::max(te::min(index, Expr(extent - 1)), Expr(0));
}

Expr in_range(const Expr& index, const ir::SymInt& extent) {
  return te::logical_and(index >= Expr(0), index < Expr(extent));
}

Expr flatten_index(const std::vector<Expr>& index, const ir::SymShape& shape) {
  Expr position;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (is_one(shape[i])) continue;
    position = position ? position * Expr(shape[i]) + index[i] : index[i];
  }
  return position ? position : Expr(0);
}

std::vector<Expr> replaced(std::vector<Expr> index, size_t axis, const Expr& value) {
  index[axis] = value;
  return index;
}

te::Tensor padded_stage(const std::string& name, const te::Tensor& tensor, const ir::SymShape& shape,
                        const ir::SymShape& before, const ir::SymShape& after, const Expr& value) {
  const auto is_none = [](const ir::SymInt& pad) { return is_proven(ir::Relation::kEqual, pad, 0); };
  const auto is_cut = [](const ir::SymInt& pad) { return is_proven(ir::Relation::kLessEqual, pad, 0); };
  if (std::all_of(before.begin(), before.end(), is_none) && std::all_of(after.begin(), after.end(), is_none))
    return tensor;
  ir::SymShape padded = shape;
  for (size_t d = 0; d < shape.size(); ++d) padded[d] += before[d] + after[d];
  const bool empty = is_empty(shape);
  return compute_safe(name, padded, tensor->dtypes[0], [&](const std::vector<Expr>& axes) {
    if (empty) return value;
    Expr inside = te::bool_imm(true);
    std::vector<Expr> index = axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (is_none(before[d]) && is_none(after[d])) continue;
      const Expr at = axes[d] - Expr(before[d]);
      Expr within = in_range(at, shape[d]);
      if (is_cut(before[d])) within = at < Expr(shape[d]);
      if (is_cut(after[d])) within = at >= Expr(0);
      if (!is_cut(before[d]) || !is_cut(after[d])) inside = te::logical_and(inside, within);
      index[d] = clamp_index(at, shape[d]);
    }
    return te::select(inside, te::read(tensor, index), value);
  });
}

}  // namespace tensormill::ops
