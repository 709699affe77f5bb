#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

bool takes(const NodeContext& node, std::string_view name) {
  for (const SchemaArgument& argument : node.row().arguments)
    if (argument.name == name) return true;
  return false;
}

V python_mod(NodeContext& node, V x, V y) {
  Compose c(node);
  if (!is_float(node.dtype(x))) return node.add("mod", {x, y}, {{"fmod", int64_t{0}}});
  const V rest = node.add("mod", {x, y}, {{"fmod", int64_t{1}}});
  const V is_other = node.add("xor", {is_negative(node, rest), is_negative(node, y)});
  return c.where(both(node, is_other, negated(node, is_zero(node, rest))), c.add(rest, y), rest);
}

V floor_divided(NodeContext& node, V x, V y) {
  Compose c(node);
  const V whole = c.div(c.sub(x, python_mod(node, x, y)), y);
  if (!is_float(node.dtype(x))) return whole;
  // By 0 it is infinite, or no number.
  return c.where(is_zero(node, y), c.div(x, y), c.unary("round", whole));
}

V quotient(NodeContext& node, V x, V y) {
  Compose c(node);
  const V result = c.div(x, y);
  if (!is_float(node.dtype(x))) return result;
  const V part = c.where(is_negative(node, result), c.unary("ceil", result), c.unary("floor", result));
  return part;
}

// With u = 1 + x rounded, log(u) * x / (u - 1): what the rounding takes from u is taken from both.
V log1p_of(NodeContext& node, V x) {
  Compose c(node);
  const V u = c.plus(x, 1), above = c.minus(u, 1);
  const V exact = c.mul(c.unary("log", u), c.div(x, above));
  const V is_plain = node.add("or", {node.add("is_inf", {u}), c.binary("equal", u, c.number(u, 0))});
  return c.where(is_zero(node, above), x, c.where(is_plain, c.unary("log", u), exact));
}

V expm1_of(NodeContext& node, V x) {
  Compose c(node);
  // elu is x above 0 and e^x - 1 below; e^x - 1 is -(e^-x - 1) * e^x.
  const V low = node.add("elu", {x}, {{"alpha", 1.0}});
  const V high =
      c.mul(c.unary("neg", node.add("elu", {c.unary("neg", x)}, {{"alpha", 1.0}})), c.unary("exp", x));
  return c.where(is_negative(node, x), low,
                 c.where(node.add("is_inf", {c.unary("exp", x)}), c.unary("exp", x), high));
}

std::vector<int64_t> reduced_axes(NodeContext& node, const char* name, V x) {
  std::vector<int64_t> axes = node.axes(name, node.rank(x));
  if (axes.empty()) axes = Compose(node).count_to(node.rank(x));
  if (node.rank(x) == 0) axes.clear();
  return axes;
}

V count_of(NodeContext& node, V like, V x, const std::vector<int64_t>& axes, double less) {
  Compose c(node);
  ir::SymInt count = 1;
  for (const int64_t axis : axes) count = node.product(count, node.shape(x)[static_cast<size_t>(axis)]);
  const V number = c.extent(like, count);
  if (less == 0) return number;
  return c.binary("max", c.minus(number, less), c.number(number, 0));
}

V with_axis(NodeContext& node, V x) { return node.rank(x) == 0 ? Compose(node).reshape(x, {1}) : x; }

V sorted_positions(NodeContext& node, V x, int64_t axis, int64_t k, bool largest) {
  // Kernels of sorted rows look at all elements of a row for each.
  constexpr int64_t kSortedByKernel = 256;
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const bool by_host = !extent.is_constant() || extent.hint() > kSortedByKernel;
  return node.add(by_host ? "sort_positions" : "arg_top_k", {numeric(node, x)},
                  {{"axis", axis}, {"k", k}, {"largest", int64_t{largest}}});
}

V wrapped(NodeContext& node, V indices, const ir::SymInt& extent) {
  Compose c(node);
  indices = c.cast(indices, DType::kInt64);
  return c.where(is_negative(node, indices), c.add(indices, c.dims({extent}, {})), indices);
}

V scattered(NodeContext& node, V x, V indices, V updates, int64_t axis, const std::string& reduction) {
  constexpr int64_t kScatteredByKernel = int64_t{1} << 16;
  const ir::SymShape shape = node.shape(x), places = node.shape(indices);
  int64_t work = 1;
  for (const ir::SymInt& extent : shape) work *= std::max<int64_t>(extent.hint(), 1);
  const ir::SymInt& along = places[static_cast<size_t>(axis)];
  const bool by_host = !along.is_constant() || !shape.is_constant() ||
                       work > kScatteredByKernel / std::max<int64_t>(along.hint(), 1);
  return node.add(by_host ? "scatter" : "scatter_elements", {x, indices, updates},
                  {{"axis", axis}, {"reduction", reduction}});
}

V gathered(NodeContext& node, V x, V indices, int64_t axis) {
  Compose c(node);
  if (node.dtype(indices) != DType::kInt32) indices = c.cast(indices, DType::kInt64);
  return c.gather(x, indices, axis);
}

V with_batch(NodeContext& node, V x, size_t spatial) {
  const size_t rank = node.shape(x).size();
  if (rank == spatial + 2) return x;
  if (rank != spatial + 1) node.invalid("the input has rank " + std::to_string(rank));
  return Compose(node).unsqueeze(x, 0);
}

std::vector<int64_t> spread(NodeContext& node, const char* name, size_t count) {
  std::vector<int64_t> values = node.ints(name);
  if (values.size() == 1) values.assign(count, values[0]);
  if (values.size() != count)
    node.invalid("argument " + std::string(name) + " has " + std::to_string(values.size()) +
                 " numbers, expected " + std::to_string(count));
  return values;
}

V softmax_along(NodeContext& node, const char* op, V x, int64_t axis) {
  const bool was_scalar = node.rank(x) == 0;
  const V y = node.add(op, {with_axis(node, x)}, {{"axis", axis}});
  return was_scalar ? Compose(node).reshape(y, {}) : y;
}

V padded(NodeContext& node, V x, const ir::SymShape& pads, const std::string& mode, double value) {
  return node.add("pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", value}});
}

}  // namespace tensormill::frontend::pytorch
