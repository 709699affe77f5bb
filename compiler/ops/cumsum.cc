/// cumsum, cumprod: running sums and products along an axis.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::cumsum_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats | kWideInts);
  static_cast<void>(normal_axis(attr_int(context.attrs, "axis"), x.shape.size()));
  static_cast<void>(attr_bool(context.attrs, "exclusive", false));
  static_cast<void>(attr_bool(context.attrs, "reverse", false));
  return {made_type(x.dtype, x.shape)};
}

/// Replaces each value by the combination of `first` and all up to it.
template <typename T, typename Combine>
void run(std::vector<T>& values, const AxisView& view, const ir::Attrs& attrs, T first, Combine&& combine) {
  const bool exclusive = attr_bool(attrs, "exclusive", false), reverse = attr_bool(attrs, "reverse", false);
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      T total = first;
      for (int64_t k = 0; k < view.extent; ++k) {
        const int64_t at = reverse ? view.extent - 1 - k : k;
        T& value = values[static_cast<size_t>((outer * view.extent + at) * view.inner + inner)];
        const T next = combine(total, value);
        value = exclusive ? total : next;
        total = next;
      }
    }
  }
}

template <bool kProduct>
void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (x.num_elements() == 0) return;
  const AxisView view = view_axis(x.shape(), normal_axis(attr_int(context.attrs, "axis"), x.shape().size()));
  if (is_float(x.dtype())) {
    std::vector<double> values = to_doubles(x);
    run(values, view, context.attrs, kProduct ? 1.0 : 0.0,
        [](double a, double b) { return kProduct ? a * b : a + b; });
    store_doubles(*context.outputs[0], values);
  } else {
    std::vector<int64_t> values = to_ints(x);
    run(values, view, context.attrs, int64_t{kProduct}, kProduct ? int_mul : int_add);
    store_ints(*context.outputs[0], values);
  }
}

/// Each element combines its own prefix: independent elements, quadratic in the extent.
template <bool kProduct>
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), out.shape.size());
  const bool exclusive = attr_bool(context.attrs, "exclusive", false);
  const bool reverse = attr_bool(context.attrs, "reverse", false);
  const te::Tensor totals = reduce_safe(
      context.name, kProduct ? te::ReduceOp::kProduct : te::ReduceOp::kSum, out.shape, {out.shape[axis]},
      compute_dtype(out.dtype), [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
        const Expr& from = reverse ? axes[axis] : k[0];
        const Expr& to = reverse ? k[0] : axes[axis];
        const Expr value = widen(te::read(context.inputs[0], replaced(axes, axis, k[0])));
        return te::select(exclusive ? from < to : from <= to, value, constant_like(value, kProduct ? 1 : 0));
      });
  return {narrow_stage(context.name + "_out", totals, out.shape, out.dtype)};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef sum;
  sum.name = "cumsum";
  sum.pattern = ir::Pattern::kComplex;
  sum.tolerance = 1e-5;
  sum.infer = &infer;
  sum.reference = &reference<false>;
  sum.compute = &compute<false>;
  sum.doc =
      "running sum along attribute axis (int, required); attributes exclusive (bool, 0: the element itself "
      "counts), reverse (bool, 0); integers wrap";
  ir::OpDef product = sum;
  product.name = "cumprod";
  product.reference = &reference<true>;
  product.compute = &compute<true>;
  product.doc =
      "running product along attribute axis (int, required); attributes exclusive (bool, 0: the element "
      "itself counts), reverse (bool, 0); integers wrap";
  return {sum, product};
}

}  // namespace tensormill::ops::cumsum_ops
