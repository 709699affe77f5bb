/// Operators of two operands, element by element with numpy's broadcasting: the rows of binary.def.
#include <cmath>
#include <type_traits>

#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::binary_ops {

std::vector<ir::OpDef> family();

namespace {

enum class Result : uint8_t { kSame, kBool };

Expr binop(te::ExprOp op, const Expr& x, const Expr& y) { return te::make(op, {x, y}); }

Expr mod_expr(const Expr& x, const Expr& y, bool fmod) {
  return fmod || x->type.is_float() ? binop(te::ExprOp::kMod, x, y) : te::floormod(x, y);
}

bool shifts_left(const ir::Attrs& a) {
  const std::string direction = attr_string(a, "direction", "");
  if (direction != "left" && direction != "right") {
    fail("attribute direction is \"" + direction + "\", expected left or right");
  }
  return direction == "left";
}

Expr shift_expr(const Expr& x, const Expr& y, bool left) {
  return binop(left ? te::ExprOp::kShl : te::ExprOp::kShr, x, y);
}

#define TM_BINARY(id, op_name, dtypes, op_result, op_commutative, op_tolerance, expression, real, integer, \
                  op_doc)                                                                                  \
  struct Binary_##id {                                                                                     \
    static constexpr const char* kName = op_name;                                                          \
    static constexpr DTypeSet kTypes = dtypes;                                                             \
    static constexpr Result kResult = Result::op_result;                                                   \
    static constexpr bool kCommutative = op_commutative;                                                   \
    static constexpr double kTolerance = op_tolerance;                                                     \
    static constexpr const char* kDoc = op_doc;                                                            \
    static Expr expr(const Expr& x, const Expr& y, [[maybe_unused]] const ir::Attrs& a) {                  \
      return expression;                                                                                   \
    }                                                                                                      \
    static double value(double x, [[maybe_unused]] double y) { return real; }                              \
    static int64_t value_int(int64_t x, [[maybe_unused]] int64_t y, [[maybe_unused]] bool u,               \
                             [[maybe_unused]] int bits, [[maybe_unused]] const ir::Attrs& a) {             \
      return integer;                                                                                      \
    }                                                                                                      \
  };
#include "compiler/ops/binary.def"
#undef TM_BINARY

template <typename Row>
std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, Row::kTypes);
  const ir::ValueType& y = input_like_first(context, 1);
  if (std::string_view(Row::kName) == "mod" && is_float(x.dtype) &&
      !attr_bool(context.attrs, "fmod", false)) {
    fail("attribute fmod is 0 with dtype " + std::string(dtype_name(x.dtype)) + ", expected 1 for floats");
  }
  // The attributes are read once, so that a wrong one is refused here.
  if (!is_float(x.dtype)) static_cast<void>(Row::value_int(0, 0, true, 8, context.attrs));
  const ir::SymShape shape = broadcast_checked(x.shape, y.shape);
  return {made_type(Row::kResult == Result::kBool ? DType::kBool : x.dtype, shape)};
}

template <typename Row>
void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& y = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Shape& shape = out.shape();
  const std::array<Shape, 2> strides = {broadcast_strides(x.shape(), shape),
                                        broadcast_strides(y.shape(), shape)};
  const size_t count = static_cast<size_t>(out.num_elements());
  const auto combine = [&](auto xs, auto ys, auto values) {
    using Element = std::remove_reference_t<decltype(values[0])>;
    for_each_strided<2>(shape, strides, [&](int64_t position, const std::array<int64_t, 2>& from) {
      values[static_cast<size_t>(position)] = static_cast<Element>(
          Row::value(xs[static_cast<size_t>(from[0])], ys[static_cast<size_t>(from[1])]));
    });
  };
  // Large tensors are not copied, so that kernels are checked in good time.
  if (x.dtype() == DType::kFloat32 && out.dtype() == DType::kFloat32)
    return combine(x.values<float>(), y.values<float>(), out.values<float>());
  if (x.dtype() == DType::kFloat64 && out.dtype() == DType::kFloat64)
    return combine(x.values<double>(), y.values<double>(), out.values<double>());
  if (is_float(x.dtype())) {
    const std::vector<double> xs = to_doubles(x);
    const std::vector<double> ys = to_doubles(y);
    std::vector<double> values(count);
    for_each_strided<2>(shape, strides, [&](int64_t position, const std::array<int64_t, 2>& from) {
      values[static_cast<size_t>(position)] =
          Row::value(xs[static_cast<size_t>(from[0])], ys[static_cast<size_t>(from[1])]);
    });
    store_doubles(out, values);
    return;
  }
  const std::vector<int64_t> xs = to_ints(x);
  const std::vector<int64_t> ys = to_ints(y);
  std::vector<int64_t> values(count);
  const bool u = is_unsigned(x.dtype());
  const int bits = dtype_info(x.dtype()).bits;
  for_each_strided<2>(shape, strides, [&](int64_t position, const std::array<int64_t, 2>& from) {
    values[static_cast<size_t>(position)] = Row::value_int(
        xs[static_cast<size_t>(from[0])], ys[static_cast<size_t>(from[1])], u, bits, context.attrs);
  });
  store_ints(out, values);
}

template <typename Row>
TeOutputs compute(const ir::ComputeContext& context) {
  const DType dtype = context.output_types[0].dtype;
  return {
      compute_safe(context.name, context.output_types[0].shape, dtype, [&](const std::vector<Expr>& axes) {
        const ir::SymShape& out = context.output_types[0].shape;
        const Expr x = read_broadcast(context.inputs[0], context.input_types[0].shape, out, axes);
        const Expr y = read_broadcast(context.inputs[1], context.input_types[1].shape, out, axes);
        return narrow(Row::expr(widen(x), widen(y), context.attrs), dtype);
      })};
}

template <typename Row>
ir::OpDef define() {
  ir::OpDef def;
  def.name = Row::kName;
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.pattern = ir::Pattern::kElementwise;
  def.tolerance = Row::kTolerance;
  def.infer = &infer<Row>;
  def.reference = &reference<Row>;
  def.part = &part_of_elementwise;
  def.compute = &compute<Row>;
  def.commutative = Row::kCommutative;
  def.doc = Row::kDoc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
#define TM_BINARY(id, ...) define<Binary_##id>(),
#include "compiler/ops/binary.def"
#undef TM_BINARY
  };
}

}  // namespace tensormill::ops::binary_ops
