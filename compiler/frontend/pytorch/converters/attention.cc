// Attention, einsum, distances.
#include <algorithm>
#include <limits>
#include <map>

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

/// Axes by their letters.
struct Labelled {
  V value;
  std::string axes;
};

/// Axes of one letter become one: the diagonal.
Labelled without_repeats(NodeContext& node, Labelled x) {
  Compose c(node);
  for (size_t i = 0; i < x.axes.size(); ++i) {
    const size_t j = x.axes.find(x.axes[i], i + 1);
    if (j == std::string::npos) continue;
    const ir::SymInt extent = node.shape(x.value)[i];
    const V on =
        c.binary("equal", c.positions(extent, i, x.axes.size()), c.positions(extent, j, x.axes.size()));
    x.value =
        c.reduce("reduce_sum", c.where(on, x.value, c.number(x.value, 0)), {static_cast<int64_t>(j)}, false);
    x.axes.erase(j, 1);
    --i;
  }
  return x;
}

Labelled summed_to(NodeContext& node, Labelled x, const std::string& kept) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < x.axes.size(); ++i) {
    if (kept.find(x.axes[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      left += x.axes[i];
    }
  }
  return {Compose(node).reduce("reduce_sum", x.value, axes, false), left};
}

/// In the order of `axes`, with axes of 1 for letters that it lacks.
V arranged(NodeContext& node, const Labelled& x, const std::string& axes) {
  Compose c(node);
  std::vector<int64_t> perm;
  ir::SymShape shape;
  for (const char letter : axes) {
    const size_t at = x.axes.find(letter);
    if (at != std::string::npos) perm.push_back(static_cast<int64_t>(at));
    shape.push_back(at == std::string::npos ? ir::SymInt(1) : node.shape(x.value)[at]);
  }
  return c.reshape(c.transpose(x.value, perm), shape);
}

ir::SymInt extent_of(NodeContext& node, const Labelled& x, char letter) {
  const size_t at = x.axes.find(letter);
  return at == std::string::npos ? ir::SymInt(1) : node.shape(x.value)[at];
}

std::string common(const std::string& a, const std::string& b, const std::string& c, bool in_c) {
  std::string letters;
  for (const char letter : a)
    if (b.find(letter) != std::string::npos && (c.find(letter) != std::string::npos) == in_c)
      letters += letter;
  return letters;
}

std::string only(const std::string& a, const std::string& b) {
  std::string letters;
  for (const char letter : a)
    if (b.find(letter) == std::string::npos) letters += letter;
  return letters;
}

/// Axes of 1 among `letters` as long as those of another operand.
void spread_ones(NodeContext& node, Labelled& x, const Labelled& other, const std::string& letters) {
  const ir::SymShape own = node.shape(x.value);
  ir::SymShape whole = own;
  for (const char letter : letters)
    if (same(extent_of(node, x, letter), 1)) whole[x.axes.find(letter)] = extent_of(node, other, letter);
  if (whole != own) x.value = Compose(node).expand(x.value, whole);
}

/// The product of both, summed over what neither the result nor a later operand has.
Labelled multiplied(NodeContext& node, Labelled a, Labelled b, const std::string& kept) {
  Compose c(node);
  a = summed_to(node, a, kept + b.axes);
  b = summed_to(node, b, kept + a.axes);
  const std::string batch = common(a.axes, b.axes, kept, true), inner = common(a.axes, b.axes, kept, false);
  const std::string rows = only(a.axes, b.axes), columns = only(b.axes, a.axes);
  spread_ones(node, a, b, inner);
  spread_ones(node, b, a, inner);
  if (inner.empty()) {
    const std::string all = batch + rows + columns;
    return {c.mul(arranged(node, a, all), arranged(node, b, all)), all};
  }
  ir::SymShape whole;
  ir::SymInt m = 1, k = 1, n = 1;
  for (const char letter : batch)
    whole.push_back(broadcast_shapes({extent_of(node, a, letter)}, {extent_of(node, b, letter)})[0]);
  const auto count = static_cast<std::ptrdiff_t>(whole.size());
  for (const char letter : rows) m = m * extent_of(node, a, letter);
  for (const char letter : inner) k = k * extent_of(node, a, letter);
  for (const char letter : columns) n = n * extent_of(node, b, letter);
  const auto form = [&](const Labelled& x, const std::string& axes, const ir::SymInt& first,
                        const ir::SymInt& second) {
    const V value = arranged(node, x, axes);
    const ir::SymShape own = node.shape(value);
    ir::SymShape shape(own.begin(), own.begin() + count);
    shape.insert(shape.end(), {first, second});
    return c.reshape(value, shape);
  };
  const V y = c.matmul(form(a, batch + rows + inner, m, k), form(b, batch + inner + columns, k, n));
  for (const char letter : rows) whole.push_back(extent_of(node, a, letter));
  for (const char letter : columns) whole.push_back(extent_of(node, b, letter));
  return {c.reshape(y, whole), batch + rows + columns};
}

/// "..." as letters that no equation has, aligned at the end.
std::string spelled(NodeContext& node, std::string term, size_t rank, size_t most) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const size_t letters = term.size() - 3;
  const size_t dots = rank == SIZE_MAX ? most : rank - std::min(rank, letters);
  if (dots > most || dots > 8) node.invalid("an ellipsis of " + std::to_string(dots) + " axes");
  std::string spelled_out;
  for (size_t i = most - dots; i < most; ++i) spelled_out += static_cast<char>('0' + i);
  return term.substr(0, at) + spelled_out + term.substr(at + 3);
}

}  // namespace

void convert_einsum(NodeContext& node) {
  std::string equation = node.text("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  std::vector<V> operands = node.tensors("tensors");
  std::vector<Operand> typed;
  for (const V operand : operands)
    typed.push_back({operand, false, {node.dtype(operand), OperandKind::kTensor}});
  const DType dtype = node.common_type(typed);
  for (size_t i = 0; i < operands.size(); ++i) operands[i] = node.as(typed[i], summed_in(dtype));
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms{""};
  for (const char each : left) {
    if (each == ',') {
      terms.emplace_back();
    } else {
      terms.back().push_back(each);
    }
  }
  if (terms.size() != operands.size() || operands.empty())
    node.invalid("equation \"" + equation + "\" has other operands");
  size_t most = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t rank = node.shape(operands[i]).size();
    if (terms[i].find("...") != std::string::npos && rank + 3 >= terms[i].size())
      most = std::max(most, rank + 3 - terms[i].size());
  }
  std::map<char, int> counts;
  std::vector<Labelled> values;
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::string axes = spelled(node, terms[i], node.shape(operands[i]).size(), most);
    if (axes.size() != node.shape(operands[i]).size())
      node.invalid("equation \"" + equation + "\": operand " + std::to_string(i) + " has another rank");
    for (const char letter : axes) ++counts[letter];
    values.push_back(without_repeats(node, {operands[i], axes}));
  }
  std::string result;
  if (arrow != std::string::npos) {
    result = spelled(node, equation.substr(arrow + 2), SIZE_MAX, most);
  } else {
    for (const auto& [letter, count] : counts)
      if (count == 1 || (letter >= '0' && letter <= '9')) result += letter;
  }
  Labelled made = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    std::string kept = result;
    for (size_t j = i + 1; j < values.size(); ++j) kept += values[j].axes;
    made = multiplied(node, made, values[i], kept);
  }
  made = summed_to(node, made, result);
  if (made.axes.size() != result.size())
    node.invalid("equation \"" + equation + "\": the result has axes that no operand has");
  const V y = arranged(node, made, result);
  // Of one operand it is a sum, which has 64 bits.
  const bool is_sum = operands.size() == 1 && result.size() < values[0].axes.size() && !is_float(dtype);
  node.set_output(
      0, node.is_typed() ? node.as_output(y) : Compose(node).cast(y, is_sum ? DType::kInt64 : dtype));
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
