// Attention, einsum, distances.
#include <algorithm>
#include <limits>
#include <set>

#include "compiler/build/numbers/einsum.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Heads of keys and values are shared by several of queries.
V repeated_heads(NodeContext& node, V x, V query) {
  Compose c(node);
  const int64_t rank = node.rank(x);
  const auto axis = static_cast<size_t>(rank - 3);
  const ir::SymInt heads = node.shape(query)[axis], own = node.shape(x)[axis];
  if (same(heads, own)) return x;
  if (!ir::demand_divisible(heads, own)) node.invalid("heads of queries do not divide over those of keys");
  ir::SymShape wide = node.shape(x), whole = wide;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(axis) + 1, floordiv(heads, own));
  whole[axis] = heads;
  return c.reshape(c.expand(c.unsqueeze(x, rank - 2), wide), whole);
}

V mask_of(NodeContext& node, V mask, V scores) {
  Compose c(node);
  if (node.dtype(mask) != DType::kBool) return c.cast(mask, node.dtype(scores));
  return c.where(mask, c.number(scores, 0), c.number(scores, kMinusInfinity));
}

}  // namespace

// A row that sees nothing gives zeros.
void convert_attention(NodeContext& node) {
  Compose c(node);
  const V query = node.tensor("query");
  V key = node.tensor("key"), value = node.tensor("value");
  if (node.real("dropout_p") != 0) node.unsupported("dropout_p", "dropout of training is not implemented");
  const int64_t rank = node.rank(query);
  if (rank < 2 || node.rank(key) < 2) node.invalid("the queries have rank " + std::to_string(rank));
  if (takes(node, "return_debug_mask")) static_cast<void>(node.flag("return_debug_mask"));
  if (node.is_used(1)) node.unsupported("output 1", "the logarithms of sums are not implemented");
  if (takes(node, "enable_gqa") && node.flag("enable_gqa")) {
    key = repeated_heads(node, key, query);
    value = repeated_heads(node, value, query);
  }
  const ir::SymShape q = node.shape(query), k = node.shape(key);
  const V scores = c.matmul(query, key, true);
  V factor;
  if (node.has("scale")) {
    factor = c.number(scores, node.real("scale"));
  } else if (q.back().is_constant()) {
    factor = c.number(scores, 1 / std::sqrt(static_cast<double>(q.back().hint())));
  } else {
    factor = c.unary("rsqrt", c.extent(scores, q.back()));
  }
  V scaled = c.mul(scores, factor);
  bool may_be_blind = false;
  if (node.flag("is_causal")) {
    const ir::SymInt &rows = q[q.size() - 2], &columns = k[k.size() - 2];
    const V sees = c.binary("less_equal", c.iota(columns, {1, columns}), c.iota(rows, {rows, 1}));
    scaled = c.add(scaled, mask_of(node, sees, scaled));
  }
  V mask = ir::kAbsent;
  if (node.has("attn_mask")) {
    mask = mask_of(node, node.tensor("attn_mask"), scaled);
    scaled = c.add(scaled, mask);
    const Tensor* known = node.graph().value(node.tensor("attn_mask")).tensor();
    may_be_blind = known == nullptr || node.dtype(node.tensor("attn_mask")) != DType::kBool;
  }
  V weights = node.add("softmax", {scaled}, {{"axis", rank - 1}});
  if (may_be_blind) {
    const V most = c.reduce("reduce_max", mask, {node.rank(mask) - 1}, true);
    const V is_blind = c.binary("equal", most, c.number(most, kMinusInfinity));
    const V result = c.matmul(weights, value);
    return node.set_output(0, c.where(is_blind, c.number(result, 0), result));
  }
  node.set_output(0, c.matmul(weights, value));
}

namespace {

/// How often operand `term` of an equation repeats a letter.
int64_t count_repeats(const std::string& term) {
  std::set<char> letters;
  int64_t repeats = 0;
  for (const char letter : term) repeats += letter != '.' && letter != ' ' && !letters.insert(letter).second;
  return repeats;
}

}  // namespace

void convert_einsum(NodeContext& node) {
  const std::string equation = node.text("equation");
  ir::CheckedList<V> operands = node.tensors("tensors");
  std::vector<Operand> typed;
  for (const V operand : operands)
    typed.push_back({operand, false, {node.dtype(operand), OperandKind::kTensor}});
  const DType dtype = node.common_type(typed);
  for (size_t i = 0; i < operands.size(); ++i) operands[i] = node.as(typed[i], summed_in(dtype));
  const V y = build::einsum(node, equation, operands);
  if (node.is_typed()) return node.set_output(0, node.as_output(y));
  // Of one operand it is a sum, which has 64 bits.
  const bool is_sum =
      operands.size() == 1 && !is_float(dtype) &&
      node.rank(y) < node.rank(operands[0]) - count_repeats(equation.substr(0, equation.find("->")));
  node.set_output(0, Compose(node).cast(y, is_sum ? DType::kInt64 : dtype));
}

// ||a - b||_p of all pairs of rows.
void convert_cdist(NodeContext& node) {
  Compose c(node);
  const V a = node.tensor("x1"), b = node.tensor("x2");
  const double p = node.real("p");
  if (node.has("compute_mode")) static_cast<void>(node.integer("compute_mode"));
  const V apart = c.unary("abs", c.sub(c.unsqueeze(a, node.rank(a) - 1), c.unsqueeze(b, node.rank(b) - 2)));
  const int64_t axis = node.rank(apart) - 1;
  if (p == 2) return node.set_output(0, c.reduce("reduce_l2", apart, {axis}, false));
  if (p == 1) return node.set_output(0, c.reduce("reduce_sum", apart, {axis}, false));
  if (std::isinf(p)) return node.set_output(0, c.reduce("reduce_max", apart, {axis}, false));
  if (p == 0) {
    const V differs = c.cast(c.binary("greater", apart, c.number(apart, 0)), node.dtype(apart));
    return node.set_output(0, c.reduce("reduce_sum", differs, {axis}, false));
  }
  const V sum = c.reduce("reduce_sum", c.binary("pow", apart, c.number(apart, p)), {axis}, false);
  node.set_output(0, c.binary("pow", sum, c.number(sum, 1 / p)));
}

// a b / max(|a| |b|, eps) along an axis.
void convert_cosine_similarity(NodeContext& node) {
  Compose c(node);
  const Operand first = node.operand("x1"), second = node.operand("x2");
  const DType common = node.common_type({first, second});
  const DType dtype = is_float(common) ? common : DType::kFloat32;
  V a = node.as(first, dtype), b = node.as(second, dtype);
  const ir::SymShape whole = broadcast_shapes(node.shape(a), node.shape(b));
  a = c.expand(a, whole);
  b = c.expand(b, whole);
  const int64_t axis = node.axis("dim", node.rank(a));
  const double eps = node.real("eps");
  const auto unit = [&](V x) {
    const V norm = c.reduce("reduce_l2", x, {axis}, true);
    return c.div(x, c.binary("max", norm, c.number(norm, eps)));
  };
  node.set_output(0, c.reduce("reduce_sum", c.mul(unit(a), unit(b)), {axis}, false));
}

}  // namespace tensormill::frontend::pytorch
