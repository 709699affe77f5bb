/// reduce_*: reductions over axes.
#include <cmath>
#include <limits>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::reduce_ops {

std::vector<ir::OpDef> family();

namespace {

enum class Kind : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Which input dimensions are reduced, and the result with and without them.
template <typename Dims>
struct Axes {
  using Int = typename Dims::value_type;
  std::vector<bool> reduced;
  bool keepdims;
  Int count = 1;  ///< elements that go into one result
  Dims kept;      ///< the input's shape with 1 at reduced dimensions
  Dims output;
  Dims stage;  ///< the output, with an axis where it has none: along it nothing runs
};

/// The index into `stage` for one into the output.
std::vector<Expr> in_stage(const std::vector<Expr>& to) {
  return to.empty() ? std::vector<Expr>{Expr(0)} : to;
}

template <typename Dims>
Axes<Dims> read_axes(const ir::Attrs& attrs, const Dims& x) {
  Axes<Dims> axes;
  axes.keepdims = attr_bool(attrs, "keepdims", true);
  axes.reduced.assign(x.size(), false);
  for (const size_t axis : normal_axes(attrs, x.size())) axes.reduced[axis] = true;
  for (size_t d = 0; d < x.size(); ++d) {
    axes.kept.push_back(axes.reduced[d] ? typename Axes<Dims>::Int(1) : x[d]);
    if (axes.reduced[d]) axes.count *= x[d];
    if (!axes.reduced[d] || axes.keepdims) axes.output.push_back(axes.kept.back());
  }
  axes.stage = axes.output.empty() ? Dims{1} : axes.output;
  return axes;
}

constexpr DTypeSet types_of(Kind kind) {
  switch (kind) {
    case Kind::kMax:
    case Kind::kMin:
      return kNumeric;
    case Kind::kL2:
    case Kind::kLogSum:
    case Kind::kLogSumExp:
      return kFloats;
    default:
      return kFloats | kWideInts;
  }
}

constexpr te::ReduceOp combination(Kind kind) {
  if (kind == Kind::kMax) return te::ReduceOp::kMax;
  if (kind == Kind::kMin) return te::ReduceOp::kMin;
  return kind == Kind::kProd ? te::ReduceOp::kProduct : te::ReduceOp::kSum;
}

template <Kind kind>
std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, types_of(kind));
  const bool keepdims = attr_bool(context.attrs, "keepdims", true);
  ir::SymShape out = x.shape;
  const std::vector<size_t> axes = normal_axes(context.attrs, out.size());
  for (size_t i = axes.size(); i-- > 0;) {
    out[axes[i]] = 1;
    if (!keepdims) out.erase(out.begin() + static_cast<std::ptrdiff_t>(axes[i]));
  }
  return {made_type(x.dtype, out)};
}

double combine(Kind kind, double sum, double x) {
  switch (kind) {
    case Kind::kMax:
      return max_double(sum, x);
    case Kind::kMin:
      return min_double(sum, x);
    case Kind::kProd:
      return sum * x;
    case Kind::kL1:
      return sum + std::fabs(x);
    case Kind::kL2:
    case Kind::kSumSquare:
      return sum + x * x;
    default:
      return sum + x;
  }
}

double finish(Kind kind, double sum, int64_t count) {
  switch (kind) {
    case Kind::kMean:
      return sum / static_cast<double>(count);
    case Kind::kL2:
      return std::sqrt(sum);
    case Kind::kLogSum:
      return std::log(sum);
    default:
      return sum;
  }
}

double identity(Kind kind) {
  return kind == Kind::kMax ? -kInfinity : kind == Kind::kMin ? kInfinity : kind == Kind::kProd ? 1 : 0;
}

/// Folds `values` (of shape x) into one accumulator per result.
template <typename T, typename F>
std::vector<T> fold(const std::vector<T>& values, const Shape& x, const Axes<Shape>& axes, T start,
                    F&& combine_values) {
  std::vector<T> sums(static_cast<size_t>(num_elements(axes.kept)), start);
  const std::array<Shape, 1> strides = {broadcast_strides(axes.kept, x)};
  for_each_strided<1>(x, strides, [&](int64_t position, const std::array<int64_t, 1>& to) {
    T& sum = sums[static_cast<size_t>(to[0])];
    sum = combine_values(sum, values[static_cast<size_t>(position)], to[0]);
  });
  return sums;
}

template <Kind kind>
std::vector<double> reduce_doubles(const Tensor& x, const Axes<Shape>& axes) {
  const std::vector<double> values = to_doubles(x);
  if constexpr (kind == Kind::kLogSumExp) {
    std::vector<double> shifts =
        fold(values, x.shape(), axes, -kInfinity,
             [](double most, double value, int64_t) { return max_double(most, value); });
    for (double& shift : shifts) shift = std::isinf(shift) ? 0 : shift;
    std::vector<double> sums = fold(values, x.shape(), axes, 0.0, [&](double sum, double value, int64_t to) {
      return sum + std::exp(value - shifts[static_cast<size_t>(to)]);
    });
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = std::log(sums[i]) + shifts[i];
    return sums;
  } else {
    std::vector<double> sums =
        fold(values, x.shape(), axes, identity(kind),
             [](double sum, double value, int64_t) { return combine(kind, sum, value); });
    for (double& sum : sums) sum = finish(kind, sum, axes.count);
    return sums;
  }
}

int64_t combine_int(Kind kind, int64_t sum, int64_t x, bool u) {
  switch (kind) {
    case Kind::kMax:
      return int_less(sum, x, u) ? x : sum;
    case Kind::kMin:
      return int_less(x, sum, u) ? x : sum;
    case Kind::kProd:
      return int_mul(sum, x);
    case Kind::kL1:
      return int_add(sum, !u && x < 0 ? int_sub(0, x) : x);
    case Kind::kSumSquare:
      return int_add(sum, int_mul(x, x));
    default:
      return int_add(sum, x);
  }
}

template <Kind kind>
void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Axes<Shape> axes = read_axes(context.attrs, x.shape());
  if (is_float(x.dtype())) {
    store_doubles(out, reduce_doubles<kind>(x, axes));
    return;
  }
  const bool u = is_unsigned(x.dtype());
  store_ints(out,
             fold(to_ints(x), x.shape(), axes,
                  kind == Kind::kMax || kind == Kind::kMin ? saturate_to(x.dtype(), identity(kind))
                                                           : static_cast<int64_t>(identity(kind)),
                  [u](int64_t sum, int64_t value, int64_t) { return combine_int(kind, sum, value, u); }));
  if constexpr (kind == Kind::kMean) {
    Tensor divisor(x.dtype(), {1});
    divisor.set_element_int(0, axes.count);
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      // Read back: the sum has wrapped to the dtype before it is divided.
      out.set_element_int(i, int_div(out.element_as_int(i), divisor.element_as_int(0), u));
    }
  }
}

bool part(ir::PartContext& context) {
  const auto axes = read_axes(context.attrs, context.inputs[0]->shape);
  // Reduced dimensions are none of the output's, or have one element there.
  for (size_t d = 0, at = 0; d < axes.reduced.size(); ++d) {
    if (axes.reduced[d] && !axes.keepdims) continue;
    if (at++ != context.wanted.axis) continue;
    if (axes.reduced[d]) return false;
    context.parts[0] = {d, context.wanted.begin, context.wanted.end};
    return true;
  }
  return false;
}

Expr prepared(Kind kind, const Expr& x) {
  if (kind == Kind::kL1) return te::make(te::ExprOp::kAbs, {x});
  if (kind == Kind::kL2 || kind == Kind::kSumSquare) return x * x;
  return x;
}

Expr finished(Kind kind, const Expr& sum, const ir::SymInt& count) {
  switch (kind) {
    case Kind::kMean:
      return sum / (sum->type.is_float() || !count.is_constant()
                        ? count_of(count, sum->type.dtype)
                        : te::int_imm(sum->type.dtype, count.hint()));
    case Kind::kL2:
      return te::make(te::ExprOp::kSqrt, {sum});
    case Kind::kLogSum:
      return te::make(te::ExprOp::kLog, {sum});
    default:
      return sum;
  }
}

/// A reduction stage of x, with body(element, result index) as its summand.
template <typename F>
te::Tensor reduce_stage(const ir::ComputeContext& context, const std::string& name,
                        const Axes<ir::SymShape>& axes, te::ReduceOp op, F&& body) {
  const ir::SymShape& x = context.input_types[0].shape;
  ir::SymShape extents;
  for (size_t d = 0; d < x.size(); ++d) {
    if (axes.reduced[d]) extents.push_back(x[d]);
  }
  // A reduction has at least one axis.
  if (extents.empty()) extents.push_back(1);
  return reduce_safe(name, op, axes.stage, extents, compute_dtype(context.input_types[0].dtype),
                     [&](const std::vector<Expr>& to, const std::vector<Expr>& over) {
                       std::vector<Expr> index;
                       size_t next_to = 0, next_over = 0;
                       for (size_t d = 0; d < x.size(); ++d) {
                         index.push_back(axes.reduced[d] ? over[next_over++] : to[next_to]);
                         if (!axes.reduced[d] || axes.keepdims) ++next_to;
                       }
                       return body(widen(te::read(context.inputs[0], index)), to);
                     });
}

TeOutputs compute_log_sum_exp(const ir::ComputeContext& context, const Axes<ir::SymShape>& axes) {
  const ir::ValueType& out = context.output_types[0];
  const te::Tensor most = reduce_stage(context, context.name + "_max", axes, te::ReduceOp::kMax,
                                       [](const Expr& x, const std::vector<Expr>&) { return x; });
  // An infinite maximum would give inf - inf.
  const auto shift = [&](const std::vector<Expr>& to) {
    const Expr value = te::read(most, in_stage(to));
    const Expr infinite = te::make(te::ExprOp::kAbs, {value}) == largest_of(value->type.dtype);
    return te::select(infinite, constant_like(value, 0), value);
  };
  const te::Tensor sums = reduce_stage(context, context.name, axes, te::ReduceOp::kSum,
                                       [&](const Expr& x, const std::vector<Expr>& to) {
                                         return te::make(te::ExprOp::kExp, {x - shift(to)});
                                       });
  return {compute_safe(context.name + "_out", out.shape, out.dtype, [&](const std::vector<Expr>& to) {
    return narrow(te::make(te::ExprOp::kLog, {te::read(sums, in_stage(to))}) + shift(to), out.dtype);
  })};
}

template <Kind kind>
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const Axes<ir::SymShape> axes = read_axes(context.attrs, context.input_types[0].shape);
  if constexpr (kind == Kind::kLogSumExp) {
    return compute_log_sum_exp(context, axes);
  } else {
    const te::Tensor sums =
        reduce_stage(context, context.name, axes, combination(kind),
                     [](const Expr& x, const std::vector<Expr>&) { return prepared(kind, x); });
    const bool has_end = kind == Kind::kMean || kind == Kind::kL2 || kind == Kind::kLogSum;
    if (!has_end && !out.shape.empty()) {
      return {narrow_stage(context.name + "_out", sums, out.shape, out.dtype)};
    }
    return {compute_safe(context.name + "_out", out.shape, out.dtype, [&](const std::vector<Expr>& to) {
      return narrow(finished(kind, te::read(sums, in_stage(to)), axes.count), out.dtype);
    })};
  }
}

template <Kind kind>
ir::OpDef define(std::string_view name, std::string_view doc) {
  ir::OpDef def;
  def.name = name;
  def.pattern = kind == Kind::kLogSumExp ? ir::Pattern::kComplex : ir::Pattern::kReduction;
  def.tolerance = kind == Kind::kMax || kind == Kind::kMin ? 0 : 1e-5;
  def.infer = &infer<kind>;
  def.reference = &reference<kind>;
  def.part = &part;
  def.compute = &compute<kind>;
  def.doc = doc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
      define<Kind::kSum>(
          "reduce_sum",
          "sum over attribute axes (ints, all when missing; [] reduces nothing); attribute keepdims "
          "(bool, 1); integers wrap"),
      define<Kind::kMean>("reduce_mean", "mean; attributes as reduce_sum; integers divide toward zero"),
      define<Kind::kMax>("reduce_max", "largest value, NaN if there is one; attributes as reduce_sum"),
      define<Kind::kMin>("reduce_min", "smallest value, NaN if there is one; attributes as reduce_sum"),
      define<Kind::kProd>("reduce_prod", "product; attributes as reduce_sum; integers wrap"),
      define<Kind::kL1>("reduce_l1", "sum of absolute values; attributes as reduce_sum"),
      define<Kind::kL2>("reduce_l2", "square root of the sum of squares; attributes as reduce_sum"),
      define<Kind::kSumSquare>("reduce_sum_square", "sum of squares; attributes as reduce_sum"),
      define<Kind::kLogSum>("reduce_log_sum", "log of the sum; attributes as reduce_sum"),
      define<Kind::kLogSumExp>(
          "reduce_log_sum_exp",
          "log of the sum of e^x, shifted by the largest value; attributes as reduce_sum"),
  };
}

}  // namespace tensormill::ops::reduce_ops
