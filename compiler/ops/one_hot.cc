/// one_hot: indices as rows with one distinguished element.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::one_hot_ops {

std::vector<ir::OpDef> family();

namespace {

size_t new_axis(const ir::Attrs& attrs, size_t rank) {
  return normal_axis(attr_int(attrs, "axis", -1), rank + 1);
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& indices = input_of(context, 0, kNumeric);
  const ir::ValueType& values = input(context, 1);
  if (values.shape != ir::SymShape{2})
    fail("input 1 has shape " + to_string(values.shape) + ", expected [2]");
  const ir::SymInt depth = attr_dim(context.attrs, "depth");
  if (depth < 0) fail("attribute depth is " + to_string(depth) + ", expected at least 0");
  ir::SymShape out = indices.shape;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(new_axis(context.attrs, indices.shape.size())), depth);
  return {made_type(values.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& indices = *context.inputs[0];
  const Tensor& values = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const AxisView view = view_axis(out.shape(), new_axis(context.attrs, indices.shape().size()));
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t from = i / view.inner / view.extent * view.inner + i % view.inner;
    int64_t hot = is_float(indices.dtype()) ? saturate_to(DType::kInt64, indices.element_as_double(from))
                                            : indices.element_as_int(from);
    if (hot < 0) hot += view.extent;
    copy_element(values, hot == i / view.inner % view.extent ? 1 : 0, out, i);
  }
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const size_t axis = new_axis(context.attrs, context.input_types[0].shape.size());
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> at = axes;
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    const Expr index = narrow(te::read(context.inputs[0], at), DType::kInt64);
    const Expr hot = te::select(index < Expr(0), index + Expr(out.shape[axis]), index);
    return te::select(hot == axes[axis], te::read(context.inputs[1], {Expr(1)}),
                      te::read(context.inputs[1], {Expr(0)}));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "one_hot";
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "inputs indices (numeric), values [2] (off, on): a new dimension at attribute axis (int, -1) with "
      "attribute depth (int, required) elements: on where its position is the index (negative ones count "
      "from the end), else off; an index out of range gives off everywhere";
  return {def};
}

}  // namespace tensormill::ops::one_hot_ops
