// Operators that put elements at places, and those that compare with places or bounds.
#include <algorithm>
#include <limits>

#include "compiler/build/moves/places.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

// Operands: indices, updates, shape. Updates of one place are added.
void convert_scatter_nd(NodeContext& node) {
  const ir::SymShape shape = node.known_ints(2, "shape");
  set_moved(node, 1, [&](V updates) {
    const V zeros = Compose(node).filled(node.type(updates).dtype, shape, 0);
    return build::scatter_nd(node, zeros, node.stored(0), updates, "add");
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
      0, build::scattered(node, c.filled(dtype, table, neutral),
                          c.reshape(c.cast(ids, DType::kInt64), {total}), c.reshape(data, rows), reduction));
}

void convert_matrix_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.real(0);
  ir::SymShape shape = node.shape(x);
  if (shape.empty()) node.invalid("the input has no axis");
  shape.push_back(shape.back());
  const V row = c.unsqueeze(x, node.rank(x) - 1);
  node.set_real(0, c.where(build::on_diagonal(node, shape), row, c.number(x, 0)));
}

void convert_matrix_set_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.real(0), diagonal = node.real(1);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2 || node.rank(diagonal) + 1 != node.rank(x))
    node.invalid("a diagonal of rank " + std::to_string(node.rank(diagonal)) + " for " + to_string(shape));
  if (!ir::demand_equal({shape[shape.size() - 2]}, {shape.back()}))
    node.unsupported("operand 0", "a matrix that is no square is not implemented");
  node.set_real(0, c.where(build::on_diagonal(node, shape), c.unsqueeze(diagonal, node.rank(diagonal)), x));
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

void convert_fake_quant(NodeContext& node) {
  const auto options = node.options<FakeQuantOptions>();
  const build::FakeQuantSpec spec{options.min, options.max, options.num_bits, options.narrow_range};
  node.set_real(0, build::fake_quant(node, node.maps(), node.real(0), spec));
}

void convert_bitwise_xor(NodeContext& node) {
  node.set_stored(0, node.elementwise("xor", {node.stored(0), node.stored(1)}));
}

}  // namespace tensormill::frontend::tflite
