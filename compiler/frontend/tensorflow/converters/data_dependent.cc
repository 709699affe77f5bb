// Operators whose results have data-dependent extents.
#include "compiler/build/data_dependent.h"

#include <limits>

#include "compiler/build/run_numbers.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

void convert_where(NodeContext& node) { node.set_output(0, build::places_of_nonzero(node, node.input(0))); }

// The distinct elements of a row, or of V2 the distinct slices along an axis; which of them each one is, and
// how often each is there.
void convert_unique(NodeContext& node) {
  const V x = node.input(0);
  const bool has_axis = node.op() == "UniqueV2" || node.op() == "UniqueWithCountsV2";
  int64_t axis = 0;
  if (has_axis) {
    const ir::SymShape given = node.known_ints(1, "axis");
    if (given.size() > 1) node.invalid("axis has " + std::to_string(given.size()) + " elements");
    if (!given.empty()) {
      if (!given[0].is_constant()) node.unsupported("axis", "it is a free dim");
      axis = node.normalize_axis(given[0].hint(), node.rank(x));
    } else if (node.rank(x) != 1) {
      node.invalid("no axis for an operand of shape " + to_string(node.shape(x)));
    }
  }
  if (!has_axis && node.rank(x) != 1)
    node.invalid("an operand of shape " + to_string(node.shape(x)) + ", expected a row");
  Compose c(node);
  const DType places = node.dtype_attr("out_idx", DataType::kInt32);
  const build::DistinctSlices made = build::distinct_slices(node, x, axis);
  node.set_output(0, made.values);
  node.set_output(1, c.cast(made.which, places));
  if (!node.op().starts_with("UniqueWithCounts")) return;
  node.set_output(2, c.cast(made.how_often, places));
}

// Operands: boxes [n,4], scores [n], how many at most, then, by version, overlap, score, sigma. V4 and V5 may
// ask for zeros behind those that are chosen, and say how many these are.
void convert_non_max_suppression(NodeContext& node) {
  Compose c(node);
  const std::string_view op = node.op();
  const bool has_sigma = op == "NonMaxSuppressionV5", has_count = op == "NonMaxSuppressionV4" || has_sigma;
  const bool is_first = op == "NonMaxSuppression", has_score = has_count || op == "NonMaxSuppressionV3";
  const bool is_padded = has_count && node.flag("pad_to_max_output_size", false);
  const V none = c.doubles(DType::kFloat32, {std::numeric_limits<float>::lowest()}, {1});
  V overlap = is_first ? c.doubles(DType::kFloat32, {node.real("iou_threshold", 0.5)}, {1}) : node.input(3);
  // TensorFlow's kernel leaves out none for its overlap where scores are lowered, TensorFlow Lite's does.
  if (has_sigma) {
    overlap = c.cast(c.reshape(overlap, {1}), DType::kFloat32);
    const V sigma = c.cast(c.reshape(node.input(5), {1}), DType::kFloat32);
    const V any = c.doubles(DType::kFloat32, {1}, {1}), zero = c.doubles(DType::kFloat32, {0}, {1});
    overlap = c.where(c.binary("greater", sigma, zero), any, overlap);
  }
  const build::KeptBoxes kept = build::suppressed_boxes(
      node, c.cast(node.input(0), DType::kFloat32), c.cast(node.input(1), DType::kFloat32),
      node.known_int(2, "max_output_size"), overlap, has_score ? node.input(4) : none,
      has_sigma ? node.input(5) : ir::kAbsent);
  V chosen = kept.places, scores = kept.scores;
  if (!is_padded) {
    chosen = build::bound_part(node, chosen, 0, c.reshape(c.cast(kept.count, DType::kInt64), {1}));
    scores = c.slice(scores, 0, 0, node.shape(chosen)[0]);
  }
  node.set_output(0, chosen);
  if (has_sigma) node.set_output(1, c.cast(scores, node.dtype(node.input(1))));
  if (has_count) node.set_output(has_sigma ? 2 : 1, kept.count);
}

}  // namespace tensormill::frontend::tensorflow
