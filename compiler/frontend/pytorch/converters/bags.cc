// Bags of rows of a table: their means, sums or largest elements.
#include <limits>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// The row that counts for nothing, if there is one: -1 is none, but where the argument may be None it counts
/// from the end.
std::optional<V> padding_row(NodeContext& node) {
  if (!takes(node, "padding_idx") || !node.has("padding_idx")) return std::nullopt;
  const int64_t row = node.integer("padding_idx");
  if (row >= 0) return Compose(node).ints({row}, {});
  if (node.row().overload != "padding_idx") return std::nullopt;
  const ir::SymInt rows = node.shape(node.tensor("weight"))[0];
  if (!ir::demand(ir::Relation::kLessEqual, -row, rows))
    node.invalid("row " + std::to_string(row) + " of " + to_string(rows));
  return Compose(node).dims({rows + row}, {});
}

/// Which indices count as members of each bag: bools [bags, indices].
V members_of(NodeContext& node, V offsets, V indices) {
  Compose c(node);
  const ir::SymInt count = num_elements(node.shape(indices));
  V starts = c.cast(offsets, DType::kInt64), ends = ir::kAbsent;
  const ir::SymInt given = node.shape(offsets)[0];
  if (node.flag("include_last_offset")) {
    ends = c.slice(starts, 0, 1, given - 1);
    starts = c.slice(starts, 0, 0, given - 1);
  } else {
    ends = c.concat({c.slice(starts, 0, 1, given - 1), c.dims({count}, {1})}, 0);
  }
  const V places = c.iota(count, {1, count});
  V is_in = both(node, c.binary("less_equal", c.unsqueeze(starts, 1), places),
                 c.binary("less", places, c.unsqueeze(ends, 1)));
  if (const std::optional<V> padding = padding_row(node)) {
    const V wide = c.reshape(c.cast(indices, DType::kInt64), {1, count});
    const V is_none = c.binary("equal", wide, *padding);
    is_in = both(node, is_in, negated(node, is_none));
  }
  return is_in;
}

/// The largest of each bag's rows [indices, width], 0 where it has none.
V largest_of(NodeContext& node, V rows, V is_in) {
  Compose c(node);
  const V none = c.number(rows, -std::numeric_limits<double>::infinity());
  const V own = c.where(c.unsqueeze(is_in, 2), c.unsqueeze(rows, 0), none);
  const V most = c.reduce("reduce_max", own, {1}, false);
  const V is_any = c.reduce("reduce_max", c.cast(is_in, DType::kUInt8), {1}, true);
  return c.where(to_bool(node, is_any), most, c.number(most, 0));
}

}  // namespace

// Bags of indices, each the mean, the sum or the largest of its rows: a product with a matrix of who is in
// which bag.
void convert_embedding_bag(NodeContext& node) {
  Compose c(node);
  const V weight = node.tensor("weight"), indices = node.tensor("indices"), offsets = node.tensor("offsets");
  if (node.rank(weight) != 2) node.invalid("weights of shape " + to_string(node.shape(weight)));
  if (node.rank(offsets) != 1) node.invalid("offsets of shape " + to_string(node.shape(offsets)));
  const int64_t mode = node.integer("mode");
  if (mode < 0 || mode > 2) node.invalid("mode is " + std::to_string(mode));
  for (const char* name : {"include_last_offset", "padding_idx"})
    if (takes(node, name)) static_cast<void>(node.has(name));
  for (size_t i = 1; i < node.num_outputs(); ++i)
    if (node.is_used(i)) node.unsupported("output " + std::to_string(i), "it is not implemented");
  const V factors = node.optional_tensor("per_sample_weights");
  if (same(node.shape(offsets)[0], 0))
    return node.set_output(0, c.filled(node.dtype(weight), {0, node.shape(weight)[1]}, 0));
  const V is_in = members_of(node, offsets, indices), rows = gathered(node, weight, indices, 0);
  if (mode == 2) return node.set_output(0, largest_of(node, rows, is_in));
  V matrix = c.cast(is_in, node.dtype(weight));
  if (factors != ir::kAbsent) matrix = c.mul(matrix, c.unsqueeze(factors, 0));
  const V sums = c.matmul(matrix, rows);
  if (mode == 0) return node.set_output(0, sums);
  const V counts = c.reduce("reduce_sum", matrix, {1}, true);
  node.set_output(0, c.div(sums, c.binary("max", counts, c.number(counts, 1))));
}

}  // namespace tensormill::frontend::pytorch
