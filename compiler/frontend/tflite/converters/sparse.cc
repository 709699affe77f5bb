// Operators that look up or sum rows of tables, and lists of elements with their places.
#include <algorithm>

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

V scattered_rows(NodeContext& node, V filled, V places, V rows, const char* reduction) {
  Compose c(node);
  ir::SymShape along(node.shape(rows).size(), 1);
  along[0] = node.shape(rows)[0];
  const V indices = c.expand(c.reshape(places, along), node.shape(rows));
  return node.add("scatter", {filled, indices, rows},
                  {{"axis", int64_t{0}}, {"reduction", std::string(reduction)}});
}

/// The places [n] in a tensor of `shape` that rows [n,rank of it] of i64 say.
V row_places(NodeContext& node, V indices, const ir::SymShape& shape) {
  Compose c(node);
  const ir::SymInt count = node.shape(indices)[0];
  V place = c.filled(DType::kInt64, {count, 1}, 0);
  for (size_t d = 0; d < shape.size(); ++d)
    place = c.add(c.mul(place, c.dims({shape[d]}, {1})), c.slice(indices, 1, static_cast<int64_t>(d), 1));
  return c.reshape(place, {count});
}

}  // namespace

// Operands: places (a number, a list, or rows of numbers), the shape, values, what stands elsewhere.
void convert_sparse_to_dense(NodeContext& node) {
  static_cast<void>(node.options<SparseToDenseOptions>());
  Compose c(node);
  V indices = c.cast(node.stored(0), DType::kInt64);
  const ir::SymShape shape = node.known_ints(1, "output_shape");
  const V values = node.stored(2), other = node.stored(3);
  const auto rank = static_cast<int64_t>(shape.size());
  if (node.rank(indices) > 2 || node.rank(values) > 1 || !same(num_elements(node.shape(other)), 1))
    node.invalid("indices of " + to_string(node.shape(indices)) + " with values of " +
                 to_string(node.shape(values)));
  if (node.rank(indices) < 2) {
    const ir::SymInt elements = num_elements(node.shape(indices));
    // A list of places in a tensor of one axis; of none, one place.
    indices = c.reshape(indices, node.rank(indices) == 1 && rank != 1 ? ir::SymShape{1, elements}
                                                                      : ir::SymShape{elements, 1});
  }
  if (rank < 1 || !same(node.shape(indices)[1], rank))
    node.invalid("indices of " + to_string(node.shape(indices)) + " for shape " + to_string(shape));
  const ir::SymInt count = node.shape(indices)[0], total = num_elements(shape);
  const V filled = c.expand(c.reshape(other, {1}), {total});
  const V each = c.expand(node.rank(values) == 0 ? c.reshape(values, {1}) : values, {count});
  node.set_stored(
      0, c.reshape(scattered_rows(node, filled, row_places(node, indices, shape), each, "none"), shape));
}

// Segments that rise; the last one says how many there are.
void convert_segment_sum(NodeContext& node) {
  Compose c(node);
  const V data = node.real(0);
  const ir::Ints ids = node.known_ints(1, "segment_ids");
  ir::SymShape shape = node.shape(data);
  if (shape.empty() || node.rank(node.stored(1)) != 1 || !same(shape[0], static_cast<int64_t>(ids.size())))
    node.invalid("segment ids of " + to_string(node.shape(node.stored(1))) + " for " + to_string(shape));
  if (!std::is_sorted(ids.begin(), ids.end()) || (!ids.empty() && ids.front() < 0))
    node.invalid("its segment ids do not rise from 0 on");
  shape[0] = ids.empty() ? 0 : ids.back() + 1;
  static_cast<void>(num_elements(shape));
  if (ids.empty()) return node.set_real(0, c.filled(c.dtype(data), shape, 0));
  const V places = c.ints(ids, {static_cast<int64_t>(ids.size())});
  node.set_real(0, scattered_rows(node, c.filled(c.dtype(data), shape, 0), places, data, "add"));
}

// Operands: what is looked for [n], keys [k] in rising order, values [k,...]. Zeros where no key is.
void convert_hashtable_lookup(NodeContext& node) {
  Compose c(node);
  const V wanted = node.stored(0), keys = node.stored(1), values = node.stored(2);
  if (node.rank(wanted) != 1 || node.rank(keys) != 1 || node.rank(values) < 1 ||
      !ir::demand_equal({node.shape(keys)[0]}, {node.shape(values)[0]}))
    node.invalid("keys of " + to_string(node.shape(keys)) + " for values of " +
                 to_string(node.shape(values)));
  const ir::SymInt count = node.shape(wanted)[0];
  ir::SymShape shape = node.shape(values);
  shape[0] = count;
  if (same(node.shape(keys)[0], 0)) {
    node.set_stored(0, c.filled(c.dtype(values), shape, 0));
    return node.set_stored(1, c.filled(DType::kUInt8, {count}, 0));
  }
  const V is_it = c.cast(c.binary("equal", c.unsqueeze(wanted, 1), c.unsqueeze(keys, 0)), DType::kUInt8);
  const V hit = c.reduce("reduce_max", is_it, {1}, false);
  const V rows = c.gather(values, c.arg_max(is_it, 1, false), 0);
  ir::SymShape along(shape.size(), 1);
  along[0] = count;
  const V is_there = c.binary("equal", c.reshape(hit, along), c.number(hit, 1));
  node.set_stored(0, c.where(is_there, rows, c.number(rows, 0)));
  node.set_stored(1, hit);
}

// Operands: ids [n], their places [n,rank], the shape of the places, weights [n], a table. Rows of one place
// but for its last axis are summed.
void convert_embedding_lookup_sparse(NodeContext& node) {
  const auto options = node.options<EmbeddingLookupSparseOptions>();
  Compose c(node);
  const V ids = node.stored(0), weights = node.real(3), table = node.real(4);
  const V indices = c.cast(node.stored(1), DType::kInt64);
  ir::SymShape places = node.known_ints(2, "dense_shape");
  const ir::SymShape own = node.shape(table), at = node.shape(indices);
  if (node.rank(ids) != 1 || node.rank(weights) != 1 || at.size() != 2 || own.empty() || places.empty() ||
      !ir::demand_equal({at[0], at[1], node.shape(weights)[0]},
                        {node.shape(ids)[0], static_cast<int64_t>(places.size()), node.shape(ids)[0]}))
    node.invalid("ids of " + to_string(node.shape(ids)) + " at " + to_string(at) + " with weights of " +
                 to_string(node.shape(weights)));
  places.pop_back();
  const ir::SymInt groups = num_elements(places), count = node.shape(ids)[0];
  ir::SymShape column(own.size(), 1), sums = own, shape = places;
  column[0] = count;
  sums[0] = groups;
  shape.insert(shape.end(), own.begin() + 1, own.end());
  const V group = row_places(node, indices, places);
  const V rows = c.mul(c.gather(table, ids, 0), c.reshape(weights, column));
  V y = scattered_rows(node, c.filled(DType::kFloat32, sums, 0), group, rows, "add");
  if (options.combiner != Combiner::kSum) {
    const bool is_mean = options.combiner == Combiner::kMean;
    const V each = is_mean ? weights : c.mul(weights, weights);
    const V total = scattered_rows(node, c.filled(DType::kFloat32, {groups}, 0), group, each, "add");
    const V used = scattered_rows(node, c.filled(DType::kFloat32, {groups}, 0), group,
                                  c.filled(DType::kFloat32, {count}, 1), "max");
    const V by = is_mean ? total : c.unary("sqrt", total);
    column[0] = groups;
    // Of a group without rows nothing is divided.
    const V is_used = c.binary("greater", used, c.number(used, 0));
    y = c.div(y, c.reshape(c.where(is_used, by, c.number(by, 1)), column));
  }
  node.set_real(0, c.reshape(y, shape));
}

}  // namespace tensormill::frontend::tflite
