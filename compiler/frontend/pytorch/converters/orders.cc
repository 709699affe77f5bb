// What follows from the order of elements along an axis: running extrema, quantiles, medians, the most
// frequent ones, distinct ones, and places among sorted ones.
#include <algorithm>
#include <functional>
#include <limits>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Each element of an axis beside all of the axis: two axes, i and behind it j, in place of one.
struct Prefixes {
  V own, other;   ///< element i, element j
  V place;        ///< j
  V is_before;    ///< j <= i
  int64_t along;  ///< axis j
};

Prefixes prefixes_of(NodeContext& node, V x, int64_t axis) {
  Compose c(node);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const auto rank = static_cast<size_t>(node.rank(x)) + 1;
  const V i = c.positions(extent, static_cast<size_t>(axis), rank);
  const V j = c.positions(extent, static_cast<size_t>(axis) + 1, rank);
  return {c.unsqueeze(x, axis + 1), c.unsqueeze(x, axis), j, c.binary("less_equal", j, i), axis + 1};
}

/// Whether both are equal, or none is a number.
V are_same(NodeContext& node, V a, V b) {
  const V are_equal = Compose(node).binary("equal", a, b);
  if (!is_float(node.dtype(a))) return are_equal;
  return node.add("or", {are_equal, both(node, node.add("is_nan", {a}), node.add("is_nan", {b}))});
}

}  // namespace

namespace {

/// Whether a row is so long that all its prefixes together are too many: their extrema and sums follow from
/// those of halves as long, in steps that double.
bool is_long(const ir::SymInt& extent) {
  constexpr int64_t kMostPrefixes = 256;
  return extent.is_constant() && extent.hint() > kMostPrefixes;
}

/// The element `by` places before each one, in front that of `first`.
V before_by(NodeContext& node, V x, V first, int64_t axis, int64_t by) {
  Compose c(node);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  return c.concat({c.slice(first, axis, 0, by), c.slice(x, axis, 0, extent - by)}, axis);
}

struct Running {
  V value, place;
};
Running running_extremum(NodeContext& node, V x, int64_t axis, bool is_max) {
  Compose c(node);
  const ir::SymShape shape = node.shape(x);
  const int64_t extent = node.shape(x)[static_cast<size_t>(axis)];
  Running made{x, c.expand(c.positions(extent, static_cast<size_t>(axis), shape.size()), shape)};
  for (int64_t by = 1; by < extent; by *= 2) {
    const V before = before_by(node, made.value, made.value, axis, by);
    V is_better = c.binary(is_max ? "greater" : "less", before, made.value);
    if (is_float(node.dtype(x)))
      is_better = both(node, negated(node, node.add("is_nan", {made.value})),
                       node.add("or", {is_better, node.add("is_nan", {before})}));
    made.place = c.where(is_better, before_by(node, made.place, made.place, axis, by), made.place);
    made.value = c.where(is_better, before, made.value);
  }
  return made;
}

}  // namespace

// The extremum of an element and those before it, and the last place where it stands; what is no number is
// all of them.
void convert_running_extremum(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = numeric(node, with_axis(node, given));
  const int64_t axis = node.axis_or_first("dim", node.rank(given));
  if (is_long(node.shape(x)[static_cast<size_t>(axis)])) {
    const Running made = running_extremum(node, x, axis, node.op() == "cummax");
    node.set_output(0, node.as_output(made.value));
    return node.set_output(1, made.place);
  }
  const Prefixes pairs = prefixes_of(node, x, axis);
  const V seen = c.where(pairs.is_before, pairs.other, pairs.own);
  const char* reduction = node.op() == "cummax" ? "reduce_max" : "reduce_min";
  const V best = c.reduce(reduction, seen, {pairs.along}, true);
  const V is_it = both(node, pairs.is_before, are_same(node, pairs.other, best));
  const V place =
      c.reduce("reduce_max", c.where(is_it, pairs.place, c.number(pairs.place, 0)), {pairs.along}, false);
  node.set_output(0, node.as_output(c.reshape(best, node.shape(given))));
  node.set_output(1, c.reshape(place, node.shape(given)));
}

void convert_logcumsumexp(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = with_axis(node, widened(node, floated(node, given)));
  const int64_t axis = node.axis_or_first("dim", node.rank(given));
  const V none = c.number(x, -std::numeric_limits<double>::infinity());
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (is_long(extent)) {
    V sum = x;
    const V nothing = c.expand(none, node.shape(x));
    for (int64_t by = 1; by < extent.hint(); by *= 2)
      sum = log_of_sum(node, before_by(node, sum, nothing, axis, by), sum);
    return node.set_output(0, node.as_output(sum));
  }
  const Prefixes pairs = prefixes_of(node, x, axis);
  const V y =
      c.reduce("reduce_log_sum_exp", c.where(pairs.is_before, pairs.other, none), {pairs.along}, false);
  node.set_output(0, node.as_output(c.reshape(y, node.shape(given))));
}

namespace {

/// Sets a result that has one element along the axis: without the axis, unless "keepdim" is set. `own`: of
/// self.
void set_along(NodeContext& node, size_t index, V y, int64_t axis, const ir::SymShape& own) {
  const bool keepdim = takes(node, "keepdim") && node.flag("keepdim");
  node.set_output(index, own.empty() ? Compose(node).reshape(y, {})
                         : keepdim   ? y
                                     : Compose(node).squeeze(y, axis));
}

/// Which of the sorted elements stands in the middle, the lower one of two; of nanmedian among numbers alone.
V middle_of(NodeContext& node, V x, V order, int64_t axis) {
  Compose c(node);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const ir::SymInt at = floordiv(extent - 1, 2);
  if (!ir::demand(ir::Relation::kLessEqual, 0, at)) node.invalid("the middle of nothing");
  const V middle = c.slice(order, axis, at, 1);
  if (!is_float(node.dtype(x))) return middle;
  const V is_none = c.cast(node.add("is_nan", {x}), DType::kInt64);
  if (node.op() == "nanmedian") {
    const V nones = c.reduce("reduce_sum", is_none, {axis}, true);
    const V numbers = c.sub(c.extent(nones, extent), nones);
    const V last = c.binary("max", c.minus(numbers, 1), c.number(numbers, 0));
    return c.gather_elements(order, c.div(last, c.number(last, 2)), axis);
  }
  const V is_any = c.cast(c.reduce("reduce_max", is_none, {axis}, true), DType::kBool);
  return c.where(is_any, c.arg_max(is_none, axis, true), middle);
}

}  // namespace

// The lower of both in the middle, or the one of place k, counted from 1, where what is no number comes last.
// A median of what is not all numbers is none.
void convert_median(NodeContext& node) {
  Compose c(node);
  V x = node.tensor("self");
  const bool is_place = node.op() == "kthvalue", is_all = !is_place && node.row().overload == "default";
  const ir::SymShape own = node.shape(x);
  int64_t axis = 0;
  if (is_all) {
    const ir::SymInt count = num_elements(own);
    if (count.is_constant() && count.hint() == 0) {
      if (!is_float(node.dtype(x))) node.unsupported("self", "whole numbers of which there are none");
      return node.set_output(0, c.number(x, std::numeric_limits<double>::quiet_NaN()));
    }
    x = c.reshape(x, {count});
  } else {
    axis = node.axis_or_first("dim", node.rank(x));
    x = with_axis(node, x);
  }
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const V order = sorted_positions(node, x, axis, extent, false);
  V place = ir::kAbsent;
  if (is_place) {
    const ir::SymInt at = node.integer("k") - 1;
    if (!ir::demand(ir::Relation::kLessEqual, 0, at) || !ir::demand(ir::Relation::kLess, at, extent))
      node.invalid("place " + to_string(at) + " of " + to_string(extent));
    place = c.slice(order, axis, at, 1);
  } else {
    place = middle_of(node, x, order, axis);
  }
  set_along(node, 0, c.gather_elements(x, place, axis), axis, own);
  if (!is_all) set_along(node, 1, place, axis, own);
}

// The one of which there are most, of several the least, and where it stands last.
void convert_mode(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = numeric(node, with_axis(node, given));
  const int64_t axis = node.axis_or_first("dim", node.rank(given));
  const Prefixes pairs = prefixes_of(node, x, axis);
  const V equals = c.cast(are_same(node, pairs.own, pairs.other), DType::kInt64);
  const V counts = c.reduce("reduce_sum", equals, {pairs.along}, false);
  const V is_frequent = c.binary("equal", counts, c.reduce("reduce_max", counts, {axis}, true));
  const V most = c.reduce("reduce_max", x, {axis}, true);
  const V value = c.reduce("reduce_min", c.where(is_frequent, x, most), {axis}, true);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const V places = c.positions(extent, static_cast<size_t>(axis), node.shape(x).size());
  const V here = c.where(are_same(node, x, value), places, c.number(places, 0));
  set_along(node, 0, node.as_output(value), axis, node.shape(given));
  set_along(node, 1, c.reduce("reduce_max", here, {axis}, true), axis, node.shape(given));
}

namespace {

/// Sorted rows along the last axis, and which elements of them are asked for: real numbers [..., quantiles].
struct Ranks {
  V sorted, ranks;
};

Ranks ranks_of(NodeContext& node, V rows, V q) {
  Compose c(node);
  const int64_t last = node.rank(rows) - 1;
  const ir::SymInt extent = node.shape(rows).back();
  if (!ir::demand(ir::Relation::kLessEqual, 1, extent)) node.invalid("quantiles of nothing");
  const V order = sorted_positions(node, rows, last, extent, false);
  const V is_none = c.cast(node.add("is_nan", {rows}), node.dtype(rows));
  // torch's ranks are products of float64, of q in the elements' own type.
  const V nones = c.cast(c.reduce("reduce_sum", is_none, {last}, true), DType::kFloat64);
  q = c.cast(q, DType::kFloat64);
  const V all = c.minus(c.extent(q, extent), 1);
  V ranks = ir::kAbsent;
  if (node.op() == "nanquantile") {
    ranks = c.mul(q, c.binary("max", c.sub(all, nones), c.number(q, 0)));
  } else {
    // Of a row with what is no number this, which stands last.
    ranks = c.where(is_zero(node, nones), c.mul(q, all), all);
  }
  return {c.gather_elements(rows, order, last), ranks};
}

/// The argument "q" in the type, of a number from 0 to 1 or of several, which a run checks where they are its
/// own.
V shares_of(NodeContext& node, DType dtype) {
  Compose c(node);
  const Operand given = node.operand("q");
  const char* what = "q is not between 0 and 1";
  if (given.value == ir::kAbsent && !(node.real("q") >= 0 && node.real("q") <= 1)) node.invalid(what);
  const V q = node.as(given, dtype);
  if (given.value == ir::kAbsent || same(num_elements(node.shape(q)), 0)) return q;
  const V is_inside =
      both(node, c.binary("greater_equal", q, c.number(q, 0)), c.binary("less_equal", q, c.number(q, 1)));
  return build::required(node, q, is_inside, what);
}

V interpolated(NodeContext& node, const Ranks& of, const std::string& how) {
  Compose c(node);
  const int64_t last = node.rank(of.sorted) - 1;
  const auto at = [&](V rank) { return c.gather_elements(of.sorted, c.cast(rank, DType::kInt64), last); };
  if (how == "nearest") return at(c.unary("round", of.ranks));
  const V below = c.unary("floor", of.ranks), above = c.unary("ceil", of.ranks);
  if (how == "lower") return at(below);
  if (how == "higher") return at(above);
  if (how != "linear" && how != "midpoint") node.invalid("interpolation is \"" + how + "\"");
  const V low = at(below), high = at(above);
  const V weight = how == "linear" ? c.cast(c.sub(of.ranks, below), node.dtype(low)) : c.number(low, 0.5);
  // From the nearer of both, so that it is one of them where it stands there.
  const V apart = c.sub(high, low), is_near = c.binary("less", weight, c.number(weight, 0.5));
  return c.where(is_near, c.add(low, c.mul(weight, apart)),
                 c.sub(high, c.mul(apart, c.sub(c.number(weight, 1), weight))));
}

}  // namespace

// Of all elements or of rows, for one q or for several, which come first in the result's shape.
void convert_quantile(NodeContext& node) {
  Compose c(node);
  V x = node.tensor("self");
  const ir::SymShape own = node.shape(x);
  const bool keepdim = node.flag("keepdim"), has_dim = node.has("dim");
  const int64_t axis = has_dim ? node.axis_or_first("dim", node.rank(x)) : 0;
  x = has_dim ? with_axis(node, x) : c.reshape(x, {num_elements(own)});
  ir::Ints perm = c.count_to(node.rank(x));
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  const V rows = c.transpose(x, perm);
  V q = shares_of(node, node.dtype(x));
  const bool is_one = node.rank(q) == 0;
  q = with_axis(node, q);
  check_rank(node, q, 1);
  ir::SymShape rest = node.shape(rows), wanted = rest;
  rest.pop_back();
  wanted.back() = node.shape(q)[0];
  Ranks ranks = ranks_of(node, rows, q);
  ranks.ranks = c.expand(ranks.ranks, wanted);
  const V y = interpolated(node, ranks, node.text("interpolation"));
  ir::Ints front = c.count_to(node.rank(y));
  std::rotate(front.begin(), front.end() - 1, front.end());
  ir::SymShape shape = has_dim ? rest : ir::SymShape();
  if (keepdim) shape = has_dim ? own : ir::SymShape(own.size(), 1);
  if (keepdim && has_dim && !own.empty()) shape[static_cast<size_t>(axis)] = 1;
  if (!is_one) shape.insert(shape.begin(), node.shape(q)[0]);
  node.set_output(0, c.reshape(c.transpose(y, front), shape));
}

namespace {

/// A row of borders, or one for each row of x.
void check_borders(const NodeContext& node, V borders, V x) {
  const ir::SymShape own = node.shape(borders), of = node.shape(x);
  bool fits = own.size() == 1 || (!own.empty() && own.size() == of.size());
  for (size_t i = 0; fits && own.size() > 1 && i + 1 < own.size(); ++i)
    fits = ir::demand(ir::Relation::kEqual, own[i], of[i]);
  if (!fits) node.invalid("borders of shape " + to_string(own) + " for values of " + to_string(of));
}

}  // namespace

// How many of the sorted places are below each value, or not above it; of what is no number all.
void convert_bucketize(NodeContext& node) {
  Compose c(node);
  const bool is_search = node.op() == "searchsorted";
  const Operand borders = node.operand(is_search ? "sorted_sequence" : "boundaries"),
                given = node.operand("self");
  bool is_right = node.flag("right");
  if (is_search && node.has("side")) {
    const std::string side = node.text("side");
    if (side != "right" && (side != "left" || is_right))
      node.invalid("side is \"" + side + "\"" + (is_right ? ", beside right" : ""));
    is_right = side == "right";
  }
  static_cast<void>(node.flag("out_int32"));
  const DType common = node.common_type({borders, given});
  const DType dtype = common == DType::kBool ? DType::kUInt8 : common;
  V edges = node.as(borders, dtype);
  const V x = node.as(given, dtype);
  const int64_t last = node.rank(x);
  check_borders(node, edges, x);
  if (is_search && node.has("sorter"))
    edges = c.gather_elements(edges, c.cast(node.tensor("sorter"), DType::kInt64), node.rank(edges) - 1);
  const V wide = node.rank(edges) > 1 ? c.unsqueeze(edges, node.rank(edges) - 1) : edges;
  V is_below = c.binary(is_right ? "less_equal" : "less", wide, c.unsqueeze(x, last));
  if (is_float(dtype)) is_below = node.add("or", {is_below, c.unsqueeze(node.add("is_nan", {x}), last)});
  node.set_output(0, node.as_output(c.reduce("reduce_sum", c.cast(is_below, DType::kInt64), {last}, false)));
}

namespace {

/// Places [n] and numbers of elements that the file does not ask for are empty.
void set_if_asked(NodeContext& node, size_t index, const char* flag, bool is_there,
                  const std::function<V()>& make) {
  const bool is_asked = node.flag(flag);
  if (!is_there && !is_asked) return node.set_output(index, Compose(node).ints({}, {0}));
  if (node.may_be_used(index)) node.set_output(index, make());
}

}  // namespace

// Distinct elements, or slices of an axis, in rising order; which of them each one is, and how often each is
// there.
void convert_unique(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  static_cast<void>(node.flag("sorted"));
  const bool is_of_axis = takes(node, "dim");
  const int64_t axis = is_of_axis ? node.axis("dim", node.rank(given)) : 0;
  const V x = is_of_axis ? given : c.reshape(given, {num_elements(node.shape(given))});
  const build::DistinctSlices found = build::distinct_slices(node, x, axis, true);
  node.set_output(0, found.values);
  const auto which = [&] { return is_of_axis ? found.which : c.reshape(found.which, node.shape(given)); };
  set_if_asked(node, 1, "return_inverse", is_of_axis, which);
  if (takes(node, "return_counts"))
    set_if_asked(node, 2, "return_counts", is_of_axis, [&] { return found.how_often; });
}

// Of elements in a row that are equal the first one, or of such slices of an axis. A NaN equals nothing.
void convert_unique_consecutive(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  const bool is_of_axis = node.has("dim") && node.rank(given) != 1;
  const int64_t axis = node.has("dim") ? node.axis_or_first("dim", node.rank(given)) : 0;
  const V x = is_of_axis ? with_axis(node, given) : c.reshape(given, {num_elements(node.shape(given))});
  const ir::SymInt count = node.shape(x)[static_cast<size_t>(axis)];
  const V places = c.iota(count), zero = c.number(places, 0);
  V differs =
      negated(node, c.binary("equal", x, c.gather(x, c.binary("max", c.minus(places, 1), zero), axis)));
  std::vector<int64_t> others = c.count_to(node.rank(x));
  others.erase(others.begin() + axis);
  if (!others.empty())
    differs = to_bool(node, c.reduce("reduce_max", c.cast(differs, DType::kUInt8), others, false));
  const V is_new = node.add("or", {c.binary("equal", places, zero), differs});
  const V first = c.squeeze(build::places_of_nonzero(node, is_new), 1);
  node.set_output(0, c.gather(x, first, axis));
  const V number = c.minus(node.add("cumsum", {c.cast(is_new, DType::kInt64)}, {{"axis", int64_t{0}}}), 1);
  set_if_asked(node, 1, "return_inverse", is_of_axis,
               [&] { return is_of_axis ? number : c.reshape(number, node.shape(given)); });
  set_if_asked(node, 2, "return_counts", is_of_axis, [&] {
    const V none = c.filled(DType::kInt64, node.shape(first), 0), one = c.filled(DType::kInt64, {count}, 1);
    return scattered(node, none, number, one, 0, "add");
  });
}

}  // namespace tensormill::frontend::pytorch
