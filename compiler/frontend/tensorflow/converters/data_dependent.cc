// Operators whose results have data-dependent extents.
#include "compiler/build/extents/data_dependent.h"

#include <limits>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/text/text.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

void convert_where(NodeContext& node) { node.set_output(0, build::places_of_nonzero(node, node.input(0))); }

// The distinct elements of a row, or of V2 the distinct slices along an axis; which of them each one is, and
// how often each is there.
void convert_unique(NodeContext& node) {
  const V x = node.input(0);
  const auto rank = static_cast<int64_t>(build::model_shape(node, x).size());
  const bool has_axis = node.op() == "UniqueV2" || node.op() == "UniqueWithCountsV2";
  int64_t axis = 0;
  if (has_axis) {
    const ir::SymShape given = node.known_ints(1, "axis");
    if (given.size() > 1) node.invalid("axis has " + std::to_string(given.size()) + " elements");
    if (!given.empty()) {
      if (!given[0].is_constant()) node.unsupported("axis", "it is a free dim");
      axis = node.normalize_axis(given[0].hint(), rank);
    } else if (rank != 1) {
      node.invalid("no axis for an operand of shape " + to_string(node.shape(x)));
    }
  }
  if (!has_axis && rank != 1)
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

// Rows of data, by the number of the part that each belongs to. Operands: data, which part.
void convert_dynamic_partition(NodeContext& node) {
  Compose c(node);
  const V data = node.input(0), parts = node.input(1);
  const int64_t count = node.integer("num_partitions");
  const ir::SymShape shape = node.shape(data), own = node.shape(parts);
  if (own.size() > shape.size() || count < 1 || count > (1 << 16))
    node.invalid("parts of shape " + to_string(own) + " for " + to_string(shape) + ", " +
                 std::to_string(count) + " of them");
  ir::SymShape rows(shape.begin() + static_cast<std::ptrdiff_t>(own.size()), shape.end());
  const ir::SymInt total = num_elements(own);
  rows.insert(rows.begin(), total);
  const V flat = c.reshape(data, rows), which = c.reshape(parts, {total});
  for (int64_t i = 0; i < count; ++i) {
    const V is_in = c.binary("equal", which, c.number(which, static_cast<double>(i)));
    const V places = c.squeeze(build::places_of_nonzero(node, is_in), 1);
    node.set_output(static_cast<size_t>(i), c.gather(flat, places, 0));
  }
}

// Rows of several operands, put at places; of one place the last. Operands: as many places as data.
void convert_dynamic_stitch(NodeContext& node) {
  Compose c(node);
  const size_t count = node.num_inputs() / 2;
  if (count == 0 || node.num_inputs() % 2 != 0) node.invalid("it has no operands, or an odd number");
  std::vector<V> places, parts;
  ir::SymShape table;
  for (size_t i = 0; i < count; ++i) {
    const V at = node.input(i), data = node.input(count + i);
    const ir::SymShape own = node.shape(at), shape = node.shape(data);
    if (own.size() > shape.size())
      node.invalid("places of shape " + to_string(own) + " for " + to_string(shape));
    table.assign(shape.begin() + static_cast<std::ptrdiff_t>(own.size()), shape.end());
    table.insert(table.begin(), num_elements(own));
    places.push_back(c.reshape(c.cast(at, DType::kInt64), {num_elements(own)}));
    parts.push_back(c.reshape(data, table));
  }
  const V at = c.concat(places, 0), rows = c.concat(parts, 0);
  const V last = c.reduce("reduce_max", c.concat({c.plus(at, 1), c.ints({0}, {1})}, 0), {0}, true);
  table[0] = build::bind_run_numbers(node, last, 0, std::nullopt)[0];
  node.set_output(0, build::scattered(node, c.filled(node.dtype(rows), table, 0), at, rows, "none"));
}

// Elements of a row that another row does not have, and their places.
void convert_list_diff(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), y = node.input(1);
  const DType to = node.dtype_attr("out_idx", DataType::kInt32);
  if (node.rank(x) != 1 || node.rank(y) != 1) node.invalid("an operand is no row");
  const V equal = c.binary("equal", c.unsqueeze(x, 1), c.unsqueeze(y, 0));
  const V found = c.reduce("reduce_sum", c.cast(equal, DType::kInt32), {1}, false);
  const V places = c.squeeze(build::places_of_nonzero(node, c.binary("equal", found, c.number(found, 0))), 1);
  node.set_output(0, c.gather(x, places, 0));
  node.set_output(1, c.cast(places, to));
}

// Of each time [time,batch,classes] the best class, without blanks, and without those that repeat the one
// before. Operands: scores, how many times of each of the batch count. Results: a sparse tensor, and the sums
// of the best scores, less than 0.
void convert_ctc_greedy_decoder(NodeContext& node) {
  Compose c(node);
  const V scores = node.input(0);
  const bool merges = node.flag("merge_repeated", false);
  const int64_t blank = node.integer("blank_index", -1);
  const ir::SymShape shape = node.shape(scores);
  if (shape.size() != 3) node.invalid("scores of shape " + to_string(shape));
  const ir::SymInt &times = shape[0], &batch = shape[1];
  const V best = c.transpose(c.cast(c.arg_max(scores, 2, false), DType::kInt64), {1, 0});
  const V lengths = c.reshape(c.cast(node.input(1), DType::kInt64), {batch, 1});
  const V is_there = c.binary("less", c.iota(times, {1, times}), lengths);
  const V none = c.dims({blank < 0 ? shape[2] + blank : ir::SymInt(blank)}, {});
  V kept = c.binary("and", is_there, c.unary("not", c.binary("equal", best, none)));
  if (merges) {
    const V before = c.concat({c.filled(DType::kInt64, {batch, 1}, -1), c.slice(best, 1, 0, times - 1)}, 1);
    kept = c.binary("and", kept, c.unary("not", c.binary("equal", best, before)));
  }
  const V numbers = c.cast(kept, DType::kInt64);
  const V order = node.add("cumsum", {numbers},
                           {{"axis", int64_t{1}}, {"exclusive", int64_t{1}}, {"reverse", int64_t{0}}});
  const V places = build::places_of_nonzero(node, kept);
  const V which = c.unsqueeze(build::gather_nd(node, order, places), 1);
  const V counts = c.reduce("reduce_sum", numbers, {1}, false);
  const V longest = c.reduce("reduce_max", c.concat({counts, c.ints({0}, {1})}, 0), {0}, true);
  const V highest = c.transpose(c.reduce("reduce_max", scores, {2}, false), {1, 0});
  const V counted = c.where(is_there, highest, c.number(highest, 0));
  node.set_output(0, c.concat({c.slice(places, 1, 0, 1), which}, 1));
  node.set_output(1, build::gather_nd(node, best, places));
  node.set_output(2, c.concat({c.dims({batch}, {1}), longest}, 0));
  node.set_output(3, c.unary("neg", c.reduce("reduce_sum", counted, {1}, true)));
}

// The same scores: the most likely sequences of labels that a search finds, each a sparse tensor, and the
// logarithms of their likelihoods.
void convert_ctc_beam_search_decoder(NodeContext& node) {
  Compose c(node);
  constexpr int64_t kMostWidth = 1 << 14;
  const V scores = node.input(0);
  const int64_t paths = node.integer("top_paths"), width = node.integer("beam_width");
  if (paths < 1 || width < paths)
    node.invalid("top_paths is " + std::to_string(paths) + ", beam_width " + std::to_string(width));
  if (width > kMostWidth) node.unsupported("beam_width", "it is above " + std::to_string(kMostWidth));
  const ir::SymShape shape = node.shape(scores);
  if (shape.size() != 3 || same(num_elements(shape), 0)) node.invalid("scores of shape " + to_string(shape));
  const ir::SymInt &times = shape[0], &batch = shape[1];
  const std::vector<V> made = node.add_many(
      "likely_labels", {scores, c.cast(node.input(1), DType::kInt64)},
      {{"paths", paths}, {"width", width}, {"merges", int64_t{node.flag("merge_repeated", true)}}});
  const auto count = static_cast<size_t>(paths);
  for (size_t path = 0; path < count; ++path) {
    const auto row = static_cast<int64_t>(path);
    const V labels = c.squeeze(c.slice(made[0], 0, row, 1), 0), counts = c.slice(made[1], 0, row, 1);
    const V is_there = c.binary("less", c.iota(times, {1, times}), c.reshape(counts, {batch, 1}));
    const V places = build::places_of_nonzero(node, is_there);
    node.set_output(path, places);
    node.set_output(count + path, build::gather_nd(node, labels, places));
    const V longest = c.reduce("reduce_max", c.squeeze(counts, 0), {0}, true);
    node.set_output(2 * count + path, c.concat({c.dims({batch}, {1}), longest}, 0));
  }
  node.set_output(3 * count, made[2]);
}

}  // namespace tensormill::frontend::tensorflow
