/// Operators of one operand, element by element: the rows of unary.def.
#include <cmath>
#include <type_traits>

#include "compiler/ops/parts.h"
#include "compiler/ops/real_functions.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::unary_ops {

std::vector<ir::OpDef> family();

namespace {

enum class Result : uint8_t { kSame, kBool };

Expr unop(te::ExprOp op, const Expr& x) { return te::make(op, {x}); }
Expr zero(const Expr& x) { return constant_like(x, 0); }
Expr one(const Expr& x) { return constant_like(x, 1); }

Expr sign_expr(const Expr& x) {
  const Expr not_positive =
      dtype_info(x->type.dtype).is_signed ? te::select(x < zero(x), constant_like(x, -1), x) : x;
  // What is left after both selects is 0, -0 or NaN: adding 0 turns -0 into 0 and keeps NaN.
  return te::select(x > zero(x), one(x), te::select(x == zero(x), zero(x), not_positive));
}

double sign_value(double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

Expr is_inf_expr(const Expr& x) {
  const Expr infinity = largest_of(x->type.dtype);
  return te::logical_or(x == infinity, x == -infinity);
}

/// max(x, 0) + log(1 + e^-|x|): exact in both tails. NaN passes through the first term.
Expr softplus_expr(const Expr& x) {
  const Expr positive = te::select(x < zero(x), zero(x), x);
  return positive + log1p_expr(unop(te::ExprOp::kExp, -unop(te::ExprOp::kAbs, x)));
}

/// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2); f32 has fewer digits to lose on the first
/// way.
Expr mish_expr(const Expr& x) {
  if (x->type.dtype != DType::kFloat64) return x * unop(te::ExprOp::kTanh, softplus_expr(x));
  const Expr power = unop(te::ExprOp::kExp, te::min(x, constant_like(x, 40)));
  const Expr n = power * (power + constant_like(x, 2));
  return x * (n / (n + constant_like(x, 2)));
}

double softplus_value(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }

Expr elu_expr(const Expr& x, double alpha, double gamma) {
  const Expr negative = constant_like(x, alpha) * expm1_expr(x);
  const Expr value = te::select(x < zero(x), negative, x);
  return gamma == 1 ? value : constant_like(x, gamma) * value;
}

double selu_alpha(const ir::Attrs& a) { return attr_float(a, "alpha", 1.67326319217681884765625); }
double selu_gamma(const ir::Attrs& a) { return attr_float(a, "gamma", 1.05070102214813232421875); }

Expr hard_sigmoid_expr(const Expr& x, double alpha, double beta) {
  const Expr line = constant_like(x, alpha) * x + constant_like(x, beta);
  const Expr low = te::select(line < zero(x), zero(x), line);
  return te::select(low > one(x), one(x), low);
}

double hard_sigmoid_value(double x, double alpha, double beta) {
  const double line = alpha * x + beta;
  return line < 0 ? 0 : line > 1 ? 1 : line;
}

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;

bool is_tanh(const ir::Attrs& a) {
  const std::string mode = attr_string(a, "approximate", "none");
  if (mode != "none" && mode != "tanh")
    fail("attribute approximate is \"" + mode + "\", expected none or tanh");
  return mode == "tanh";
}

Expr gelu_expr(const Expr& x, bool tanh) {
  const Expr half = constant_like(x, 0.5);
  if (!tanh) return half * x * (one(x) + unop(te::ExprOp::kErf, x * constant_like(x, kSqrtHalf)));
  const Expr inner = x + constant_like(x, 0.044715) * x * x * x;
  return half * x * (one(x) + unop(te::ExprOp::kTanh, inner * constant_like(x, kSqrtTwoOverPi)));
}

double gelu_value(double x, bool tanh) {
  if (!tanh) return 0.5 * x * (1 + std::erf(x * kSqrtHalf));
  return 0.5 * x * (1 + std::tanh((x + 0.044715 * x * x * x) * kSqrtTwoOverPi));
}

// One struct a row: what the operator is, as functions of one element.
#define TM_UNARY(id, op_name, dtypes, op_result, op_tolerance, expression, real, integer, op_doc)        \
  struct Unary_##id {                                                                                    \
    static constexpr const char* kName = op_name;                                                        \
    static constexpr DTypeSet kTypes = dtypes;                                                           \
    static constexpr Result kResult = Result::op_result;                                                 \
    static constexpr double kTolerance = op_tolerance;                                                   \
    static constexpr const char* kDoc = op_doc;                                                          \
    static Expr expr(const Expr& x, [[maybe_unused]] const ir::Attrs& a) { return expression; }          \
    static double value([[maybe_unused]] double x, [[maybe_unused]] const ir::Attrs& a) { return real; } \
    static int64_t value_int(int64_t x, [[maybe_unused]] bool u) { return integer; }                     \
  };
#include "compiler/ops/unary.def"
#undef TM_UNARY

template <typename Row>
std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& type = input_of(context, 0, Row::kTypes);
  // The attributes are read once, on both sides of 0, so that a wrong one is refused here.
  for (const double x : {-1.0, 1.0})
    if (is_float(type.dtype)) static_cast<void>(Row::value(x, context.attrs));
  return {made_type(Row::kResult == Result::kBool ? DType::kBool : type.dtype, type.shape)};
}

template <typename Row>
void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const auto map = [&](auto values, auto results) {
    using Element = std::remove_reference_t<decltype(results[0])>;
    for (size_t i = 0; i < values.size(); ++i)
      results[i] = static_cast<Element>(Row::value(values[i], context.attrs));
  };
  // Large tensors are not copied, so that kernels are checked in good time.
  if (x.dtype() == DType::kFloat32 && context.outputs[0]->dtype() == DType::kFloat32)
    return map(x.values<float>(), context.outputs[0]->values<float>());
  if (x.dtype() == DType::kFloat64 && context.outputs[0]->dtype() == DType::kFloat64)
    return map(x.values<double>(), context.outputs[0]->values<double>());
  if (is_float(x.dtype())) {
    std::vector<double> values = to_doubles(x);
    for (double& value : values) value = Row::value(value, context.attrs);
    store_doubles(*context.outputs[0], values);
    return;
  }
  std::vector<int64_t> values = to_ints(x);
  const bool is_bool = x.dtype() == DType::kBool;
  for (int64_t& value : values) {
    value = Row::value_int(value, is_unsigned(x.dtype()));
    if (is_bool) value &= 1;
  }
  store_ints(*context.outputs[0], values);
}

template <typename Row>
TeOutputs compute(const ir::ComputeContext& context) {
  const DType dtype = context.output_types[0].dtype;
  return {
      compute_safe(context.name, context.output_types[0].shape, dtype, [&](const std::vector<Expr>& axes) {
        return narrow(Row::expr(widen(te::read(context.inputs[0], axes)), context.attrs), dtype);
      })};
}

template <typename Row>
ir::OpDef define() {
  ir::OpDef def;
  def.name = Row::kName;
  def.pattern = ir::Pattern::kElementwise;
  def.tolerance = Row::kTolerance;
  def.infer = &infer<Row>;
  def.reference = &reference<Row>;
  def.part = &part_of_elementwise;
  def.compute = &compute<Row>;
  def.is_view = def.name == "identity";
  def.doc = Row::kDoc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
#define TM_UNARY(id, ...) define<Unary_##id>(),
#include "compiler/ops/unary.def"
#undef TM_UNARY
  };
}

}  // namespace tensormill::ops::unary_ops
