/// split: a tensor cut into parts along an axis.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::split_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), x.shape.size());
  const ir::SymShape sizes = attr_dims(context.attrs, "sizes");
  if (sizes.empty()) fail("attribute sizes is empty, expected at least 1 value");
  std::vector<ir::ValueType> types;
  ir::SymInt rest = x.shape[axis], total = 0;
  for (const ir::SymInt& size : sizes) {
    const bool are_numbers = size.is_constant() && rest.is_constant();
    if (!demand(ir::Relation::kLessEqual, 0, size) || (are_numbers && size > rest)) {
      fail("attribute sizes has the value " + to_string(size) + ", " + to_string(rest) + " of " +
           to_string(x.shape[axis]) + " elements are left");
    }
    rest -= size;
    total += size;
    ir::SymShape part = x.shape;
    part[axis] = size;
    types.push_back(made_type(x.dtype, part));
  }
  if (!demand(ir::Relation::kEqual, x.shape[axis], total))
    fail("attribute sizes covers " + to_string(total) + " of " + to_string(x.shape[axis]) + " elements");
  return types;
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), x.shape().size());
  const Shape strides = row_major_strides(x.shape());
  int64_t start = 0;
  for (Tensor* part : context.outputs) {
    strided_copy(x, *part, strides, start * strides[axis]);
    start += part->shape()[axis];
  }
}

TeOutputs compute(const ir::ComputeContext& context) {
  TeOutputs outputs;
  ir::SymInt start = 0;
  for (size_t i = 0; i < context.output_types.size(); ++i) {
    const ir::ValueType& out = context.output_types[i];
    const size_t axis = normal_axis(attr_int(context.attrs, "axis"), out.shape.size());
    outputs.push_back(compute_safe(
        context.name + "_" + std::to_string(i), out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
          return te::read(context.inputs[0], replaced(axes, axis, axes[axis] + Expr(start)));
        }));
    start += out.shape[axis];
  }
  return outputs;
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "split";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x cut along attribute axis (int, required) into parts of attribute sizes (ints, required, their sum "
      "is the extent); one output a part";
  return {def};
}

}  // namespace tensormill::ops::split_ops
