// Counts of elements, areas below them, and lengths that are held to a limit.
#include <algorithm>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

// How often each number is there, or the sum of the weights beside it: as many as the largest one asks for,
// and "minlength" at least.
void convert_bincount(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  check_rank(node, given, 1);
  const V x = c.cast(given, DType::kInt64), most = c.reduce("reduce_max", x, {0}, true);
  const int64_t least = node.integer("minlength");
  if (least < 0) node.invalid("minlength is " + std::to_string(least));
  const V count = c.binary("max", c.plus(c.binary("max", most, c.number(most, -1)), 1), c.ints({least}, {1}));
  const ir::SymInt length = node.bind_number(count, least, std::nullopt);
  const V weights = node.optional_tensor("weights");
  const DType dtype = weights == ir::kAbsent                   ? DType::kInt64
                      : node.dtype(weights) == DType::kFloat32 ? DType::kFloat32
                                                               : DType::kFloat64;
  const V each = weights == ir::kAbsent ? c.filled(dtype, node.shape(x), 1) : c.cast(weights, dtype);
  // What is below 0 has no place.
  const V places = c.where(is_negative(node, x), c.dims({length}, {}), x);
  node.set_output(0, scattered(node, c.filled(dtype, {length}, 0), places, each, 0, "add"));
}

// How many elements stand in each part of a range, which is all of theirs where it is none.
void convert_histc(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  const int64_t bins = node.integer("bins");
  if (bins < 1 || bins > build::kMaxListed) node.invalid(std::to_string(bins) + " bins");
  const ir::SymInt count = num_elements(node.shape(given));
  if (same(count, 0)) return node.set_output(0, c.filled(node.dtype(given), {bins}, 0));
  const V x = c.reshape(given, {count});
  V low = c.number(x, node.real("min")), high = c.number(x, node.real("max"));
  if (node.real("min") > node.real("max")) node.invalid("min is above max");
  if (node.real("min") == node.real("max")) {
    low = c.reduce("reduce_min", x, {0}, false);
    high = c.reduce("reduce_max", x, {0}, false);
    const V is_one = c.binary("equal", low, high), one = c.number(low, 1), none = c.number(low, 0);
    low = c.sub(low, c.where(is_one, one, none));
    high = c.add(high, c.where(is_one, one, none));
  }
  const V is_inside = both(node, c.binary("less_equal", low, x), c.binary("less_equal", x, high));
  const V own = c.where(is_inside, x, low);
  const V place =
      c.cast(c.div(c.times(c.sub(own, low), static_cast<double>(bins)), c.sub(high, low)), DType::kInt64);
  const V last = c.binary("min", place, c.number(place, static_cast<double>(bins - 1)));
  const V counts =
      scattered(node, c.filled(DType::kInt64, {bins}, 0), last, c.cast(is_inside, DType::kInt64), 0, "add");
  node.set_output(0, c.cast(counts, node.dtype(given)));
}

namespace {

/// The places x of y's elements along an axis, of which a row stands for all, or "dx" from one to the next.
V widths_of(NodeContext& node, V y, int64_t axis, DType dtype) {
  Compose c(node);
  if (!takes(node, "x")) return node.as(node.operand("dx"), dtype);
  V x = c.cast(node.tensor("x"), dtype);
  if (node.rank(x) > node.rank(y))
    node.unsupported("x", "places of more axes than y has are not implemented");
  if (node.rank(x) == 1) {
    ir::SymShape along(node.shape(y).size(), 1);
    along[static_cast<size_t>(axis)] = node.shape(x)[0];
    x = c.reshape(x, along);
  } else {
    while (node.rank(x) < node.rank(y)) x = c.unsqueeze(x, 0);
  }
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)], left = max(extent - 1, 0);
  return c.sub(c.slice(x, axis, min(extent, 1), left), c.slice(x, axis, 0, left));
}

}  // namespace

// The area below elements of an axis, between each two a line; cumulative ones up to each element.
void convert_trapezoid(NodeContext& node) {
  Compose c(node);
  std::vector<Operand> operands{node.operand("y")};
  operands.push_back(node.operand(takes(node, "x") ? "x" : "dx"));
  const DType common = node.common_type(operands), dtype = is_float(common) ? common : DType::kFloat32;
  const V y = c.cast(node.tensor("y"), dtype);
  const int64_t axis = node.axis("dim", node.rank(y));
  const bool is_running = node.op() == "cumulative_trapezoid";
  const ir::SymInt extent = node.shape(y)[static_cast<size_t>(axis)], steps = max(extent - 1, 0);
  ir::SymShape rest = node.shape(y);
  rest.erase(rest.begin() + axis);
  if (same(extent, 0) && !is_running) {
    for (const char* name : {"x", "dx"})
      if (takes(node, name)) static_cast<void>(node.has(name));
    return node.set_output(0, c.filled(dtype, rest, 0));
  }
  const V sums = c.add(c.slice(y, axis, min(extent, 1), steps), c.slice(y, axis, 0, steps));
  const V areas = c.mul(sums, widths_of(node, y, axis, dtype));
  const V whole = is_running ? node.add("cumsum", {areas}, {{"axis", axis}})
                             : c.reduce("reduce_sum", areas, {axis}, false);
  node.set_output(0, c.times(whole, 0.5));
}

// Slices of an axis that are longer than "maxnorm" as long as that.
void convert_renorm(NodeContext& node) {
  constexpr double kBesideZero = 1e-7;
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t axis = node.axis("dim", node.rank(x));
  std::vector<int64_t> others;
  for (int64_t i = 0; i < node.rank(x); ++i)
    if (i != axis) others.push_back(i);
  if (others.empty()) node.invalid("the input has rank 1");
  const double most = node.real("maxnorm");
  const V wide = widened(node, x), length = p_norm(node, wide, node.real("p"), others, true);
  const V factor = c.div(c.number(length, most), c.plus(length, kBesideZero));
  const V is_long = c.binary("greater", length, c.number(length, most));
  node.set_output(0, c.cast(c.mul(wide, c.where(is_long, factor, c.number(factor, 1))), node.dtype(x)));
}

// The norm of what all elements of both are apart.
void convert_dist(NodeContext& node) {
  Compose c(node);
  const Operand first = node.operand("self"), second = node.operand("other");
  const DType common = node.common_type({first, second}), dtype = is_float(common) ? common : DType::kFloat32;
  const V apart = with_axis(node, c.sub(node.as(first, dtype), node.as(second, dtype)));
  node.set_output(0, p_norm(node, apart, node.real("p"), c.count_to(node.rank(apart)), false));
}

}  // namespace tensormill::frontend::pytorch
