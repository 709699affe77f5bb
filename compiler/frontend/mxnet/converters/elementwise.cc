// Functions of elements: of one operand, of two, and of one and a number.
#include <array>
#include <cmath>
#include <numbers>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// What the operators of a kind do, whatever they are called: "_Plus", "elemwise_add", "broadcast_plus" and
/// "_plus_scalar" all add.
enum class Arithmetic : uint8_t { kOperator, kNotEqual, kMod, kHypot, kAnd, kOr, kXor };
struct Meaning {
  std::string_view word;
  Arithmetic kind;
  const char* op = "";
  bool is_comparison = false;
};
constexpr std::array kMeanings = {
    Meaning{"add", Arithmetic::kOperator, "add"},
    Meaning{"plus", Arithmetic::kOperator, "add"},
    Meaning{"sub", Arithmetic::kOperator, "sub"},
    Meaning{"minus", Arithmetic::kOperator, "sub"},
    Meaning{"mul", Arithmetic::kOperator, "mul"},
    Meaning{"div", Arithmetic::kOperator, "div"},
    Meaning{"power", Arithmetic::kOperator, "pow"},
    Meaning{"maximum", Arithmetic::kOperator, "max"},
    Meaning{"minimum", Arithmetic::kOperator, "min"},
    Meaning{"equal", Arithmetic::kOperator, "equal", true},
    Meaning{"greater", Arithmetic::kOperator, "greater", true},
    Meaning{"greaterequal", Arithmetic::kOperator, "greater_equal", true},
    Meaning{"lesser", Arithmetic::kOperator, "less", true},
    Meaning{"lesserequal", Arithmetic::kOperator, "less_equal", true},
    Meaning{"notequal", Arithmetic::kNotEqual, "", true},
    Meaning{"mod", Arithmetic::kMod},
    Meaning{"hypot", Arithmetic::kHypot},
    Meaning{"logicaland", Arithmetic::kAnd, "and", true},
    Meaning{"logicalor", Arithmetic::kOr, "or", true},
    Meaning{"logicalxor", Arithmetic::kXor, "xor", true},
};

/// "plus" of "_PlusScalar", "rminus" of "_rminus_scalar".
std::string word_of(std::string_view op) {
  std::string word;
  for (const char each : op)
    if (each != '_') word += each >= 'A' && each <= 'Z' ? static_cast<char>(each + 32) : each;
  for (const std::string_view before : {"elemwise", "broadcast", "grad"})
    if (word.starts_with(before)) word.erase(0, before.size());
  if (word.ends_with("scalar")) word.resize(word.size() - 6);
  return word;
}

const Meaning* meaning_of(std::string_view word) { return build::find_in(kMeanings, &Meaning::word, word); }

V is_not_zero(NodeContext& node, V x) { return Compose(node).cast(x, DType::kBool); }

/// The result has the operands' type, of comparisons as well.
V combined(NodeContext& node, const Meaning& meaning, V a, V b) {
  Compose c(node);
  const DType dtype = node.dtype(a);
  V y = ir::kAbsent;
  switch (meaning.kind) {
    case Arithmetic::kOperator:
      y = c.binary(meaning.op, a, b);
      break;
    case Arithmetic::kNotEqual:
      y = c.unary("not", c.binary("equal", a, b));
      break;
    case Arithmetic::kMod: {
      // Of a divisor of 0 the rest is 0.
      build::ChannelsLast none;
      const V is_zero = c.binary("equal", b, c.number(b, 0));
      const V divisor = c.where(is_zero, c.number(b, 1), b);
      y = c.where(is_zero, c.number(a, 0), build::floor_mod(node, none, a, divisor));
      break;
    }
    case Arithmetic::kHypot:
      y = c.unary("sqrt", c.add(c.mul(a, a), c.mul(b, b)));
      break;
    default:
      y = c.binary(meaning.op, is_not_zero(node, a), is_not_zero(node, b));
  }
  return meaning.is_comparison ? c.cast(y, dtype) : y;
}

using build::OpName;
/// Functions that the graph has under another name.
constexpr std::array kFunctions = {
    OpName{"arccos", "acos"},   OpName{"arccosh", "acosh"}, OpName{"arcsin", "asin"},
    OpName{"arcsinh", "asinh"}, OpName{"arctan", "atan"},   OpName{"arctanh", "atanh"},
    OpName{"negative", "neg"},
};

/// x rounded toward zero.
V truncated(NodeContext& node, V x) {
  Compose c(node);
  return c.where(c.binary("less", x, c.number(x, 0)), c.unary("ceil", x), c.unary("floor", x));
}

bool is_real(NodeContext& node, V x) { return is_float(node.dtype(x)); }

}  // namespace

void convert_unary(NodeContext& node) {
  const OpName* found = build::find_in(kFunctions, &OpName::model, node.op());
  const V x = node.input(0);
  const bool is_whole = (node.op() == "floor" || node.op() == "ceil") && !is_real(node, x);
  if (is_whole) return node.set_output(x);
  node.set_output(node.add(found == nullptr ? std::string(node.op()) : found->graph, {x}));
}

void convert_identity(NodeContext& node) { node.set_output(node.input(0)); }

void convert_rounding(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  if (!is_real(node, x)) return node.set_output(x);
  if (node.op() == "fix" || node.op() == "trunc") return node.set_output(truncated(node, x));
  // Halves go away from zero, or, of rint, down.
  const bool is_rint = node.op() == "rint";
  const V size = is_rint ? x : c.unary("abs", x);
  const V floor = c.unary("floor", size), rest = c.sub(size, floor);
  const V is_up = c.binary(is_rint ? "greater" : "greater_equal", rest, c.number(rest, 0.5));
  const V rounded = c.where(is_up, c.plus(floor, 1), floor);
  node.set_output(is_rint ? rounded : c.mul(c.unary("sign", x), rounded));
}

void convert_log_of(NodeContext& node) {
  Compose c(node);
  const double base = node.op() == "log2" ? std::numbers::ln2 : std::numbers::ln10;
  node.set_output(c.times(c.unary("log", node.input(0)), 1 / base));
}

void convert_angle(NodeContext& node) {
  const double factor = node.op() == "degrees" ? 180 / std::numbers::pi : std::numbers::pi / 180;
  node.set_output(Compose(node).times(node.input(0), factor));
}

void convert_root(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), size = c.unary("abs", x);
  const V root = c.mul(c.unary("sign", x), c.binary("pow", size, c.number(size, 1.0 / 3)));
  node.set_output(node.op() == "cbrt" ? root : c.unary("reciprocal", root));
}

void convert_square(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(Compose(node).mul(x, x));
}

void convert_logical_not(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  node.set_output(c.cast(c.unary("not", is_not_zero(node, x)), node.dtype(x)));
}

void convert_hard_sigmoid(NodeContext& node) {
  node.set_output(node.add("hard_sigmoid", {node.input(0)},
                           {{"alpha", node.real("alpha", 0.2)}, {"beta", node.real("beta", 0.5)}}));
}

void convert_binary(NodeContext& node) {
  const Meaning* meaning = meaning_of(word_of(node.op()));
  if (meaning == nullptr) node.invalid("it has a converter of other operators");
  const V a = node.input(0), b = node.input(1);
  node.set_output(combined(node, *meaning, a, b));
}

// A number has the operand's type; an operator that begins with r takes it first.
void convert_scalar(NodeContext& node) {
  Compose c(node);
  std::string word = word_of(node.op());
  const Meaning* meaning = meaning_of(word);
  const bool is_first = meaning == nullptr && word.starts_with('r');
  if (is_first) meaning = meaning_of(word.substr(1));
  if (meaning == nullptr) node.invalid("it has a converter of other operators");
  const V x = node.input(0);
  double number = node.real("scalar", 1);
  if (!node.flag("is_int", true) && !is_real(node, x))
    node.unsupported("is_int",
                     "integers with a number that is none, which make float64, are not implemented");
  if (!is_real(node, x)) number = std::trunc(number);
  const V scalar = c.number(x, number);
  node.set_output(is_first ? combined(node, *meaning, scalar, x) : combined(node, *meaning, x, scalar));
}

void convert_sum_of_all(NodeContext& node) {
  Compose c(node);
  const ir::CheckedList<V> all = node.inputs();
  V y = all[0];
  for (size_t i = 1; i < all.size(); ++i) y = c.add(y, all[i]);
  node.set_output(y);
}

// 0.5 (sx)^2 near 0, else |x| - 0.5/s^2.
void convert_smooth_l1(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), size = c.unary("abs", x);
  const double square = node.real("scalar", 1) * node.real("scalar", 1);
  node.skip("is_int");
  const V is_near = c.binary("less", size, c.number(x, 1 / square));
  node.set_output(c.where(is_near, c.times(c.mul(x, x), 0.5 * square), c.minus(size, 0.5 / square)));
}

void convert_clip(NodeContext& node) {
  node.set_output(Compose(node).clip(node.input(0), node.real("a_min"), node.real("a_max")));
}

void convert_cast(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(Compose(node).cast(x, node.dtype_named("dtype", DType::kFloat32)));
}

void convert_where(NodeContext& node) {
  Compose c(node);
  const V x = node.input(1), y = node.input(2);
  V condition = is_not_zero(node, node.input(0));
  // A condition of one axis names rows.
  if (node.rank(condition) == 1 && node.rank(x) > 1) {
    ir::SymShape along(node.shape(x).size(), 1);
    along[0] = node.shape(condition)[0];
    condition = c.reshape(condition, along);
  }
  node.set_output(c.where(condition, x, y));
}

}  // namespace tensormill::frontend::mxnet
