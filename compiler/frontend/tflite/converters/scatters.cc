// Operators that put elements at places, and those that compare with places or bounds.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

namespace {

/// Rows [n,...] put at the places [n] of `filled` [rows,...].
V scattered(NodeContext& node, V filled, V places, V rows, const char* reduction) {
  constexpr int64_t kMostByKernel = 256;
  Compose c(node);
  ir::SymShape along(node.shape(rows).size(), 1);
  along[0] = node.shape(rows)[0];
  const V indices = c.expand(c.reshape(places, along), node.shape(rows));
  // A kernel looks at every update for every element.
  const bool by_host = node.is_one_form() || node.shape(rows)[0].hint() > kMostByKernel;
  return node.add(by_host ? "scatter" : "scatter_elements", {filled, indices, rows},
                  {{"axis", int64_t{0}}, {"reduction", std::string(reduction)}});
}

/// indices [..., depth] into axes of `shape`, as one place in the axes taken together: [n].
V flat_places(NodeContext& node, V indices, const ir::SymShape& shape, int64_t depth) {
  Compose c(node);
  const ir::SymShape own = node.shape(indices);
  const ir::SymInt count = num_elements(ir::SymShape(own.begin(), own.end() - 1));
  const V table = c.cast(c.reshape(indices, {count, depth}), DType::kInt64);
  V place = c.filled(DType::kInt64, {count, 1}, 0);
  for (int64_t d = 0; d < depth; ++d)
    place = c.add(c.mul(place, c.dims({shape[static_cast<size_t>(d)]}, {1})), c.slice(table, 1, d, 1));
  return c.reshape(place, {count});
}

}  // namespace

// Operands: indices, updates, shape. Updates of one place are added.
void convert_scatter_nd(NodeContext& node) {
  const ir::SymShape shape = node.known_ints(2, "shape");
  set_moved(node, 1, [&](V updates) {
    Compose c(node);
    const V indices = node.stored(0);
    const ir::SymShape places = node.shape(indices);
    if (places.empty() || !places.back().is_constant())
      node.unsupported("indices", "their depth is a free dim");
    const int64_t depth = places.back().hint();
    if (depth < 1 || depth > static_cast<int64_t>(shape.size()))
      node.invalid("indices of depth " + std::to_string(depth) + " for shape " + to_string(shape));
    ir::SymShape rows(shape.begin() + depth, shape.end()), table = rows;
    rows.insert(rows.begin(), num_elements(ir::SymShape(places.begin(), places.end() - 1)));
    table.insert(table.begin(), num_elements(ir::SymShape(shape.begin(), shape.begin() + depth)));
    const V whole = scattered(node, c.filled(node.type(updates).dtype, table, 0),
                              flat_places(node, indices, shape, depth), c.reshape(updates, rows), "add");
    return c.reshape(whole, shape);
  });
}

// Operands: data, segment ids, number of segments; of an empty segment what changes nothing.
void convert_unsorted_segment(NodeContext& node) {
  Compose c(node);
  const V data = node.real(0), ids = node.stored(1);
  const ir::SymInt count = node.known_int(2, "num_segments");
  const ir::SymShape shape = node.shape(data), places = node.shape(ids);
  if (places.size() > shape.size())
    node.invalid("segment ids of shape " + to_string(places) + " for " + to_string(shape));
  const DType dtype = node.type(data).dtype;
  const std::string_view op = node.op();
  const char* reduction = "add";
  double neutral = 0;
  if (op == "UNSORTED_SEGMENT_PROD") {
    reduction = "mul";
    neutral = 1;
  } else if (op != "UNSORTED_SEGMENT_SUM") {
    if (dtype != DType::kFloat32) node.unsupported("operand 0", "extremes of integers are not implemented");
    const bool is_max = op == "UNSORTED_SEGMENT_MAX";
    reduction = is_max ? "max" : "min";
    neutral = static_cast<double>(is_max ? std::numeric_limits<float>::lowest()
                                         : std::numeric_limits<float>::max());
  }
  ir::SymShape rows(shape.begin() + static_cast<std::ptrdiff_t>(places.size()), shape.end()), table = rows;
  const ir::SymInt total = num_elements(places);
  rows.insert(rows.begin(), total);
  table.insert(table.begin(), count);
  node.set_real(
      0, scattered(node, c.filled(dtype, table, neutral), c.reshape(c.cast(ids, DType::kInt64), {total}),
                   c.reshape(data, rows), reduction));
}

namespace {

/// Where the last two axes of a shape have the same place.
V on_diagonal(NodeContext& node, const ir::SymShape& shape) {
  Compose c(node);
  const size_t rank = shape.size();
  return c.binary("equal", c.positions(shape[rank - 2], rank - 2, rank),
                  c.positions(shape[rank - 1], rank - 1, rank));
}

}  // namespace

void convert_matrix_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.real(0);
  ir::SymShape shape = node.shape(x);
  if (shape.empty()) node.invalid("the input has no axis");
  shape.push_back(shape.back());
  const V row = c.unsqueeze(x, node.rank(x) - 1);
  node.set_real(0, c.where(on_diagonal(node, shape), row, c.number(x, 0)));
}

void convert_matrix_set_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.real(0), diagonal = node.real(1);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2 || node.rank(diagonal) + 1 != node.rank(x))
    node.invalid("a diagonal of rank " + std::to_string(node.rank(diagonal)) + " for " + to_string(shape));
  if (!ir::demand_equal({shape[shape.size() - 2]}, {shape.back()}))
    node.unsupported("operand 0", "a matrix that is no square is not implemented");
  node.set_real(0, c.where(on_diagonal(node, shape), c.unsqueeze(diagonal, node.rank(diagonal)), x));
}

void convert_broadcast_args(NodeContext& node) {
  const ir::SymShape shape = ir::broadcast_shapes(node.known_ints(0, "shape"), node.known_ints(1, "shape"));
  node.set_stored(0, Compose(node).cast(node.extents(shape), node.output_dtype(0)));
}

// How many of the boundaries a number is not below.
void convert_bucketize(NodeContext& node) {
  Compose c(node);
  const Floats boundaries = node.options<BucketizeOptions>().boundaries;
  const V x = c.cast(node.real(0), DType::kFloat64);
  const std::vector<double> bounds(boundaries.begin(), boundaries.end());
  const V row = c.doubles(DType::kFloat64, bounds, {static_cast<int64_t>(bounds.size())});
  const V reached = c.binary("greater_equal", c.unsqueeze(x, node.rank(x)), row);
  node.set_stored(0, c.reduce("reduce_sum", c.cast(reached, DType::kInt32), {node.rank(x)}, false));
}

// The range is moved so that 0 is one of its numbers.
void convert_fake_quant(NodeContext& node) {
  const auto options = node.options<FakeQuantOptions>();
  if (options.num_bits < 2 || options.num_bits > 16)
    node.invalid("num_bits is " + std::to_string(options.num_bits));
  const float low = options.narrow_range ? 1 : 0;
  const auto high = static_cast<float>((1 << options.num_bits) - 1);
  const float scale = (options.max - options.min) / (high - low);
  if (!(scale > 0) || !std::isfinite(scale)) node.invalid("a range without extent");
  const float zero = std::clamp(std::round(low - options.min / scale), low, high);
  const auto least = static_cast<double>((low - zero) * scale),
             most = static_cast<double>((high - zero) * scale);
  const V x = node.real(0);
  const auto number = [&](double value) { return node.scalar_like(x, value); };
  const V inside = node.elementwise("clip", {x, number(least), number(most)});
  const V step = number(static_cast<double>(scale));
  const V steps = node.elementwise("div", {node.elementwise("sub", {inside, number(least)}), step});
  const V rounded = node.elementwise("mul", {node.elementwise("round", {steps}), step});
  node.set_real(0, node.elementwise("add", {rounded, number(least)}));
}

void convert_bitwise_xor(NodeContext& node) {
  node.set_stored(0, node.elementwise("xor", {node.stored(0), node.stored(1)}));
}

}  // namespace tensormill::frontend::tflite
