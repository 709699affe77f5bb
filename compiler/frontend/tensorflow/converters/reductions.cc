// Reductions and what sorts.
#include <algorithm>
#include <limits>

#include "compiler/build/moves.h"
#include "compiler/build/places.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

const char* reduction_of(std::string_view op) {
  if (op == "Mean") return "reduce_mean";
  if (op == "Sum") return "reduce_sum";
  if (op == "Prod") return "reduce_prod";
  if (op == "EuclideanNorm") return "reduce_l2";
  return op == "Min" || op == "All" ? "reduce_min" : "reduce_max";
}

/// Operand 1, in order and once each.
std::vector<int64_t> axes_of(NodeContext& node, int64_t rank) {
  std::vector<int64_t> axes = node.known_ints(1, "axis");
  for (int64_t& axis : axes) axis = node.normalize_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

/// Small integers are summed as wider ones, whose lower bits are the same.
V reduced(NodeContext& node, V x, const std::vector<int64_t>& axes, bool keeps) {
  Compose c(node);
  const DType dtype = node.dtype(x);
  const char* op = reduction_of(node.op());
  // The order of bools is that of numbers.
  if (dtype == DType::kBool) x = node.cast(x, DType::kUInt8);
  const bool is_sum = node.op() == "Sum" || node.op() == "Prod" || node.op() == "Mean";
  if (is_sum && !is_float(dtype)) x = c.summable(x);
  return node.cast(build::reduced(node, node.maps(), op, x, axes, keeps), dtype);
}

}  // namespace

void convert_reduce(NodeContext& node) {
  const V x = node.input(0);
  const std::vector<int64_t> axes = axes_of(node, node.rank(x));
  const bool keeps = node.flag("keep_dims", false);
  if (axes.empty())
    return node.set_output(0, node.op() == "EuclideanNorm" ? node.elementwise("abs", {x}) : x);
  // Integers have whole means, which are the sum's parts.
  if (node.op() != "Mean" || is_float(node.dtype(x)))
    return node.set_output(0, reduced(node, x, axes, keeps));
  Compose c(node);
  ir::SymInt count = 1;
  for (const int64_t axis : axes) count = count * node.shape(x)[static_cast<size_t>(axis)];
  const V sum = build::reduced(node, node.maps(), "reduce_sum", c.summable(x), axes, keeps);
  node.set_output(0, node.cast(node.binary("div", sum, c.extent(sum, count)), node.dtype(x)));
}

void convert_arg_reduce(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t axis = node.normalize_axis(node.known_int(1, "dimension"), node.rank(x));
  const ir::Attrs attrs{{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last", int64_t{0}}};
  const DType to = node.dtype_attr("output_type", DataType::kInt64);
  node.set_output(0, c.cast(node.add(node.op() == "ArgMax" ? "arg_max" : "arg_min", {x}, attrs), to));
}

void convert_top_k(NodeContext& node) {
  constexpr int64_t kSortedByKernel = 256;
  Compose c(node);
  const V x = node.input(0);
  const int64_t axis = node.rank(x) - 1;
  if (axis < 0) node.invalid("the input has no axis");
  const int64_t k = node.known_int(1, "k");
  // In order they are right, too, where any order is.
  static_cast<void>(node.flag("sorted", true));
  const DType to = node.op() == "TopKV2" ? node.dtype_attr("index_type", DataType::kInt32) : DType::kInt32;
  const bool by_host = !is_proven(ir::Relation::kLessEqual, c.shape(x).back(), kSortedByKernel);
  const V order = node.add(by_host ? "sort_positions" : "arg_top_k", {x},
                           {{"axis", axis}, {"k", k}, {"largest", int64_t{1}}});
  node.set_output(0, c.gather_elements(x, order, axis));
  node.set_output(1, c.cast(order, to));
}

void convert_running(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.normalize_axis(node.known_int(1, "axis"), node.rank(x));
  const ir::Attrs attrs{{"axis", axis},
                        {"exclusive", int64_t{node.flag("exclusive", false)}},
                        {"reverse", int64_t{node.flag("reverse", false)}}};
  node.set_output(0, node.add(node.op() == "Cumsum" ? "cumsum" : "cumprod", {x}, attrs));
}

// Operands: data, segment ids, number of segments; of an empty segment what changes nothing.
void convert_unsorted_segment(NodeContext& node) {
  Compose c(node);
  const V data = node.input(0), ids = node.input(1);
  const ir::SymInt count = node.known_int(2, "num_segments");
  const ir::SymShape shape = node.shape(data), places = node.shape(ids);
  if (places.size() > shape.size())
    node.invalid("segment ids of shape " + to_string(places) + " for " + to_string(shape));
  const std::string_view op = node.op();
  const bool is_extreme = op == "UnsortedSegmentMax" || op == "UnsortedSegmentMin",
             is_max = op == "UnsortedSegmentMax";
  if (is_extreme && node.dtype(data) != DType::kFloat32)
    node.unsupported("operand 0", "extremes of other types than float32 are not implemented");
  const double neutral = op == "UnsortedSegmentProd" ? 1
                         : !is_extreme               ? 0
                         : is_max ? static_cast<double>(std::numeric_limits<float>::lowest())
                                  : static_cast<double>(std::numeric_limits<float>::max());
  const char* reduction = op == "UnsortedSegmentProd" ? "mul" : !is_extreme ? "add" : is_max ? "max" : "min";
  ir::SymShape rows(shape.begin() + static_cast<std::ptrdiff_t>(places.size()), shape.end()), table = rows;
  const ir::SymInt total = num_elements(places);
  rows.insert(rows.begin(), total);
  table.insert(table.begin(), count);
  const V flat = c.reshape(c.cast(ids, DType::kInt64), {total});
  node.set_output(0, build::scattered(node, c.filled(node.dtype(data), table, neutral), flat,
                                      c.reshape(data, rows), reduction));
}

// How many of the boundaries a number is not below.
void convert_bucketize(NodeContext& node) {
  Compose c(node);
  const std::vector<float> boundaries = node.reals("boundaries");
  const V x = c.cast(node.input(0), DType::kFloat64);
  const std::vector<double> bounds(boundaries.begin(), boundaries.end());
  const V row = c.doubles(DType::kFloat64, bounds, {static_cast<int64_t>(bounds.size())});
  const V reached = c.binary("greater_equal", c.unsqueeze(x, node.rank(x)), row);
  node.set_output(0, c.reduce("reduce_sum", c.cast(reached, DType::kInt32), {node.rank(x)}, false));
}

}  // namespace tensormill::frontend::tensorflow
