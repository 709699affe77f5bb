// Operators that take or put elements at places which tensors name.
#include <algorithm>
#include <limits>

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
  const int64_t axis = node.axis("dim", node.rank(x));
  const ir::SymShape places = node.shape(index);
  // torch looks at the shape of an index only where it has elements.
  if (same(num_elements(places), 0)) return node.set_output(0, c.filled(node.dtype(x), places, 0));
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
  V is_outside = ir::kAbsent;
  for (const int64_t axis : indexed) {
    const auto at = static_cast<size_t>(axis);
    V own_index = c.cast(indices[at], DType::kInt64);
    if (indexed.size() > 1) {
      own_index = from_front(node, own_index, own[at]);
      const V is_behind = c.binary("greater_equal", own_index, c.dims({own[at]}, {}));
      const V is_out = node.add("or", {is_negative(node, own_index), is_behind});
      is_outside = is_outside == ir::kAbsent ? is_out : node.add("or", {is_outside, is_out});
    }
    places.index = places.index == ir::kAbsent ? own_index
                                               : c.add(c.mul(places.index, c.dims({own[at]}, {})), own_index);
    merged = node.product(merged, own[at]);
  }
  // What is outside of an axis is no place of another row: it is outside of all.
  if (is_outside != ir::kAbsent) places.index = c.where(is_outside, c.dims({merged}, {}), places.index);
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

// The places of what is not zero; of nonzero_numpy, and of where of a condition alone, a tensor an axis.
void convert_nonzero(NodeContext& node) {
  const V mask = to_bool(node, node.tensor(takes(node, "condition") ? "condition" : "self"));
  if (node.op() != "nonzero_numpy" && node.op() != "where")
    return node.set_output(0, build::places_of_nonzero(node, mask));
  // A scalar is looked at as a row of one.
  const V row = node.rank(mask) == 0 ? Compose(node).reshape(mask, {1}) : mask;
  const std::vector<V> columns = columns_of(node, build::places_of_nonzero(node, row));
  for (size_t i = 0; i < columns.size(); ++i) node.set_output(i, columns[i]);
}

// As many of these places as it says, "fill_value" behind those that there are.
void convert_nonzero_static(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const ir::SymShape shape = node.shape(x);
  if (shape.empty()) node.unsupported("self", "the places of one element are not implemented");
  const ir::SymInt size = node.sym("size"), count = num_elements(shape);
  if (!ir::demand(ir::Relation::kLessEqual, 0, size)) node.invalid("size is " + to_string(size));
  const V fill = c.ints({node.integer("fill_value")}, {});
  const V mask = c.reshape(to_bool(node, x), {count}), numbers = c.cast(mask, DType::kInt64);
  const V before = node.add("cumsum", {numbers}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}});
  // Others go behind those that are kept.
  const V behind = c.dims({size}, {}), kept = both(node, mask, c.binary("less", before, behind));
  const V empty = c.filled(DType::kInt64, {size + 1}, -1);
  const V found = scattered(node, empty, c.where(kept, before, behind), c.iota(count), 0, "none");
  V rest = c.slice(found, 0, 0, size);
  const V is_none = is_negative(node, rest);
  std::vector<V> columns;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const V extent = c.dims({max(shape[axis], 1)}, {}), next = c.div(rest, extent);
    const V place = c.where(is_none, fill, c.sub(rest, c.mul(next, extent)));
    columns.insert(columns.begin(), c.unsqueeze(place, 1));
    rest = next;
  }
  node.set_output(0, c.concat(columns, 1));
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

namespace {

V sum_of(NodeContext& node, V a, V b) {
  return node.add(node.dtype(a) == DType::kBool ? "or" : "add", {a, b});
}

/// x with rows of `values` [marked,...] at the places that the mask marks along the first axes, one after the
/// other.
V filled_by_mask(NodeContext& node, V x, V mask, V values, bool adds) {
  Compose c(node);
  const ir::SymShape own = node.shape(x), marked = node.shape(mask);
  const auto split = own.begin() + static_cast<std::ptrdiff_t>(marked.size());
  const ir::SymShape rest(split, own.end());
  const V flags = c.reshape(mask, {num_elements(marked)});
  V number = node.add("cumsum", {c.cast(flags, DType::kInt64)}, {{"axis", int64_t{0}}});
  // One row, where it turns out to be one, stands for all.
  const ir::SymInt there = node.shape(values)[0];
  const V one = c.ints({1}, {});
  if (!there.is_constant())
    number = c.where(c.binary("equal", c.dims({there}, {}), one), c.binary("min", number, one), number);
  ir::SymShape rows = rest, first = rest, along(rest.size() + 1, 1);
  rows.insert(rows.begin(), num_elements(marked));
  first.insert(first.begin(), 1);
  along[0] = rows[0];
  ir::SymShape given = rest;
  given.insert(given.begin(), node.shape(values)[0]);
  // What is not marked takes a row in front, which is there whatever number of rows there is.
  const V table = c.concat({c.filled(node.dtype(values), first, 0), c.expand(values, given)}, 0);
  const V taken = c.gather(table, c.where(flags, number, c.number(number, 0)), 0);
  const V flat = c.reshape(x, rows);
  return c.reshape(c.where(c.reshape(flags, along), adds ? sum_of(node, flat, taken) : taken, flat), own);
}

/// Where one mask alone says the places: x with values that broadcast to what it marks, of an extent that a
/// run may decide.
std::optional<V> put_by_mask(NodeContext& node, V x, V values, bool adds) {
  Compose c(node);
  const ir::CheckedList<V> given = node.optional_tensors("indices");
  const bool is_mask = given.size() == 1 && given[0] != ir::kAbsent && node.dtype(given[0]) == DType::kBool;
  if (!is_mask) return std::nullopt;
  const int64_t marked = node.rank(given[0]), rest = node.rank(x) - marked;
  if (rest < 0) node.invalid("a mask of rank " + std::to_string(marked));
  if (node.rank(values) > rest + 1) return std::nullopt;
  const bool has_rows = node.rank(values) == rest + 1 && !same(node.shape(values)[0], 1);
  if (has_rows) {
    if (node.graph().value(given[0]).tensor() != nullptr) return std::nullopt;
    return filled_by_mask(node, x, given[0], values, adds);
  }
  if (node.rank(values) == rest + 1) values = c.squeeze(values, 0);
  ir::SymShape along = node.shape(given[0]);
  along.resize(node.shape(x).size(), 1);
  return c.where(c.reshape(given[0], along), adds ? sum_of(node, x, values) : values, x);
}

}  // namespace

// A mask may be of any value of a run where it alone says the places.
void convert_index_put(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), values = c.cast(node.tensor("values"), node.dtype(x));
  const bool adds = node.flag("accumulate");
  if (const std::optional<V> made = put_by_mask(node, x, values, adds)) return node.set_output(0, *made);
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
  if (name == "sum" || name == "add" || name == "mean") return "add";
  if (name == "prod" || name == "multiply") return "mul";
  if (name == "amax") return "max";
  if (name == "amin") return "min";
  node.unsupported("reduce", "\"" + name + "\" is not implemented");
}

/// x with what changes nothing in place of what updates meet, where that does not count.
V without_met(NodeContext& node, V x, V counts, const std::string& reduction) {
  Compose c(node);
  const V is_met = c.binary("greater", counts, c.number(counts, 0));
  if (reduction == "mul") return c.where(is_met, c.number(x, 1), x);
  if (reduction == "add") return c.where(is_met, c.number(x, 0), x);
  const bool is_max = reduction == "max";
  const DTypeInfo& info = dtype_info(node.dtype(x));
  Tensor limit(node.dtype(x), {});
  if (info.is_float) {
    limit.set_element(0, (is_max ? -1 : 1) * std::numeric_limits<double>::infinity());
  } else {
    const int width = info.bits - (info.is_signed ? 1 : 0);
    const auto most = static_cast<int64_t>(width == 64 ? UINT64_MAX : (uint64_t{1} << width) - 1);
    limit.set_element_int(0, !is_max ? most : info.is_signed ? -most - 1 : 0);
  }
  return c.where(is_met, node.constant(std::move(limit)), x);
}

/// What of scatter_reduce is more than a scatter: means, and elements that do not count.
V reduced_at(NodeContext& node, V x, V index, V updates, int64_t axis, const std::string& reduction) {
  Compose c(node);
  const bool is_mean = node.text("reduce") == "mean", includes = node.flag("include_self");
  if (!is_mean && includes) return scattered(node, x, index, updates, axis, reduction);
  const V none = c.filled(DType::kInt64, node.shape(x), 0),
          one = c.filled(DType::kInt64, node.shape(updates), 1);
  const V met = scattered(node, none, index, one, axis, "add");
  const V base = includes ? x : without_met(node, x, met, reduction);
  const V y = scattered(node, base, index, updates, axis, reduction);
  if (!is_mean) return y;
  const V counts = c.binary("max", includes ? c.plus(met, 1) : met, c.number(met, 1));
  return is_float(node.dtype(y)) ? c.div(y, c.cast(counts, node.dtype(y)))
                                 : floor_divided(node, y, c.cast(counts, node.dtype(y)));
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
  const bool is_value = node.row().overload.starts_with("value");
  V updates = is_value ? c.expand(node.as(node.operand("value"), node.dtype(x)), places)
                       : c.cast(with_axis(node, node.tensor("src")), node.dtype(x));
  if (node.op() == "scatter_reduce") static_cast<void>(node.flag("include_self"));
  if (same(num_elements(places), 0)) return node.set_output(0, node.add("identity", {given}));
  if (!is_value)
    for (size_t i = 0; i < places.size(); ++i)
      updates = c.slice(updates, static_cast<int64_t>(i), 0, places[i]);
  const V y = node.op() == "scatter_reduce"
                  ? reduced_at(node, numeric(node, x), index, numeric(node, updates), axis,
                               reduction_for(node.dtype(x), reduction))
                  : scattered(node, x, index, updates, axis, reduction);
  node.set_output(0, c.reshape(node.as_output(y), node.shape(given)));
}

// The same of slices, whose places are those of a 1-D index.
void convert_index_reduce(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = with_axis(node, given);
  const int64_t axis = node.axis_or_first("dim", node.rank(given));
  const V index = c.cast(with_axis(node, node.tensor("index")), DType::kInt64);
  check_rank(node, index, 1);
  const V source = c.cast(with_axis(node, node.tensor("source")), node.dtype(x));
  ir::SymShape along(node.shape(x).size(), 1);
  along[static_cast<size_t>(axis)] = node.shape(index)[0];
  const V places = c.expand(c.reshape(index, along), node.shape(source));
  const std::string reduction = reduction_of(node, node.text("reduce"));
  const V y = reduced_at(node, x, places, source, axis, reduction);
  node.set_output(0, c.reshape(y, node.shape(given)));
}

// Elements by their places in all of x, row after row.
void convert_put(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), index = node.tensor("index"), source = node.tensor("source");
  const auto flat = [&](V value) { return c.reshape(value, {num_elements(node.shape(value))}); };
  const char* reduction = node.flag("accumulate") ? "add" : "none";
  const V y = scattered(node, flat(x), c.cast(flat(index), DType::kInt64),
                        c.cast(flat(source), node.dtype(x)), 0, reduction);
  node.set_output(0, c.reshape(y, node.shape(x)));
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
  const V y =
      scattered(node, with_axis(node, x), places, updates, axis, node.op() == "index_add" ? "add" : "none");
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

}  // namespace tensormill::frontend::pytorch
