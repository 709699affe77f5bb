// Sums, means, extrema and running ones along axes.
#include <algorithm>
#include <limits>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

bool keeps(NodeContext& node) { return takes(node, "keepdim") && node.flag("keepdim"); }

std::vector<int64_t> axes_of(NodeContext& node, V x) {
  if (takes(node, "dim")) return reduced_axes(node, "dim", x);
  return Compose(node).count_to(node.rank(x));
}

struct Moments {
  V mean, variance;
};

/// Mean and variance, in float32 of narrower floats.
Moments moments(NodeContext& node, V x, const std::vector<int64_t>& axes, double correction, bool keepdim) {
  Compose c(node);
  const V mean = c.reduce("reduce_mean", x, axes, true);
  const V apart = c.sub(x, mean);
  const V squares = c.reduce("reduce_sum", c.mul(apart, apart), axes, keepdim);
  const V variance = c.div(squares, count_of(node, squares, x, axes, correction));
  return {keepdim || axes.empty() ? mean : c.reduce("reduce_mean", x, axes, false), variance};
}

/// How much is taken from the number of elements: argument correction, or unbiased.
double correction_of(NodeContext& node) {
  if (node.row().overload.starts_with("correction"))
    return node.has("correction") ? node.real("correction") : 1;
  return node.flag("unbiased") ? 1 : 0;
}

}  // namespace

void convert_sum(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  V x = c.cast(node.tensor("self"), node.output_dtype());
  if (node.op() == "nansum") x = c.where(node.add("is_nan", {x}), c.number(x, 0), x);
  node.set_output(0, c.reduce("reduce_sum", x, axes_of(node, x), keeps(node)));
}

void convert_mean(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const V x = c.cast(node.tensor("self"), node.output_dtype());
  const std::vector<int64_t> axes = axes_of(node, x);
  if (node.op() != "nanmean") return node.set_output(0, c.reduce("reduce_mean", x, axes, keeps(node)));
  const V is_none = node.add("is_nan", {x}), zero = c.number(x, 0);
  const V sum = c.reduce("reduce_sum", c.where(is_none, zero, x), axes, keeps(node));
  const V count = c.reduce("reduce_sum", c.where(is_none, zero, c.number(x, 1)), axes, keeps(node));
  node.set_output(0, c.div(sum, count));
}

void convert_prod(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const V x = c.cast(node.tensor("self"), node.output_dtype());
  node.set_output(0, c.reduce("reduce_prod", x, axes_of(node, x), keeps(node)));
}

void convert_extrema(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const bool is_max = node.op() == "amax" || node.op() == "max";
  const V y = c.reduce(is_max ? "reduce_max" : "reduce_min", numeric(node, x), axes_of(node, x), keeps(node));
  node.set_output(0, node.as_output(y));
}

void convert_aminmax(NodeContext& node) {
  Compose c(node);
  const V x = numeric(node, node.tensor("self"));
  const std::vector<int64_t> axes = axes_of(node, x);
  const bool keepdim = keeps(node);
  node.set_output(0, node.as_output(c.reduce("reduce_min", x, axes, keepdim), 0));
  node.set_output(1, node.as_output(c.reduce("reduce_max", x, axes, keepdim), 1));
}

// Values along an axis, and where they stand first.
void convert_extremum_along(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  const int64_t axis = node.axis_or_first("dim", node.rank(given));
  const bool keepdim = node.flag("keepdim"), is_max = node.op() == "max";
  const bool was_scalar = node.rank(given) == 0;
  const V x = numeric(node, with_axis(node, given));
  V value = c.reduce(is_max ? "reduce_max" : "reduce_min", x, {axis}, keepdim && !was_scalar);
  V place =
      node.add(is_max ? "arg_max" : "arg_min", {x},
               {{"axis", axis}, {"keepdims", int64_t{keepdim && !was_scalar}}, {"select_last", int64_t{0}}});
  node.set_output(0, node.as_output(value, 0));
  node.set_output(1, place);
}

void convert_arg_extremum(NodeContext& node) {
  Compose c(node);
  V x = numeric(node, node.tensor("self"));
  const char* op = node.op() == "argmax" ? "arg_max" : "arg_min";
  const bool keepdim = node.flag("keepdim");
  const size_t rank = node.shape(x).size();
  if (!node.has("dim") || rank == 0) {
    const V flat = c.reshape(x, {num_elements(node.shape(x))});
    const V place =
        node.add(op, {flat}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}, {"select_last", int64_t{0}}});
    return node.set_output(0, keepdim ? c.reshape(place, ir::SymShape(rank, 1)) : place);
  }
  const int64_t axis = node.axis_or_first("dim", node.rank(x));
  node.set_output(
      0, node.add(op, {x}, {{"axis", axis}, {"keepdims", int64_t{keepdim}}, {"select_last", int64_t{0}}}));
}

void convert_truths(NodeContext& node) {
  Compose c(node);
  const V x = c.cast(to_bool(node, node.tensor("self")), DType::kUInt8);
  const V y = c.reduce(node.op() == "any" ? "reduce_max" : "reduce_min", x, axes_of(node, x), keeps(node));
  node.set_output(0, node.as_output(c.cast(y, DType::kBool)));
}

void convert_count_nonzero(NodeContext& node) {
  Compose c(node);
  const V x = c.cast(to_bool(node, node.tensor("self")), DType::kInt64);
  node.set_output(0, c.reduce("reduce_sum", x, axes_of(node, x), false));
}

void convert_variance(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const std::vector<int64_t> axes = axes_of(node, x);
  const Moments found = moments(node, x, axes, correction_of(node), keeps(node));
  const bool is_root = node.op() == "std" || node.op() == "std_mean";
  node.set_output(0, is_root ? c.unary("sqrt", found.variance) : found.variance);
  if (node.op().ends_with("_mean")) node.set_output(1, found.mean);
}

void convert_logsumexp(NodeContext& node) {
  const V x = floated(node, node.tensor("self"));
  node.set_output(0, Compose(node).reduce("reduce_log_sum_exp", x, axes_of(node, x), keeps(node)));
}

V p_norm(NodeContext& node, V x, double p, const std::vector<int64_t>& axes, bool keepdim) {
  Compose c(node);
  if (p == 2) return c.reduce("reduce_l2", x, axes, keepdim);
  if (p == 1) return c.reduce("reduce_l1", x, axes, keepdim);
  const V size = c.unary("abs", x);
  if (std::isinf(p)) return c.reduce(p > 0 ? "reduce_max" : "reduce_min", size, axes, keepdim);
  if (p == 0) return c.reduce("reduce_sum", c.cast(to_bool(node, x), node.dtype(x)), axes, keepdim);
  const V sum = c.reduce("reduce_sum", c.binary("pow", size, c.number(x, p)), axes, keepdim);
  return c.binary("pow", sum, c.number(sum, 1 / p));
}

void convert_norm(NodeContext& node) {
  Compose c(node);
  const char* order = node.op() == "norm" ? "p" : "ord";
  const bool has_order = takes(node, order) && node.has(order);
  const double p = has_order ? node.real(order) : 2;
  if (takes(node, "dtype")) static_cast<void>(node.optional_dtype("dtype"));
  V x = c.cast(node.tensor("self"), node.output_dtype());
  // Without an order a matrix counts as one long row.
  const size_t summed = axes_of(node, x).size();
  if (node.op() == "linalg_norm" && has_order && summed != 1) return convert_matrix_norm(node);
  if (node.rank(x) == 0) {
    static_cast<void>(axes_of(node, x));
    static_cast<void>(keeps(node));
    const V one = c.reshape(x, {1});
    return node.set_output(0, c.reshape(p_norm(node, one, p, {0}, true), {}));
  }
  node.set_output(0, p_norm(node, x, p, axes_of(node, x), keeps(node)));
}

// The norm of x1 - x2 + eps along the last axis.
void convert_pairwise_distance(NodeContext& node) {
  Compose c(node);
  const Operand first = node.operand("x1"), second = node.operand("x2");
  const DType common = node.common_type({first, second}), dtype = is_float(common) ? common : DType::kFloat32;
  const V apart =
      with_axis(node, c.plus(c.sub(node.as(first, dtype), node.as(second, dtype)), node.real("eps")));
  const bool keepdim =
      node.flag("keepdim") && node.rank(node.tensor("x1")) + node.rank(node.tensor("x2")) > 0;
  node.set_output(0, p_norm(node, apart, node.real("p"), {node.rank(apart) - 1}, keepdim));
}

// The norms of the differences of all two rows, in the order of their first ones, then of their second ones.
void convert_pdist(NodeContext& node) {
  constexpr int64_t kMostRows = 2048;
  Compose c(node);
  const V x = node.tensor("self");
  if (node.rank(x) != 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const int64_t rows = node.shape(x)[0];
  if (rows > kMostRows) node.unsupported("self", std::to_string(rows) + " rows are not implemented");
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i + 1; j < rows; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  }
  const auto taken = [&](const std::vector<int64_t>& places) {
    return c.gather(x, c.ints(places, {static_cast<int64_t>(places.size())}), 0);
  };
  const V norms = p_norm(node, c.sub(taken(first), taken(second)), node.real("p"), {1}, false);
  // The largest of no differences is 0 here.
  node.set_output(0, c.binary("max", norms, c.number(norms, 0)));
}

void convert_running(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  // In place, whole numbers keep their type, too.
  const DType made = node.output_dtype();
  const V given = c.cast(node.tensor("self"), is_float(made) ? made : DType::kInt64);
  const int64_t axis = node.axis_or_first("dim", node.rank(given));
  const V y = node.add(node.op(), {with_axis(node, given)}, {{"axis", axis}});
  node.set_output(0, node.as_output(c.reshape(y, node.shape(given))));
}

void convert_softmax(NodeContext& node) {
  const std::string& op = node.op();
  const bool is_log = op.find("log_softmax") != std::string::npos;
  const bool has_dtype = takes(node, "dtype");
  if (has_dtype) static_cast<void>(node.optional_dtype("dtype"));
  Compose c(node);
  const V x = c.cast(node.tensor("self"), node.output_dtype());
  const int64_t axis = node.axis_or_first("dim", node.rank(x));
  const V y = softmax_along(node, is_log ? "log_softmax" : "softmax", x, axis);
  if (op != "_safe_softmax") return node.set_output(0, y);
  // Where all are masked, nothing is taken.
  const V highest = c.reduce("reduce_max", with_axis(node, x), {axis}, true);
  const V none = c.number(highest, -std::numeric_limits<double>::infinity());
  const V is_masked = c.binary("equal", highest, none);
  node.set_output(0, c.where(node.rank(x) == 0 ? c.reshape(is_masked, {}) : is_masked, c.number(y, 0), y));
}

namespace {

/// As many elements in order along an axis as `k`, with their places.
void set_sorted(NodeContext& node, const ir::SymInt& k, int64_t axis, bool largest) {
  Compose c(node);
  const V given = node.tensor("self"), x = with_axis(node, given);
  const V order = sorted_positions(node, x, axis, k, largest);
  const bool was_scalar = node.rank(given) == 0;
  const V values = c.gather_elements(x, order, axis);
  if (node.op() == "msort") return node.set_output(0, was_scalar ? c.reshape(values, {}) : values);
  if (node.op() == "argsort") return node.set_output(0, was_scalar ? c.reshape(order, {}) : order);
  node.set_output(0, was_scalar ? c.reshape(values, {}) : values);
  node.set_output(1, was_scalar ? c.reshape(order, {}) : order);
}

}  // namespace

void convert_topk(NodeContext& node) {
  const int64_t axis = node.axis_or_first("dim", node.rank(node.tensor("self")));
  static_cast<void>(node.flag("sorted"));
  set_sorted(node, node.sym("k"), axis, node.flag("largest"));
}

// Of equal elements the first comes first: a stable order is a right one of those that are not asked to be.
void convert_sort(NodeContext& node) {
  const V x = with_axis(node, node.tensor("self"));
  const bool is_plain = node.op() == "msort";
  const int64_t axis = is_plain ? 0 : node.axis_or_first("dim", node.rank(x));
  set_sorted(node, node.shape(x)[static_cast<size_t>(axis)], axis, !is_plain && node.flag("descending"));
}

}  // namespace tensormill::frontend::pytorch
