/// arg_max, arg_min: where along an axis the largest or smallest value stands.
#include <cmath>
#include <limits>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::arg_reduce_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kNumeric);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.shape.size());
  static_cast<void>(attr_bool(context.attrs, "select_last", false));
  if (x.shape[axis] == 0) fail("axis " + std::to_string(axis) + " has extent 0, expected at least 1");
  ir::SymShape out = x.shape;
  if (attr_bool(context.attrs, "keepdims", true)) {
    out[axis] = 1;
  } else {
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return {made_type(DType::kInt64, out)};
}

/// Whether `next` takes the place of `best`: NaN stands above (below) every number.
template <bool largest>
bool better(const Tensor& x, int64_t next, int64_t best, bool last) {
  if (is_float(x.dtype())) {
    const double a = x.element_as_double(next), b = x.element_as_double(best);
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && (last || !std::isnan(b));
    return (largest ? a > b : a < b) || (last && a == b);
  }
  const int64_t a = x.element_as_int(next), b = x.element_as_int(best);
  const bool u = is_unsigned(x.dtype());
  return (largest ? int_less(b, a, u) : int_less(a, b, u)) || (last && a == b);
}

template <bool largest>
void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const AxisView view =
      view_axis(x.shape(), normal_axis(attr_int(context.attrs, "axis", 0), x.shape().size()));
  const bool last = attr_bool(context.attrs, "select_last", false);
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const auto position = [&](int64_t k) { return (outer * view.extent + k) * view.inner + inner; };
      int64_t best = 0;
      for (int64_t k = 1; k < view.extent; ++k) {
        if (better<largest>(x, position(k), position(best), last)) best = k;
      }
      context.outputs[0]->set_element_int(outer * view.inner + inner, best);
    }
  }
}

/// The best value of a row, then the first (or last) place that has it: two reductions of single values,
/// which become vectors, where one of pairs would go element by element.
template <bool largest>
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::SymShape& x = context.input_types[0].shape;
  const ir::ValueType& out = context.output_types[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.size());
  const bool keepdims = attr_bool(context.attrs, "keepdims", true);
  if (is_empty(out.shape)) {
    return {te::compute(context.name, out.shape.exprs(), [](const std::vector<Expr>&) { return Expr(0); })};
  }
  // Results of one element have an axis while they are summed up, along which nothing runs.
  const ir::SymShape rows = out.shape.empty() ? ir::SymShape{1} : out.shape;
  const auto element = [&](const std::vector<Expr>& row, const Expr& k) {
    std::vector<Expr> index = out.shape.empty() ? std::vector<Expr>{} : row;
    if (keepdims) {
      index[axis] = k;
    } else {
      index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), k);
    }
    return widen(te::read(context.inputs[0], index));
  };
  const te::Tensor best =
      te::reduce(context.name + "_best", largest ? te::ReduceOp::kMax : te::ReduceOp::kMin, rows.exprs(),
                 {Expr(x[axis])}, [&](const auto& row, const auto& k) { return element(row, k[0]); });
  const bool last = attr_bool(context.attrs, "select_last", false);
  const bool is_short = is_proven(ir::Relation::kLessEqual, x[axis], std::numeric_limits<int32_t>::max());
  const DType dtype = is_short ? DType::kInt32 : DType::kInt64;
  const int64_t most = is_short ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
  const te::Tensor place =
      te::reduce(context.name, last ? te::ReduceOp::kMax : te::ReduceOp::kMin, rows.exprs(), {Expr(x[axis])},
                 [&](const std::vector<Expr>& row, const std::vector<Expr>& k) {
                   const Expr own = element(row, k[0]), wanted = te::read(best, row);
                   Expr is_best = own == wanted;
                   if (own->type.is_float())
                     is_best = te::logical_or(is_best, te::logical_and(own != own, wanted != wanted));
                   return te::select(is_best, te::cast(dtype, k[0]), te::int_imm(dtype, last ? -1 : most));
                 });
  return {te::compute(context.name + "_out", out.shape.exprs(), [&](const std::vector<Expr>& to) {
    return te::cast(DType::kInt64, te::read(place, to.empty() ? std::vector<Expr>{Expr(0)} : to));
  })};
}

template <bool largest>
ir::OpDef define(std::string_view name, std::string_view doc) {
  ir::OpDef def;
  def.name = name;
  def.pattern = ir::Pattern::kComplex;
  def.infer = &infer;
  def.reference = &reference<largest>;
  def.compute = &compute<largest>;
  def.doc = doc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
      define<true>(
          "arg_max",
          "i64 index of the largest value along attribute axis (int, 0); a NaN is larger than everything; "
          "attributes keepdims (bool, 1), select_last (bool, 0: the first of equal values)"),
      define<false>(
          "arg_min",
          "i64 index of the smallest value; a NaN is smaller than everything; attributes as arg_max")};
}

}  // namespace tensormill::ops::arg_reduce_ops
