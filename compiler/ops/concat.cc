/// concat: tensors one after the other along an axis.
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::concat_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& first = input(context, 0);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), first.shape.size());
  ir::SymShape out = first.shape;
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    const ir::ValueType& next = input_like_first(context, i);
    bool fits = next.shape.size() == out.size();
    for (size_t d = 0; fits && d < out.size(); ++d)
      fits = d == axis || demand(ir::Relation::kEqual, next.shape[d], out[d]);
    if (!fits) {
      fail("input " + std::to_string(i) + " has shape " + to_string(next.shape) + ", input 0 has " +
           to_string(first.shape) + "; they differ outside of axis " + std::to_string(axis));
    }
    out[axis] += next.shape[axis];
    static_cast<void>(made_type(first.dtype, out));
  }
  return {made_type(first.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), out.shape().size());
  const AxisView target = view_axis(out.shape(), axis);
  int64_t start = 0;
  for (const Tensor* part : context.inputs) {
    const int64_t row = part->shape()[axis] * target.inner;
    for (int64_t i = 0; i < part->num_elements(); ++i) {
      copy_element(*part, i, out, (i / row * target.extent + start) * target.inner + i % row);
    }
    start += part->shape()[axis];
  }
}

bool part(ir::PartContext& context) {
  return part_beside_axis(context, normal_axis(attr_int(context.attrs, "axis"), context.output.shape.size()));
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), out.shape.size());
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    // From the last part to the first: select(axis < end of part, part, the parts after it).
    Expr value;
    ir::SymInt end = out.shape[axis];
    for (size_t i = context.inputs.size(); i-- > 0;) {
      const ir::SymInt& extent = context.input_types[i].shape[axis];
      const ir::SymInt start = end - extent;
      if (is_empty({extent})) continue;
      const Expr at = clamp_index(axes[axis] - Expr(start), extent);
      const bool is_whole = is_proven(ir::Relation::kEqual, extent, out.shape[axis]);
      const Expr part = te::read(context.inputs[i], replaced(axes, axis, is_whole ? axes[axis] : at));
      value = value ? te::select(axes[axis] < Expr(end), part, value) : part;
      end = start;
    }
    return value;
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "concat";
  def.max_inputs = -1;
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc = "inputs (one or more) one after the other along attribute axis (int, required)";
  return {def};
}

}  // namespace tensormill::ops::concat_ops
