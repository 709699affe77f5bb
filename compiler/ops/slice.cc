/// slice: a regular grid of elements, with steps of either sign.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::slice_ops {

std::vector<ir::OpDef> family();

namespace {

struct Grid {
  ir::Ints starts, extents, steps;
};

Grid read_grid(const ir::Attrs& attrs, size_t rank) {
  return {attr_ints(attrs, "starts", rank, 0, 0, kMaxTensorBytes),
          attr_ints(attrs, "extents", rank, 0, 0, kMaxTensorBytes),
          attr_ints(attrs, "steps", rank, 1, INT64_MIN, INT64_MAX)};
}

/// Fails unless the elements lie inside the axis.
void check_axis(size_t d, const ir::SymInt& axis, const ir::SymInt& start, const ir::SymInt& count,
                int64_t step) {
  int64_t hint = 0;
  const bool overflow = __builtin_mul_overflow(count.hint() - 1, step, &hint) ||
                        __builtin_add_overflow(hint, start.hint(), &hint);
  if (count.is_constant() && count.hint() == 0) return;
  // Where there are none, the place in front of the first one is no element and may be outside.
  const ir::SymInt last = overflow ? ir::SymInt(-1) : start + (count - 1) * step;
  const bool is_inside = step > 0 ? last < axis : start < axis && last >= 0;
  if (overflow || !is_inside) {
    fail("dimension " + std::to_string(d) + " with extent " + to_string(axis) + " has no " +
         to_string(count) + " elements from " + to_string(start) + " in steps of " + std::to_string(step));
  }
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const size_t rank = x.shape.size();
  static_cast<void>(attr_dims(context.attrs, "starts"));
  static_cast<void>(attr_dims(context.attrs, "extents"));
  const ir::SymShape starts = attr_dims(context.attrs, "starts", rank, 0, 0, kMaxTensorBytes);
  const ir::SymShape extents = attr_dims(context.attrs, "extents", rank, 0, 0, kMaxTensorBytes);
  const ir::Ints steps = attr_ints(context.attrs, "steps", rank, 1, INT64_MIN, INT64_MAX);
  for (size_t d = 0; d < rank; ++d) check_axis(d, x.shape[d], starts[d], extents[d], steps[d]);
  return {made_type(x.dtype, extents)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (context.outputs[0]->num_elements() == 0) return;
  const Grid grid = read_grid(context.attrs, x.shape().size());
  Shape strides = row_major_strides(x.shape());
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += grid.starts[d] * strides[d];
    // One element is never stepped from; its step may be anything.
    strides[d] = grid.extents[d] == 1 ? 0 : strides[d] * grid.steps[d];
  }
  strided_copy(x, *context.outputs[0], strides, offset);
}

bool part(ir::PartContext& context) {
  const ir::Part& wanted = context.wanted;
  Grid grid = read_grid(context.attrs, context.output.shape.size());
  const int64_t step = grid.steps[wanted.axis], start = grid.starts[wanted.axis];
  if (step < 1) return false;
  context.parts[0] = {wanted.axis, start + wanted.begin * step, start + (wanted.end - 1) * step + 1};
  grid.starts[wanted.axis] = 0;
  grid.extents[wanted.axis] = wanted.end - wanted.begin;
  context.changed.set("starts", grid.starts);
  context.changed.set("extents", grid.extents);
  return true;
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const size_t rank = out.shape.size();
  const ir::SymShape starts = attr_dims(context.attrs, "starts", rank, 0, 0, kMaxTensorBytes);
  const ir::Ints steps = attr_ints(context.attrs, "steps", rank, 1, INT64_MIN, INT64_MAX);
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> index;
    for (size_t d = 0; d < axes.size(); ++d) {
      const int64_t step = is_one(out.shape[d]) ? 1 : steps[d];
      const Expr scaled = step == 1 ? axes[d] : axes[d] * Expr(step);
      index.push_back(is_proven(ir::Relation::kEqual, starts[d], 0) ? scaled : scaled + Expr(starts[d]));
    }
    return te::read(context.inputs[0], index);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "slice";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "element i of dimension d is element starts[d] + i*steps[d], extents[d] of them; attributes starts, "
      "extents "
      "(ints, required, one per dimension, normalized: inside the input), steps (ints, 1; may be negative)";
  return {def};
}

}  // namespace tensormill::ops::slice_ops
