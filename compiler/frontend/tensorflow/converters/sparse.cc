// Sparse tensors, as operators have them: places [n,rank], values [n], a shape.
#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/moves/moves.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

// Operands: places, of one axis as a row or as one number; shape, values, what stands elsewhere.
void convert_sparse_to_dense(NodeContext& node) {
  Compose c(node);
  V places = node.input(0);
  const ir::SymShape shape = node.extents_at(1, "output_shape");
  if (node.rank(places) < 2) places = c.reshape(places, {num_elements(node.shape(places)), 1});
  const ir::SymInt count = node.shape(places)[0];
  if (node.rank(node.input(2)) > 1 || node.rank(node.input(3)) > 0)
    node.invalid("values of shape " + to_string(node.shape(node.input(2))));
  const V values = c.expand(node.input(2), {count}), filled = c.expand(node.input(3), shape);
  node.set_output(0, build::scatter_nd(node, filled, places, values, "none"));
}

namespace {

/// A column of a table of numbers [n,columns], i64 [n].
V column_of(NodeContext& node, V table, int64_t column) {
  Compose c(node);
  return c.cast(c.squeeze(c.slice(table, 1, column, 1), 1), DType::kInt64);
}

V matrix_turned(NodeContext& node, V x) {
  if (node.rank(x) != 2) node.invalid("a matrix of shape " + to_string(node.shape(x)));
  return Compose(node).transpose(x, {1, 0});
}

}  // namespace

// Operands: places [n,2], values, shape of the sparse matrix; a dense one.
void convert_sparse_matmul(NodeContext& node) {
  Compose c(node);
  const bool is_turned = node.flag("adjoint_a", false);
  const V dense = node.flag("adjoint_b", false) ? matrix_turned(node, node.input(3)) : node.input(3);
  const V places = node.input(0), values = node.input(1);
  const ir::SymShape shape = node.extents_at(2, "a_shape");
  if (node.rank(places) != 2 || node.rank(values) != 1 || shape.size() != 2 || node.rank(dense) != 2)
    node.invalid("places of shape " + to_string(node.shape(places)) + ", a matrix of " +
                 to_string(node.shape(dense)));
  const V rows = c.gather(dense, column_of(node, places, is_turned ? 0 : 1), 0);
  const V products = c.mul(rows, c.unsqueeze(values, 1));
  const V zeros = c.filled(node.dtype(products), {shape[is_turned ? 1 : 0], node.shape(dense)[1]}, 0);
  node.set_output(0,
                  build::scattered(node, zeros, column_of(node, places, is_turned ? 1 : 0), products, "add"));
}

// Operands: places, shape, the shape wanted, of which one extent may be -1.
void convert_sparse_reshape(NodeContext& node) {
  Compose c(node);
  const V places = node.input(0);
  const ir::SymShape from = node.extents_at(1, "input_shape");
  const ir::SymShape to = build::settled_shape(node, from, node.known_ints(2, "new_shape"));
  if (node.rank(places) != 2 || from.empty() || to.empty())
    node.invalid("places of shape " + to_string(node.shape(places)));
  V flat = column_of(node, places, 0);
  for (size_t d = 1; d < from.size(); ++d)
    flat = c.add(c.mul(flat, c.dims({from[d]}, {})), column_of(node, places, static_cast<int64_t>(d)));
  std::vector<V> columns(to.size());
  for (size_t d = to.size(); d-- > 0;) {
    const V extent = c.dims({to[d]}, {});
    columns[d] = c.unsqueeze(d == 0 ? flat : c.binary("mod", flat, extent), 1);
    flat = c.binary("div", flat, extent);
  }
  node.set_output(0, c.concat(columns, 1));
  node.set_output(1, c.dims(to, {static_cast<int64_t>(to.size())}));
}

// Rows of a sparse matrix in which nothing stands get one element, `otherwise`, at their first place.
// Operands: places, row after row, values, shape, otherwise. Results: places, values, which rows were empty,
// where each of the elements is now.
void convert_sparse_fill_rows(NodeContext& node) {
  Compose c(node);
  const V places = c.cast(node.input(0), DType::kInt64), values = node.input(1);
  const ir::SymShape own = node.shape(places), shape = node.extents_at(2, "dense_shape");
  if (own.size() != 2 || shape.empty() || !ir::demand(ir::Relation::kEqual, own[1], shape.size()))
    node.invalid("places of shape " + to_string(own));
  const ir::SymInt rows = shape[0], count = own[0];
  const V row = column_of(node, places, 0);
  const auto ones = [&](const ir::SymInt& extent) { return c.filled(DType::kInt64, {extent}, 1); };
  const V counts = build::scattered(node, c.filled(DType::kInt64, {rows}, 0), row, ones(count), "add");
  const V is_empty = c.binary("equal", counts, c.number(counts, 0));
  const auto before = [&](V numbers) {
    return node.add("cumsum", {numbers},
                    {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}, {"reverse", int64_t{0}}});
  };
  const V empty_before = before(c.cast(is_empty, DType::kInt64));
  const V empty = c.squeeze(build::places_of_nonzero(node, is_empty), 1);
  const ir::SymInt added = node.shape(empty)[0];
  const V moved = c.add(c.iota(count), c.gather(empty_before, row, 0));
  const V at = c.concat({moved, c.gather(c.add(before(counts), empty_before), empty, 0)}, 0);
  const V first = c.filled(DType::kInt64, {added, own[1] - 1}, 0);
  const V all_places = c.concat({places, c.concat({c.unsqueeze(empty, 1), first}, 1)}, 0);
  const V otherwise = c.expand(c.reshape(node.input(3), {1}), {added});
  const V all_values = c.concat({values, otherwise}, 0);
  const auto arranged = [&](V x) {
    return build::scattered(node, c.filled(node.dtype(x), node.shape(x), 0), at, x, "none");
  };
  node.set_output(0, arranged(all_places));
  node.set_output(1, arranged(all_values));
  node.set_output(2, is_empty);
  node.set_output(3, moved);
}

}  // namespace tensormill::frontend::tensorflow
