// Sparse tensors, as operators have them: places [n,rank], values [n], a shape.
#include <limits>
#include <tuple>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/moves.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/text/crossing.h"
#include "compiler/build/text/text.h"
#include "compiler/frontend/tensorflow/converters/ragged_rows.h"

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
  const int64_t from = is_turned ? 0 : 1;
  const ir::SymInt inner = node.shape(dense)[0];
  const V rows = c.gather(dense, build::flat_places(node, places, {inner, inner}, {from}), 0);
  const V products = c.mul(rows, c.unsqueeze(values, 1));
  const V zeros = c.filled(node.dtype(products), {shape[is_turned ? 1 : 0], node.shape(dense)[1]}, 0);
  node.set_output(
      0, build::scattered(node, zeros, build::flat_places(node, places, shape, {1 - from}), products, "add"));
}

// Operands: places, shape, the shape wanted, of which one extent may be -1.
void convert_sparse_reshape(NodeContext& node) {
  Compose c(node);
  const V places = node.input(0);
  const ir::SymShape from = node.extents_at(1, "input_shape");
  const ir::SymShape to = node.is_known(2) ? build::settled_shape(node, from, node.known_ints(2, "new_shape"))
                                           : node.extents_at(2, "new_shape");
  if (node.rank(places) != 2 || from.empty() || to.empty() ||
      !ir::demand(ir::Relation::kEqual, node.shape(places)[1], from.size()))
    node.invalid("places of shape " + to_string(node.shape(places)));
  V flat = build::flat_places(node, places, from, c.count_to(static_cast<int64_t>(from.size())));
  std::vector<V> columns(to.size());
  for (size_t d = to.size(); d-- > 0;) {
    const V extent = c.dims({to[d]}, {});
    columns[d] = c.unsqueeze(d == 0 ? flat : c.binary("mod", flat, extent), 1);
    flat = c.binary("div", flat, extent);
  }
  node.set_output(0, c.concat(columns, 1));
  const V fits = c.binary("equal", c.dims({num_elements(from)}, {1}), c.dims({num_elements(to)}, {1}));
  const V shape = c.dims(to, {static_cast<int64_t>(to.size())});
  node.set_output(1, node.is_known(2)
                         ? shape
                         : build::required(node, shape, fits, "a shape of another number of elements"));
}

// Rows of a sparse matrix in which nothing stands get one element, `otherwise`, at their first place.
// Operands: places in any order, values, shape, otherwise. Results: row after row places and values, which
// rows were empty, where each of the elements is now.
void convert_sparse_fill_rows(NodeContext& node) {
  Compose c(node);
  const V places = c.cast(node.input(0), DType::kInt64), values = node.input(1);
  const ir::SymShape own = node.shape(places), shape = node.extents_at(2, "dense_shape");
  if (own.size() != 2 || shape.empty() || !ir::demand(ir::Relation::kEqual, own[1], shape.size()))
    node.invalid("places of shape " + to_string(own));
  const ir::SymInt &rows = shape[0], &count = own[0];
  const V row = build::flat_places(node, places, shape, {0});
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
  V rank = c.iota(count);
  if (!same(count, 0))
    rank = build::scattered(node, rank, build::ordered_places(node, row, 0, count, true), rank, "none");
  const V moved = c.add(rank, c.gather(empty_before, row, 0));
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

namespace {

/// A sparse tensor by three operands from `first` on, `apart` of each other.
struct SparseTensor {
  V places = ir::kAbsent, values = ir::kAbsent;  ///< i64 [n,rank], [n]
  ir::SymShape shape;
};

SparseTensor sparse_operand(NodeContext& node, size_t first, size_t apart = 1) {
  SparseTensor x{Compose(node).cast(node.input(first), DType::kInt64), node.input(first + apart),
                 node.extents_at(first + 2 * apart, "the shape of a sparse tensor")};
  const ir::SymShape own = node.shape(x.places);
  if (own.size() != 2 || x.shape.empty() || !ir::demand(ir::Relation::kEqual, own[1], x.shape.size()) ||
      !ir::demand_equal(node.shape(x.values), {own[0]}))
    node.invalid("places of shape " + to_string(own) + " and values of " + to_string(node.shape(x.values)) +
                 " in a shape of " + std::to_string(x.shape.size()) + " dims");
  return x;
}

/// Where each place is in the row-major order of the first axes.
V flat_places(NodeContext& node, const SparseTensor& x, size_t axes) {
  return build::flat_places(node, x.places, x.shape, Compose(node).count_to(static_cast<int64_t>(axes)));
}

void set_sparse(NodeContext& node, const SparseTensor& x) {
  node.set_output(0, x.places);
  node.set_output(1, x.values);
  node.set_output(2, Compose(node).dims(x.shape, {static_cast<int64_t>(x.shape.size())}));
}

/// The elements at these of their numbers, i64.
SparseTensor taken(NodeContext& node, const SparseTensor& x, V which) {
  Compose c(node);
  return {c.gather(x.places, which, 0), c.gather(x.values, which, 0), x.shape};
}

/// In row-major order; equal places stay in order.
SparseTensor ordered(NodeContext& node, const SparseTensor& x) {
  const V flat = flat_places(node, x, x.shape.size());
  return taken(node, x, build::ordered_places(node, flat, 0, node.shape(flat)[0], true));
}

/// One behind the other, as they are.
SparseTensor joined(NodeContext& node, const std::vector<SparseTensor>& parts, const ir::SymShape& shape) {
  std::vector<V> places, values;
  for (const SparseTensor& part : parts) {
    places.push_back(part.places);
    values.push_back(part.values);
  }
  Compose c(node);
  return {c.concat(places, 0), c.concat(values, 0), shape};
}

}  // namespace

void convert_sparse_reorder(NodeContext& node) {
  const SparseTensor made = ordered(node, sparse_operand(node, 0));
  node.set_output(0, made.places);
  node.set_output(1, made.values);
}

// Operands: the places of all, then their values, then their shapes.
void convert_sparse_concat(NodeContext& node) {
  Compose c(node);
  const size_t count = node.num_inputs() / 3;
  if (count == 0 || node.num_inputs() % 3 != 0)
    node.invalid("it has " + std::to_string(node.num_inputs()) + " operands");
  std::vector<SparseTensor> parts;
  ir::SymShape shape = sparse_operand(node, 0, count).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto axis = static_cast<size_t>(node.normalize_axis(node.integer("concat_dim"), rank));
  ir::SymInt before = 0;
  for (size_t i = 0; i < count; ++i) {
    SparseTensor part = sparse_operand(node, i, count);
    ir::SymShape others = part.shape;
    if (others.size() == shape.size()) others[axis] = shape[axis];
    if (!ir::demand_equal(others, shape))
      node.invalid("sparse tensors of shapes " + to_string(shape) + " and " + to_string(part.shape));
    ir::SymShape moved(shape.size(), ir::SymInt(0));
    moved[axis] = before;
    part.places = c.add(part.places, c.dims(moved, {1, rank}));
    before += part.shape[axis];
    parts.push_back(part);
  }
  shape[axis] = before;
  const SparseTensor all = joined(node, parts, shape);
  set_sparse(node, axis == 0 ? all : ordered(node, all));
}

// Operands: two sparse tensors, and the size from which on a sum stays.
void convert_sparse_add(NodeContext& node) {
  Compose c(node);
  const SparseTensor a = sparse_operand(node, 0), b = sparse_operand(node, 3);
  if (!ir::demand_equal(a.shape, b.shape))
    node.invalid("shapes " + to_string(a.shape) + " and " + to_string(b.shape));
  const SparseTensor all = ordered(node, joined(node, {a, b}, a.shape));
  // An element of the same place as the one before it is added to that.
  const V flat = flat_places(node, all, all.shape.size());
  const ir::SymInt count = node.shape(flat)[0];
  const V before = c.slice(c.concat({c.ints({-1}, {1}), flat}, 0), 0, 0, count);
  const V is_first = c.unary("not", c.binary("equal", flat, before));
  const ir::Attrs along{{"axis", int64_t{0}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}};
  const V place = c.minus(node.add("cumsum", {c.cast(is_first, DType::kInt64)}, along), 1);
  const auto added = [&](V x) {
    return c.gather(build::scattered(node, c.filled(node.dtype(x), {count}, 0), place, x, "add"), place, 0);
  };
  const V own = added(all.values), many = added(c.filled(DType::kInt64, {count}, 1));
  // What only one of both has is no sum.
  const V is_large = c.binary("greater_equal", c.unary("abs", own), c.cast(node.input(6), node.dtype(own)));
  const V stays = c.binary("or", c.binary("equal", many, c.number(many, 1)), is_large);
  const V which = c.squeeze(build::places_of_nonzero(node, c.binary("and", is_first, stays)), 1);
  set_sparse(node, taken(node, {all.places, own, all.shape}, which));
}

// Operands: a sparse tensor, where a part of it begins, and its extents.
void convert_sparse_slice(NodeContext& node) {
  Compose c(node);
  const SparseTensor x = sparse_operand(node, 0);
  const ir::SymShape start = node.extents_at(3, "start"), size = node.extents_at(4, "size");
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (start.size() != x.shape.size() || size.size() != x.shape.size()) node.invalid("a part of another rank");
  ir::SymShape shape;
  for (size_t d = 0; d < x.shape.size(); ++d) shape.push_back(max(min(size[d], x.shape[d] - start[d]), 0));
  const V moved = c.sub(x.places, c.dims(start, {1, rank}));
  const V inside = c.binary("and", c.binary("greater_equal", moved, c.number(moved, 0)),
                            c.binary("less", moved, c.dims(shape, {1, rank})));
  const V all = c.reduce("reduce_min", c.cast(inside, DType::kInt32), {1}, false);
  set_sparse(node, taken(node, {moved, x.values, shape}, c.squeeze(build::places_of_nonzero(node, all), 1)));
}

// Operands: a sparse tensor, axes: a dense one.
void convert_sparse_reduce(NodeContext& node) {
  Compose c(node);
  const SparseTensor x = sparse_operand(node, 0);
  const auto rank = static_cast<int64_t>(x.shape.size());
  std::vector<bool> goes(x.shape.size(), false);
  for (const ir::SymInt& axis : node.known_ints(3, "reduction_axes"))
    goes[static_cast<size_t>(node.normalize_axis(axis, rank))] = true;
  const bool keeps = node.flag("keep_dims", false), is_max = node.op() == "SparseReduceMax";
  std::vector<int64_t> kept;
  ir::SymShape to;
  ir::SymInt rows = 1;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!goes[d] || keeps) to.push_back(goes[d] ? ir::SymInt(1) : x.shape[d]);
    if (goes[d]) continue;
    kept.push_back(static_cast<int64_t>(d));
    rows = rows * x.shape[d];
  }
  const V flat = build::flat_places(node, x.places, x.shape, kept);
  const DType dtype = node.dtype(x.values);
  V made = build::scattered(node, c.filled(dtype, {rows}, 0), flat, x.values, "add");
  if (is_max) {
    // Rows of nothing are 0, others do not know of it: each begins with one of its elements.
    const V first = build::scattered(node, c.filled(dtype, {rows}, 0), flat, x.values, "none");
    made = build::scattered(node, first, flat, x.values, "max");
  }
  node.set_output(0, c.reshape(made, to));
}

// Operands: a sparse tensor, a dense one that is broadcast to its shape: the values.
void convert_sparse_dense(NodeContext& node) {
  Compose c(node);
  const SparseTensor x = sparse_operand(node, 0);
  const V other = build::gather_nd(node, c.expand(node.input(3), x.shape), x.places);
  const char* op = node.op() == "SparseDenseCwiseAdd"   ? "add"
                   : node.op() == "SparseDenseCwiseMul" ? "mul"
                                                        : "div";
  node.set_output(0, c.binary(op, x.values, other));
}

void convert_sparse_dense_add(NodeContext& node) {
  const SparseTensor x = sparse_operand(node, 0);
  node.set_output(
      0, build::scatter_nd(node, Compose(node).expand(node.input(3), x.shape), x.places, x.values, "add"));
}

// Of the values in each row along the last axis.
void convert_sparse_softmax(NodeContext& node) {
  Compose c(node);
  const SparseTensor x = sparse_operand(node, 0);
  const V row = flat_places(node, x, x.shape.size() - 1);
  const ir::SymInt rows = num_elements(ir::SymShape(x.shape.begin(), x.shape.end() - 1));
  const V zeros = c.filled(node.dtype(x.values), {rows}, 0);
  const V first = build::scattered(node, zeros, row, x.values, "none");
  const V most = build::scattered(node, first, row, x.values, "max");
  const V powers = c.unary("exp", c.sub(x.values, c.gather(most, row, 0)));
  const V sums = build::scattered(node, zeros, row, powers, "add");
  node.set_output(0, c.div(powers, c.gather(sums, row, 0)));
}

// Operands: a sparse tensor of numbers, how many there are to count, weights: counts, of each row of it.
void convert_sparse_bincount(NodeContext& node) {
  const SparseTensor x = sparse_operand(node, 0);
  if (x.shape.size() > 2) node.invalid("a sparse tensor of shape " + to_string(x.shape));
  const bool has_rows = x.shape.size() == 2;
  const ir::SymInt rows = has_rows ? x.shape[0] : ir::SymInt(1),
                   size = build::only_integer(node, node.extents_at(3, "size"), "size");
  Compose c(node);
  const V given = flat_places(node, x, has_rows ? 1 : 0);
  const V row = build::required(node, given, c.binary("less", given, c.dims({rows}, {})),
                                "a place outside of the shape");
  const V counts = counts_in_rows(node, x.values, row, {rows, size}, node.input(4));
  node.set_output(0, has_rows ? counts : c.reshape(counts, {size}));
}

namespace {

/// Numbers i64 for the elements of two rows, the same for equal ones; no NaN equals another one.
std::pair<V, V> numbered(NodeContext& node, V a, V b) {
  Compose c(node);
  const ir::SymInt count = node.shape(a)[0], behind = node.shape(b)[0];
  const V all =
      c.concat(build::is_text(node, a) ? build::of_one_width(node, {a, b}) : std::vector<V>{a, b}, 0);
  const V which = build::distinct_slices(node, all, 0).which;
  return {c.slice(which, 0, 0, count), c.slice(which, 0, count, behind)};
}

/// How long the rows along the last axis are, of a sparse tensor whose places are in order, in a shape of
/// these dims.
V lengths_of_rows(NodeContext& node, const SparseTensor& x, const ir::SymShape& dims) {
  Compose c(node);
  const V row = build::flat_places(node, x.places, dims, c.count_to(static_cast<int64_t>(dims.size())));
  const ir::SymInt count = node.shape(row)[0];
  const V before = c.slice(c.concat({c.ints({0}, {1}), row}, 0), 0, 0, count);
  const V lengths = build::scattered(node, c.filled(DType::kInt64, {num_elements(dims)}, 0), row,
                                     c.filled(DType::kInt64, {count}, 1), "add");
  return build::required(node, lengths, c.binary("less_equal", before, row), "places that are not in order");
}

}  // namespace

// Operands: sparse tensors of labels, and of those that are right: of each row along the last axis how far it
// is from what it should be.
void convert_edit_distance(NodeContext& node) {
  std::vector<Item> items;
  for (size_t i = 0; i < 6; ++i) items.push_back(node.item(i));
  for (const size_t i : {1, 4})
    if (build::model_shape(node, node.input(i)).size() != 1) node.invalid("values of another rank than 1");
  std::tie(items[1].value, items[4].value) = numbered(node, node.input(1), node.input(4));
  NodeContext numbers(node, items);
  const SparseTensor given = sparse_operand(numbers, 0), right = sparse_operand(numbers, 3);
  if (right.shape.size() < 2 || given.shape.size() != right.shape.size())
    node.invalid("shapes " + to_string(given.shape) + " and " + to_string(right.shape));
  ir::SymShape dims;
  for (size_t d = 0; d + 1 < right.shape.size(); ++d) dims.push_back(max(given.shape[d], right.shape[d]));
  if (same(num_elements(dims), 0)) node.invalid("a result of shape " + to_string(dims));
  const V made = node.add(
      "edit_distances",
      {given.values, lengths_of_rows(node, given, dims), right.values, lengths_of_rows(node, right, dims)},
      {{"normalized", int64_t{node.flag("normalize", true)}}});
  node.set_output(0, Compose(node).reshape(made, dims));
}

// Of tables of strings or integers each combination of one column of each, by a hash. Results: a sparse
// tensor of them.
void convert_sparse_cross(NodeContext& node) {
  Compose c(node);
  int64_t buckets = node.integer("num_buckets", 0);
  if (!node.flag("hashed_output"))
    node.unsupported("hashed_output", "strings of combinations are not implemented");
  if (node.integer("N", 0) != 0)
    node.unsupported("operand 0", "combinations of sparse tensors are not implemented");
  if (buckets < 0) node.invalid("num_buckets is " + std::to_string(buckets));
  if (buckets == 0) buckets = std::numeric_limits<int64_t>::max();
  const V crossed =
      build::crossed_tables(node, node.inputs_from(0), static_cast<uint64_t>(node.integer("hash_key")),
                            static_cast<uint64_t>(buckets));
  const ir::SymShape table = c.shape(crossed);
  const ir::SymInt count = num_elements(table);
  const auto column = [&](size_t axis) {
    return c.reshape(c.expand(c.positions(table[axis], axis, 2), table), {count, 1});
  };
  node.set_output(0, c.concat({column(0), column(1)}, 1));
  node.set_output(1, c.reshape(crossed, {count}));
  node.set_output(2, c.dims(table, {2}));
}

}  // namespace tensormill::frontend::tensorflow
