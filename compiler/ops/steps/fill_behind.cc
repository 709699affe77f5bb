/// fill_behind: an axis whose extent depends on data, its elements past the count replaced.
#include <limits>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::fill_behind_ops {

std::vector<ir::OpDef> family();

namespace {

/// kLast: what stands last in rising order, NaN or the largest integer.
enum class Filler : uint8_t { kZero, kOne, kLowest, kLargest, kLast };

Filler filler_of(const ir::Attrs& attrs) {
  const std::string name = attr_string(attrs, "with", "zero");
  if (name == "zero") return Filler::kZero;
  if (name == "one") return Filler::kOne;
  if (name == "lowest") return Filler::kLowest;
  if (name == "largest") return Filler::kLargest;
  if (name == "last") return Filler::kLast;
  fail("attribute with is \"" + name + "\", expected zero, one, lowest, largest or last");
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const Filler filler = filler_of(context.attrs);
  const ir::ValueType& x = filler == Filler::kZero ? input(context, 0) : input_of(context, 0, kNumeric);
  const ir::ValueType& count = input_of(context, 1, set_of(DType::kInt64));
  if (count.shape != ir::SymShape{1}) fail("the count has shape " + to_string(count.shape));
  static_cast<void>(normal_axis(attr_int(context.attrs, "axis"), x.shape.size()));
  return {made_type(x.dtype, x.shape)};
}

/// One element that the filler is.
Tensor filler_tensor(Filler filler, DType dtype) {
  Tensor tensor = Tensor::zeros(dtype, {1});
  if (filler == Filler::kOne) tensor.set_element_int(0, 1);
  if (filler == Filler::kOne && is_float(dtype)) tensor.set_element(0, 1);
  if (filler == Filler::kZero || filler == Filler::kOne) return tensor;
  const bool low = filler == Filler::kLowest;
  const DTypeInfo& info = dtype_info(dtype);
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double large = filler == Filler::kLast ? std::numeric_limits<double>::quiet_NaN() : infinity;
    tensor.set_element(0, low ? -infinity : large);
  } else if (info.is_signed) {
    const int64_t limit = low ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    tensor.set_element_int(0, limit >> (64 - info.bits));
  } else if (!low) {
    tensor.set_element_int(0, -1);
  }
  return tensor;
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), x.shape().size());
  const int64_t count = context.inputs[1]->element_as_int(0);
  const Tensor filler = filler_tensor(filler_of(context.attrs), x.dtype());
  for_each_index(x.shape(), [&](int64_t position, const Shape& index) {
    const bool kept = index[axis] < count;
    copy_element(kept ? x : filler, kept ? position : 0, *context.outputs[0], position);
  });
}

Expr filler_expr(Filler filler, DType dtype, const Expr& like) {
  if (filler == Filler::kLowest) return lowest_of(dtype);
  if (filler == Filler::kLast && is_float(dtype))
    return te::float_imm(dtype, std::numeric_limits<double>::quiet_NaN());
  if (filler == Filler::kLargest || filler == Filler::kLast) return largest_of(dtype);
  return constant_like(like, filler == Filler::kOne ? 1 : 0);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), out.shape.size());
  const Filler filler = filler_of(context.attrs);
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr value = te::read(context.inputs[0], axes);
    const Expr count = te::read(context.inputs[1], {Expr(0)});
    return te::select(axes[axis] < count, value, filler_expr(filler, out.dtype, value));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "fill_behind";
  def.min_inputs = def.max_inputs = 2;
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x, its elements along attribute axis (int, required) from the count (input 1, i64 [1]) on replaced by "
      "attribute with (string: zero, one, lowest, largest, last in rising order; zero, of any type that one)";
  return {def};
}

}  // namespace tensormill::ops::fill_behind_ops
