/// arg_top_k: positions of the first elements of a sorted axis.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::arg_top_k_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kNumeric);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", -1), x.shape.size());
  const ir::SymInt k = attr_dim(context.attrs, "k");
  static_cast<void>(attr_bool(context.attrs, "largest", true));
  if (!demand(ir::Relation::kLessEqual, 0, k) || !demand(ir::Relation::kLessEqual, k, x.shape[axis])) {
    fail("attribute k is " + to_string(k) + ", the axis has " + to_string(x.shape[axis]) + " elements");
  }
  ir::SymShape out = x.shape;
  out[axis] = k;
  return {made_type(DType::kInt64, out)};
}

/// Sorts positions by `greater` (or its mirror), ties by position.
template <typename T, typename Greater>
void sort_rows(const std::vector<T>& values, const AxisView& view, const ir::ReferenceContext& context,
               Greater&& greater) {
  const int64_t k = attr_int(context.attrs, "k");
  const bool largest = attr_bool(context.attrs, "largest", true);
  std::vector<int64_t> order(static_cast<size_t>(view.extent));
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const auto value = [&](int64_t i) {
        return values[static_cast<size_t>((outer * view.extent + i) * view.inner + inner)];
      };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return largest ? greater(value(a), value(b)) : greater(value(b), value(a));
      });
      for (int64_t i = 0; i < k; ++i)
        context.outputs[0]->set_element_int((outer * k + i) * view.inner + inner,
                                            order[static_cast<size_t>(i)]);
    }
  }
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (context.outputs[0]->num_elements() == 0) return;
  const AxisView view =
      view_axis(x.shape(), normal_axis(attr_int(context.attrs, "axis", -1), x.shape().size()));
  if (is_float(x.dtype())) {
    sort_rows(to_doubles(x), view, context,
              [](double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); });
  } else {
    const bool u = is_unsigned(x.dtype());
    sort_rows(to_ints(x), view, context, [u](int64_t a, int64_t b) { return int_less(b, a, u); });
  }
}

/// a > b in the order in which NaN is the largest.
Expr greater(const Expr& a, const Expr& b) {
  if (!a->type.is_float()) return a > b;
  return te::logical_or(a > b, te::logical_and(a != a, b == b));
}

/// The rank of each element is the number of elements before it; the element of rank k is the k-th:
/// independent elements, quadratic in the extent.
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& shape = context.input_types[0].shape;
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", -1), shape.size());
  const bool largest = attr_bool(context.attrs, "largest", true);
  const auto element = [&](const std::vector<Expr>& at) { return widen(te::read(context.inputs[0], at)); };
  const te::Tensor ranks =
      reduce_safe(context.name + "_ranks", te::ReduceOp::kSum, shape, {shape[axis]}, DType::kInt64,
                  [&](const std::vector<Expr>& axes, const std::vector<Expr>& j) {
                    const Expr own = element(axes), other = element(replaced(axes, axis, j[0]));
                    const Expr before = largest ? greater(other, own) : greater(own, other);
                    const Expr after = largest ? greater(own, other) : greater(other, own);
                    const Expr tie = te::logical_and(te::logical_not(after), j[0] < axes[axis]);
                    return te::select(te::logical_or(before, tie), Expr(1), Expr(0));
                  });
  return {reduce_safe(context.name, te::ReduceOp::kMax, out.shape, {shape[axis]}, DType::kInt64,
                      [&](const std::vector<Expr>& axes, const std::vector<Expr>& i) {
                        const Expr rank = te::read(ranks, replaced(axes, axis, i[0]));
                        return te::select(rank == axes[axis], i[0], Expr(0));
                      })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "arg_top_k";
  def.pattern = ir::Pattern::kOpaque;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "positions (i64) of the first k elements of x sorted along attribute axis (int, -1); attributes k "
      "(int, required), largest (bool, 1: in falling order); ties by position; NaN counts as the largest";
  ir::OpDef host;
  host.name = "sort_positions";
  host.min_inputs = host.max_inputs = 1;
  host.infer = &infer;
  host.reference = [](const ir::ReferenceContext& each) {
    run_host(host_ops::find_host_op("sort_positions"), each);
  };
  host.doc = "arg_top_k, on the host: sorted, where the kernel is quadratic";
  return {def, host};
}

}  // namespace tensormill::ops::arg_top_k_ops
