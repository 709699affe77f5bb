// Operators that take or put elements at places which tensors name.
#include <algorithm>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/moves/slices.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

void convert_embedding(NodeContext& node) {
  node.set_output(0, gathered(node, node.tensor("weight"), node.tensor("indices"), 0));
}

// The index has one axis, or none.
void convert_index_select(NodeContext& node) {
  const V given = node.tensor("self"), index = with_axis(node, node.tensor("index"));
  const V y = gathered(node, with_axis(node, given), index, node.axis_or_first("dim", node.rank(given)));
  node.set_output(0, node.rank(given) == 0 ? Compose(node).reshape(y, {}) : y);
}

// Along other axes than the gathered one there may be fewer indices than elements.
void convert_gather(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  V x = with_axis(node, given);
  const V index = with_axis(node, node.tensor("index"));
  static_cast<void>(node.row().overload);
  const int64_t axis = node.axis("dim", node.rank(x));
  const ir::SymShape places = node.shape(index);
  if (node.rank(x) != node.rank(index)) node.invalid("the index has another rank");
  for (size_t i = 0; i < places.size(); ++i)
    if (static_cast<int64_t>(i) != axis) x = c.slice(x, static_cast<int64_t>(i), 0, places[i]);
  const V y = c.gather_elements(x, c.cast(index, DType::kInt64), axis);
  node.set_output(0, node.rank(node.tensor("index")) == 0 ? c.reshape(y, {}) : y);
}

void convert_take_along_dim(NodeContext& node) {
  Compose c(node);
  V x = node.tensor("self"), index = c.cast(node.tensor("indices"), DType::kInt64);
  if (!node.has("dim")) {
    x = c.reshape(x, {num_elements(node.shape(x))});
    index = c.reshape(index, {num_elements(node.shape(index))});
    return node.set_output(0, c.gather_elements(x, index, 0));
  }
  const int64_t axis = node.axis("dim", node.rank(x));
  ir::SymShape own = node.shape(x), places = node.shape(index);
  for (size_t i = 0; i < own.size() && i < places.size(); ++i) {
    if (static_cast<int64_t>(i) == axis) continue;
    own[i] = places[i] = broadcast_shapes({own[i]}, {places[i]})[0];
  }
  node.set_output(0, c.gather_elements(c.expand(x, own), c.expand(index, places), axis));
}

void convert_take(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  node.set_output(0, gathered(node, c.reshape(x, {num_elements(node.shape(x))}), node.tensor("index"), 0));
}

namespace {

/// Tensors of indices among the axes of x: as one index over those axes, brought next to each other.
struct IndexedPlaces {
  V x = ir::kAbsent;          ///< with the indexed axes first, as one
  V index = ir::kAbsent;      ///< over that one
  ir::SymShape rest;          ///< the axes that are not indexed
  std::vector<int64_t> perm;  ///< of x, indexed axes first
  int64_t at = 0;             ///< where the index' axes stand in the result
};

/// A mask that is known while the graph is built, as places along each of its axes.
std::vector<V> places_of_mask(NodeContext& node, V mask) {
  Compose c(node);
  const Tensor* known = node.graph().value(mask).tensor();
  if (known == nullptr) node.unsupported("indices", "a mask that a run works out is not implemented");
  std::vector<std::vector<int64_t>> places(known->shape().size());
  const Shape shape = known->shape();
  for (int64_t i = 0; i < known->num_elements(); ++i) {
    if (known->element_as_int(i) == 0) continue;
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      places[d].push_back(rest % shape[d]);
      rest /= shape[d];
    }
  }
  std::vector<V> values;
  for (const std::vector<int64_t>& each : places)
    values.push_back(c.ints(each, {static_cast<int64_t>(each.size())}));
  return values;
}

/// Columns of the places, one an axis.
std::vector<V> columns_of(NodeContext& node, V places) {
  Compose c(node);
  std::vector<V> columns;
  const int64_t count = node.shape(places)[1];
  for (int64_t i = 0; i < count; ++i) columns.push_back(c.squeeze(c.slice(places, 1, i, 1), 1));
  return columns;
}

/// `takes_any`: of masks that a run works out, too, whose places are as many as it decides.
std::vector<V> index_tensors(NodeContext& node, const char* name, bool takes_any) {
  std::vector<V> all;
  for (const V each : node.optional_tensors(name)) {
    const bool is_mask =
        each != ir::kAbsent && (node.dtype(each) == DType::kBool || node.dtype(each) == DType::kUInt8);
    if (!is_mask) {
      all.push_back(each);
      continue;
    }
    const bool is_known = node.graph().value(each).tensor() != nullptr;
    const std::vector<V> places = is_known || !takes_any
                                      ? places_of_mask(node, each)
                                      : columns_of(node, build::places_of_nonzero(node, to_bool(node, each)));
    all.insert(all.end(), places.begin(), places.end());
  }
  return all;
}

IndexedPlaces places_among(NodeContext& node, V x, const std::vector<V>& indices) {
  Compose c(node);
  const ir::SymShape own = node.shape(x);
  if (indices.size() > own.size()) node.invalid("more indices than axes");
  IndexedPlaces places;
  std::vector<int64_t> indexed, rest;
  for (size_t axis = 0; axis < own.size(); ++axis) {
    const bool is_indexed = axis < indices.size() && indices[axis] != ir::kAbsent;
    (is_indexed ? indexed : rest).push_back(static_cast<int64_t>(axis));
  }
  if (indexed.empty()) node.invalid("it has no indices");
  // Indices with an axis between them move to the front.
  const bool is_dense = indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
  places.at = is_dense ? indexed.front() : 0;
  ir::SymInt merged = 1;
  ir::SymShape common;
  for (const int64_t axis : indexed)
    common = broadcast_shapes(common, node.shape(indices[static_cast<size_t>(axis)]));
  for (const int64_t axis : indexed) {
    const auto at = static_cast<size_t>(axis);
    const V own_index = wrapped(node, indices[at], own[at]);
    places.index = places.index == ir::kAbsent ? own_index
                                               : c.add(c.mul(places.index, c.dims({own[at]}, {})), own_index);
    merged = node.product(merged, own[at]);
  }
  places.index = c.expand(places.index, common);
  for (const int64_t axis : rest) places.rest.push_back(own[static_cast<size_t>(axis)]);
  places.perm = indexed;
  places.perm.insert(places.perm.end(), rest.begin(), rest.end());
  ir::SymShape shape{merged};
  shape.insert(shape.end(), places.rest.begin(), places.rest.end());
  places.x = c.reshape(c.transpose(x, places.perm), shape);
  return places;
}

/// The permutation that brings the index' axes, which stand first, to where they belong.
std::vector<int64_t> placed_axes(const IndexedPlaces& places, int64_t index_rank) {
  std::vector<int64_t> perm;
  const auto rest = static_cast<int64_t>(places.rest.size());
  for (int64_t i = 0; i < places.at; ++i) perm.push_back(index_rank + i);
  for (int64_t i = 0; i < index_rank; ++i) perm.push_back(i);
  for (int64_t i = places.at; i < rest; ++i) perm.push_back(index_rank + i);
  return perm;
}

}  // namespace

void convert_index(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const std::vector<V> indices = index_tensors(node, "indices", true);
  const auto given =
      std::count_if(indices.begin(), indices.end(), [](V each) { return each != ir::kAbsent; });
  if (given == 1) {
    const auto at = std::find_if(indices.begin(), indices.end(), [](V each) { return each != ir::kAbsent; });
    return node.set_output(0, gathered(node, x, *at, at - indices.begin()));
  }
  const IndexedPlaces places = places_among(node, x, indices);
  const V rows = c.gather(places.x, places.index, 0);
  node.set_output(0, c.transpose(rows, placed_axes(places, node.rank(places.index))));
}

// The places of what is not zero; of nonzero_numpy a tensor an axis.
void convert_nonzero(NodeContext& node) {
  const V mask = to_bool(node, node.tensor("self"));
  if (node.op() == "nonzero") return node.set_output(0, build::places_of_nonzero(node, mask));
  // A scalar is looked at as a row of one.
  const V row = node.rank(mask) == 0 ? Compose(node).reshape(mask, {1}) : mask;
  const std::vector<V> columns = columns_of(node, build::places_of_nonzero(node, row));
  for (size_t i = 0; i < columns.size(); ++i) node.set_output(i, columns[i]);
}

// Elements where the mask is set, both as large as they are together, in a row.
void convert_masked_select(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), mask = to_bool(node, node.tensor("mask"));
  const ir::SymShape whole = broadcast_shapes(node.shape(x), node.shape(mask));
  const ir::SymShape row{num_elements(whole)};
  const V places = build::places_of_nonzero(node, c.reshape(c.expand(mask, whole), row));
  node.set_output(0, c.gather(c.reshape(c.expand(x, whole), row), c.squeeze(places, 1), 0));
}

// The places that the mask marks take the source's elements, one after the other.
void convert_masked_scatter(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), mask = to_bool(node, node.tensor("mask")), source = node.tensor("source");
  const ir::SymShape whole = broadcast_shapes(node.shape(x), node.shape(mask));
  const ir::SymShape row{num_elements(whole)};
  const V marked = c.reshape(c.expand(mask, whole), row);
  const V numbers = c.cast(marked, DType::kInt64);
  const V before = node.add("cumsum", {numbers}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}});
  const V places = c.where(marked, before, c.number(before, 0));
  const V taken = c.gather(c.reshape(source, {num_elements(node.shape(source))}), places, 0);
  node.set_output(0, c.reshape(c.where(marked, taken, c.reshape(c.expand(x, whole), row)), whole));
}

// A mask may be of any value of a run where one value takes the place of all that it marks.
void convert_index_put(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), values = c.cast(node.tensor("values"), node.dtype(x));
  const bool adds = node.flag("accumulate");
  const std::vector<V> given = node.optional_tensors("indices");
  const bool is_mask = given.size() == 1 && given[0] != ir::kAbsent && node.dtype(given[0]) == DType::kBool;
  const ir::SymInt count = num_elements(node.shape(values));
  if (is_mask && count.is_constant() && count.hint() == 1) {
    ir::SymShape along = node.shape(given[0]);
    along.resize(node.shape(x).size(), 1);
    const V one = c.reshape(values, {});
    return node.set_output(0, c.where(c.reshape(given[0], along), adds ? c.add(x, one) : one, x));
  }
  const IndexedPlaces places = places_among(node, x, index_tensors(node, "indices", false));
  const int64_t index_rank = node.rank(places.index);
  const std::vector<int64_t> perm = placed_axes(places, index_rank);
  ir::SymShape whole = node.shape(places.index);
  whole.insert(whole.end(), places.rest.begin(), places.rest.end());
  ir::SymShape placed;
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    placed.push_back(whole[static_cast<size_t>(perm[i])]);
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  const V updates = c.transpose(c.expand(values, placed), inverse);
  const ir::SymInt elements = num_elements(node.shape(places.index)), row = num_elements(places.rest);
  const V flat = c.reshape(places.x, {node.shape(places.x)[0], row});
  const V index = c.expand(c.reshape(places.index, {elements, 1}), {elements, row});
  const V y = scattered(node, flat, index, c.reshape(updates, {elements, row}), 0, adds ? "add" : "none");
  std::vector<int64_t> back(places.perm.size());
  ir::SymShape moved;
  for (size_t i = 0; i < places.perm.size(); ++i) {
    back[static_cast<size_t>(places.perm[i])] = static_cast<int64_t>(i);
    moved.push_back(node.shape(x)[static_cast<size_t>(places.perm[i])]);
  }
  node.set_output(0, c.transpose(c.reshape(y, moved), back));
}

namespace {

std::string reduction_of(NodeContext& node, const std::string& name) {
  if (name == "sum" || name == "add") return "add";
  if (name == "prod" || name == "multiply") return "mul";
  if (name == "amax") return "max";
  if (name == "amin") return "min";
  node.unsupported("reduce", "\"" + name + "\" is not implemented");
}

}  // namespace

// What is scattered stands at as many places as the index has, from the first on.
void convert_scatter(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  const V x = with_axis(node, given), index = c.cast(with_axis(node, node.tensor("index")), DType::kInt64);
  const int64_t axis = node.axis("dim", node.rank(x));
  const ir::SymShape places = node.shape(index);
  std::string reduction = "none";
  if (node.op() == "scatter_add") reduction = "add";
  const bool is_reduce =
      node.op() == "scatter_reduce" || node.row().overload.find("reduce") != std::string::npos;
  if (is_reduce) reduction = reduction_of(node, node.text("reduce"));
  if (node.op() == "scatter_reduce" && !node.flag("include_self"))
    node.unsupported("include_self", "to leave out what stands there is not implemented");
  const bool is_value = node.row().overload.starts_with("value");
  V updates = is_value ? c.expand(node.as(node.operand("value"), node.dtype(x)), places)
                       : c.cast(with_axis(node, node.tensor("src")), node.dtype(x));
  if (same(num_elements(places), 0)) return node.set_output(0, node.add("identity", {given}));
  if (!is_value)
    for (size_t i = 0; i < places.size(); ++i)
      updates = c.slice(updates, static_cast<int64_t>(i), 0, places[i]);
  const V y = scattered(node, numeric(node, x), index, numeric(node, updates), axis, reduction);
  node.set_output(0, c.reshape(node.as_output(y), node.shape(given)));
}

// Slices of x along an axis, at the places of a 1-D index.
void convert_index_rows(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), index = c.cast(with_axis(node, node.tensor("index")), DType::kInt64);
  const int64_t axis = node.axis_or_first("dim", node.rank(x));
  ir::SymShape rows = node.shape(with_axis(node, x));
  rows[static_cast<size_t>(axis)] = node.shape(index)[0];
  V updates;
  if (node.op() == "index_fill") {
    updates = c.expand(node.as(node.operand("value"), node.dtype(x)), rows);
  } else {
    updates = c.expand(c.cast(node.tensor("source"), node.dtype(x)), rows);
  }
  if (node.op() == "index_add" && node.real("alpha") != 1)
    updates = c.mul(updates, node.as(node.operand("alpha"), node.dtype(x)));
  ir::SymShape along(rows.size(), 1);
  along[static_cast<size_t>(axis)] = node.shape(index)[0];
  const V places = c.expand(c.reshape(index, along), rows);
  const V y = scattered(node, numeric(node, with_axis(node, x)), places, numeric(node, updates), axis,
                        node.op() == "index_add" ? "add" : "none");
  node.set_output(0, c.reshape(c.cast(y, node.dtype(x)), node.shape(x)));
}

namespace {

/// x with what `step` shows of it replaced.
V replaced(NodeContext& node, const std::shared_ptr<const ViewStep>& step) {
  Compose c(node);
  const V x = node.tensor("self");
  const ir::SymShape part = node.shape(step->read(node, x));
  return step->write(node, x, c.expand(c.cast(node.tensor("src"), node.dtype(x)), part));
}

}  // namespace

void convert_select_scatter(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  ir::SymInt at = node.sym("index");
  if (at.is_constant() && at.hint() < 0) at = at + own[static_cast<size_t>(axis)];
  node.set_output(0, replaced(node, select_step(axis, at)));
}

void convert_slice_scatter(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  const ir::SymShape source = node.shape(node.tensor("src"));
  if (own.empty() || source.size() != own.size())
    node.invalid("shape " + to_string(source) + " in place of a part of " + to_string(own));
  const build::AxisSlice part =
      slice_of(node, own[static_cast<size_t>(axis)], source[static_cast<size_t>(axis)]);
  node.set_output(0, replaced(node, slice_step(axis, part.start, part.extent, part.step)));
}

// Bags of indices, each the mean, the sum or the largest of its rows. Known offsets alone.
void convert_embedding_bag(NodeContext& node) {
  Compose c(node);
  const V weight = node.tensor("weight"), indices = node.tensor("indices");
  if (node.rank(weight) != 2) node.invalid("weights of shape " + to_string(node.shape(weight)));
  const Tensor* offsets = node.graph().value(node.tensor("offsets")).tensor();
  if (offsets == nullptr) node.unsupported("offsets", "offsets that a run works out are not implemented");
  if (node.op() == "_embedding_bag" && node.integer("padding_idx") >= 0)
    node.unsupported("padding_idx", "rows that do not count are not implemented");
  if (node.has("per_sample_weights")) node.unsupported("per_sample_weights", "they are not implemented");
  const int64_t mode = node.integer("mode");
  const ir::SymInt count = num_elements(node.shape(indices));
  int64_t bags = offsets->num_elements();
  if (node.flag("include_last_offset")) --bags;
  const V rows = gathered(node, weight, indices, 0);
  const char* op = mode == 0 ? "reduce_sum" : mode == 1 ? "reduce_mean" : "reduce_max";
  std::vector<V> parts;
  for (int64_t i = 0; i < bags; ++i) {
    const ir::SymInt start = offsets->element_as_int(i);
    const ir::SymInt end =
        i + 1 < offsets->num_elements() ? ir::SymInt(offsets->element_as_int(i + 1)) : count;
    if (same(start, end)) {
      parts.push_back(c.filled(node.dtype(weight), {1, node.shape(weight)[1]}, 0));
    } else {
      parts.push_back(c.reduce(op, c.slice(rows, 0, start, end - start), {0}, true));
    }
  }
  for (size_t i = 1; i < node.num_outputs(); ++i)
    if (node.is_used(i)) node.unsupported("output " + std::to_string(i), "it is not implemented");
  if (parts.empty()) node.invalid("it has no bags");
  node.set_output(0, c.concat(parts, 0));
}

}  // namespace tensormill::frontend::pytorch
