// Reductions and what sorts.
#include <cmath>
#include <limits>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/moves.h"
#include "compiler/build/moves/places.h"
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
  return node.normalize_axes(node.known_ints(1, "axis"), rank);
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
  Compose c(node);
  if (node.op() == "EuclideanNorm" && !is_float(node.dtype(x))) {
    // The sum of squares in their own type, and what of its root is whole.
    const V squares = c.summable(node.binary("mul", x, x));
    const V sum =
        axes.empty() ? squares : build::reduced(node, node.maps(), "reduce_sum", squares, axes, keeps);
    const V root = node.elementwise("sqrt", {node.cast(node.cast(sum, node.dtype(x)), DType::kFloat64)});
    return node.set_output(0, node.cast(root, node.dtype(x)));
  }
  if (axes.empty())
    return node.set_output(0, node.op() == "EuclideanNorm" ? node.elementwise("abs", {x}) : x);
  // Integers have whole means, which are the sum's parts.
  if (node.op() != "Mean" || is_float(node.dtype(x)))
    return node.set_output(0, reduced(node, x, axes, keeps));
  ir::SymInt count = 1;
  for (const int64_t axis : axes) count = count * node.shape(x)[static_cast<size_t>(axis)];
  const V sum = build::reduced(node, node.maps(), "reduce_sum", c.summable(x), axes, keeps);
  node.set_output(0, node.cast(node.binary("div", sum, c.extent(sum, count)), node.dtype(x)));
}

void convert_arg_reduce(NodeContext& node) {
  Compose c(node);
  // The order of bools is that of numbers.
  const V given = node.input(0), x = node.dtype(given) == DType::kBool ? c.cast(given, DType::kUInt8) : given;
  const int64_t axis = node.normalize_axis(node.known_int(1, "dimension"), node.rank(x));
  const ir::Attrs attrs{{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last", int64_t{0}}};
  const DType to = node.dtype_attr("output_type", DataType::kInt64);
  node.set_output(0, c.cast(node.add(node.op() == "ArgMax" ? "arg_max" : "arg_min", {x}, attrs), to));
}

void convert_top_k(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t axis = node.rank(x) - 1;
  if (axis < 0) node.invalid("the input has no axis");
  const ir::SymInt most = c.shape(x).back();
  const bool is_first = node.op() == "TopK", is_known = is_first || node.is_known(1);
  V count = ir::kAbsent;
  if (!is_known) {
    // A run that wants more than there are fails.
    count = c.cast(c.reshape(node.input(1), {1}), DType::kInt64);
    count = build::required(node, count, c.binary("less_equal", count, c.dims({most}, {1})),
                            "k is more than there is along the last axis");
  }
  const ir::SymInt k = is_first ? ir::SymInt(node.integer("k")) : is_known ? node.known_int(1, "k") : most;
  // In order they are right, too, where any order is.
  static_cast<void>(node.flag("sorted", true));
  const DType to = node.op() == "TopKV2" ? node.dtype_attr("index_type", DataType::kInt32) : DType::kInt32;
  V order = build::ordered_places(node, x, axis, k, false);
  if (!is_known) order = build::bound_part(node, order, axis, count);
  node.set_output(0, c.gather_elements(x, order, axis));
  node.set_output(1, c.cast(order, to));
}

void convert_running(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.normalize_axis(node.known_int(1, "axis"), node.rank(x));
  const ir::Attrs attrs{{"axis", axis},
                        {"exclusive", int64_t{node.flag("exclusive", false)}},
                        {"reverse", int64_t{node.flag("reverse", false)}}};
  // Short integers are summed as wider ones, whose lower bits are the same.
  Compose c(node);
  const V wide = is_float(node.dtype(x)) ? x : c.summable(x);
  node.set_output(
      0, c.cast(node.add(node.op() == "Cumsum" ? "cumsum" : "cumprod", {wide}, attrs), node.dtype(x)));
}

namespace {

/// What changes no extreme of the type: its least number, or its greatest.
V neutral_of_extreme(NodeContext& node, DType dtype, bool is_max) {
  const auto limit = [&](auto kind) {
    using Number = decltype(kind);
    using Limits = std::numeric_limits<Number>;
    const Number number = is_max ? Limits::lowest() : Limits::max();
    return node.constant(::tensormill::Tensor::from<Number>({}, std::vector<Number>{number}));
  };
  switch (dtype) {
    case DType::kInt8:
      return limit(int8_t{});
    case DType::kUInt8:
      return limit(uint8_t{});
    case DType::kInt16:
      return limit(int16_t{});
    case DType::kUInt16:
      return limit(uint16_t{});
    case DType::kInt32:
      return limit(int32_t{});
    case DType::kUInt32:
      return limit(uint32_t{});
    case DType::kInt64:
      return limit(int64_t{});
    case DType::kUInt64:
      return limit(uint64_t{});
    case DType::kFloat64:
      return limit(double{});
    case DType::kFloat16:
      return Compose(node).doubles(dtype, {is_max ? -65504.0 : 65504.0}, {});
    case DType::kBFloat16:
      // The greatest finite one: eight ones behind the point.
      return Compose(node).doubles(dtype, {(is_max ? -1 : 1) * std::ldexp(255.0, 120)}, {});
    default:
      return limit(float{});
  }
}

}  // namespace

namespace {

/// Rows of data of one segment each, by `reduction`, `neutral` where a segment has none. Rows with an id
/// below 0 belong to none: they go to a row behind the segments, which is cut off.
V segments_of(NodeContext& node, V data, V ids, const ir::SymInt& count, V neutral, const char* reduction) {
  Compose c(node);
  const ir::SymShape shape = node.shape(data), places = node.shape(ids);
  if (places.size() > shape.size())
    node.invalid("segment ids of shape " + to_string(places) + " for " + to_string(shape));
  ir::SymShape rows(shape.begin() + static_cast<std::ptrdiff_t>(places.size()), shape.end()), table = rows;
  const ir::SymInt total = num_elements(places);
  rows.insert(rows.begin(), total);
  table.insert(table.begin(), count + 1);
  const V given = c.reshape(c.cast(ids, DType::kInt64), {total});
  const V flat = c.where(c.binary("less", given, c.number(given, 0)), c.dims({count}, {}), given);
  const V all = build::scattered(node, c.expand(neutral, table), flat, c.reshape(data, rows), reduction);
  return c.slice(all, 0, 0, count);
}

struct Segments {
  const char* reduction;
  V neutral;
};

/// By the operator's name, behind its prefix.
Segments segments_by(NodeContext& node, std::string_view name, DType dtype) {
  if (name == "Max" || name == "Min")
    return {name == "Max" ? "max" : "min", neutral_of_extreme(node, dtype, name == "Max")};
  Compose c(node);
  const V like = c.doubles(dtype, {0}, {});
  return {name == "Prod" ? "mul" : "add", c.number(like, name == "Prod" ? 1 : 0)};
}

}  // namespace

// Operands: data, segment ids, number of segments; of an empty segment what changes nothing.
void convert_unsorted_segment(NodeContext& node) {
  const V data = node.input(0);
  const Segments by =
      segments_by(node, node.op().substr(std::string_view("UnsortedSegment").size()), node.dtype(data));
  const ir::SymInt count = build::only_integer(node, node.extents_at(2, "num_segments"), "num_segments");
  node.set_output(0, segments_of(node, data, node.input(1), count, by.neutral, by.reduction));
}

namespace {

/// How many segments there are: ids do not fall, so that the last one says it.
ir::SymInt number_of_segments(NodeContext& node, V ids) {
  Compose c(node);
  const V last = c.reduce("reduce_max", c.concat({c.plus(ids, 1), c.ints({0}, {1})}, 0), {0}, true);
  return build::bind_run_numbers(node, last, 0, std::nullopt)[0];
}

/// Rows of data by segments, with ids [rows], by the operator's name behind its prefix. An empty segment is
/// 0, or 1 of products.
V segmented(NodeContext& node, std::string_view name, V data, V ids, const ir::SymInt& count) {
  Compose c(node);
  // Short integers are summed as wider ones, whose lower bits are the same.
  const bool is_extreme = name == "Max" || name == "Min", is_scaled = name == "Mean" || name == "SqrtN";
  const V x = is_extreme || is_float(node.dtype(data)) ? data : c.summable(data);
  const Segments by = segments_by(node, name, node.dtype(x));
  V y = segments_of(node, x, ids, count, by.neutral, by.reduction);
  if (is_scaled || is_extreme) {
    const V one = c.number(ids, 1), none = c.number(ids, 0);
    const V counts = segments_of(node, c.expand(one, node.shape(ids)), ids, count, none, "add");
    ir::SymShape along(node.shape(y).size(), 1);
    along[0] = count;
    const V many = c.reshape(counts, along);
    V divisor = c.cast(c.binary("max", many, c.number(many, 1)), node.dtype(y));
    if (name == "SqrtN") divisor = c.unary("sqrt", divisor);
    y = is_scaled ? c.div(y, divisor)
                  : c.where(c.binary("equal", many, c.number(many, 0)), c.number(y, 0), y);
  }
  return c.cast(y, node.dtype(data));
}

V checked_ids(NodeContext& node, size_t operand) {
  const V ids = Compose(node).cast(node.input(operand), DType::kInt64);
  if (node.rank(ids) != 1) node.invalid("segment ids of shape " + to_string(node.shape(ids)));
  return ids;
}

}  // namespace

// Operands: data, segment ids [rows] that do not fall; the last one says how many there are.
void convert_segment(NodeContext& node) {
  const V ids = checked_ids(node, 1);
  const std::string_view name = node.op().substr(std::string_view("Segment").size());
  node.set_output(0, segmented(node, name, node.input(0), ids, number_of_segments(node, ids)));
}

// Operands: data, which of its rows, their segment ids, and, of the forms that have it, how many segments
// there are.
void convert_sparse_segment(NodeContext& node) {
  const V ids = checked_ids(node, 2), rows = Compose(node).gather(node.input(0), node.input(1), 0);
  std::string_view name = node.op().substr(std::string_view("SparseSegment").size());
  const bool has_number = name.ends_with("WithNumSegments");
  name = name.substr(0, name.find("WithNum"));
  const ir::SymInt count = has_number
                               ? build::only_integer(node, node.extents_at(3, "num_segments"), "num_segments")
                               : number_of_segments(node, ids);
  node.set_output(0, segmented(node, name, rows, ids, count));
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

// Of rows that rise, where in each row numbers would be put: before those that are equal, or behind them.
void convert_sorted_place(NodeContext& node) {
  Compose c(node);
  const V rows = node.input(0), values = node.input(1);
  const DType to = node.dtype_attr("out_type", DataType::kInt32);
  if (node.rank(rows) != 2 || node.rank(values) != 2)
    node.invalid("rows of shape " + to_string(node.shape(rows)) + " for numbers of " +
                 to_string(node.shape(values)));
  const char* is_before = node.op() == "LowerBound" ? "less" : "less_equal";
  const V before = c.binary(is_before, c.unsqueeze(rows, 1), c.unsqueeze(values, 2));
  node.set_output(0, c.reduce("reduce_sum", c.cast(before, to), {2}, false));
}

// How often numbers are in each of so many parts of a range; what is outside of it counts as its ends.
void convert_histogram(NodeContext& node) {
  Compose c(node);
  const ir::SymInt parts = build::only_integer(node, node.extents_at(2, "nbins"), "nbins"),
                   count = num_elements(node.shape(node.input(0)));
  const V x = c.reshape(node.input(0), {count}), range = node.input(1);
  if (node.rank(range) != 1) node.invalid("a range of shape " + to_string(node.shape(range)));
  const auto end = [&](int64_t i) { return c.reshape(c.slice(range, 0, i, 1), {}); };
  const auto wide = [&](V numbers) { return c.cast(numbers, DType::kFloat64); };
  const V low = end(0), high = end(1), span = wide(c.sub(high, low));
  const V step = build::required(node, c.div(span, c.extent(span, parts)), c.binary("less", low, high),
                                 "a range of nothing");
  const V is_number = c.binary("equal", x, x);
  const V above =
      build::required(node, wide(c.sub(c.binary("max", x, low), low)), is_number, "a value is NaN");
  const V last = c.dims({parts - 1}, {});
  const V place = c.binary("min", c.cast(c.unary("floor", c.div(above, step)), DType::kInt64), last);
  const DType to = node.dtype_attr("dtype", DataType::kInt32);
  node.set_output(0,
                  build::scattered(node, c.filled(to, {parts}, 0), place, c.filled(to, {count}, 1), "add"));
}

// Operands: rows of logits, and what is wanted of each: probabilities, or the place of the only one. Results:
// the loss of each row, and its slopes.
void convert_cross_entropy(NodeContext& node) {
  Compose c(node);
  V x = node.input(0), wanted = node.input(1);
  const bool is_place = node.op() == "SparseSoftmaxCrossEntropyWithLogits";
  if (node.rank(x) != 2 || node.rank(wanted) != (is_place ? 1 : 2))
    node.invalid("logits of shape " + to_string(node.shape(x)) + ", labels of " +
                 to_string(node.shape(wanted)));
  if (is_place) {
    const V classes = c.positions(node.shape(x)[1], 1, 2), place = c.cast(wanted, DType::kInt64);
    const V is_class = c.binary("and", c.binary("greater_equal", place, c.number(place, 0)),
                                c.binary("less", place, c.dims({node.shape(x)[1]}, {})));
    const V chosen = build::required(node, place, is_class, "a label is no class");
    wanted = c.cast(c.binary("equal", c.unsqueeze(chosen, 1), classes), node.dtype(x));
  }
  const ir::SymShape shape = broadcast_shapes(node.shape(x), node.shape(wanted));
  x = c.expand(x, shape);
  const V moved = c.sub(x, c.reduce("reduce_max", x, {1}, true)), powers = c.unary("exp", moved);
  const V sums = c.reduce("reduce_sum", powers, {1}, true);
  // What is wanted with 0 adds nothing, however unlikely it is.
  const V terms = c.mul(wanted, c.sub(c.unary("log", sums), moved));
  const V none = c.binary("equal", wanted, c.number(wanted, 0));
  node.set_output(0, c.reduce("reduce_sum", c.where(none, c.number(terms, 0), terms), {1}, false));
  node.set_output(1, c.sub(c.div(powers, sums), wanted));
}

}  // namespace tensormill::frontend::tensorflow
