// Operators that select by indices or conditions: one-hot rows, sorted elements, gathering and scattering.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

/// Indices that may be negative, counted from the front; those outside of the axis become -2^58, so that the
/// operator that uses them refuses them.
ir::ValueId flat_component(Compose& c, ir::ValueId index, const ir::SymInt& extent,
                           const ir::SymInt& stride) {
  const ir::ValueId wide = c.cast(index, DType::kInt64);
  const ir::ValueId zero = c.number(wide, 0), end = c.dims({extent}, {});
  const ir::ValueId front = c.where(c.binary("less", wide, zero), c.add(wide, end), wide);
  const ir::ValueId inside =
      c.binary("and", c.binary("greater_equal", front, zero), c.binary("less", front, end));
  const ir::ValueId refused = c.dims({-(int64_t{1} << 58)}, {});
  return c.where(inside, c.mul(front, c.dims({stride}, {})), refused);
}

/// Tuples of indices (last axis) as row-major positions in `extents`.
ir::ValueId flat_indices(Compose& c, ir::ValueId tuples, const ir::SymShape& extents) {
  const ir::SymInt last = static_cast<int64_t>(c.shape(tuples).size()) - 1;
  ir::ValueId sum = ir::kAbsent;
  ir::SymInt stride = 1;
  for (int64_t i = static_cast<int64_t>(extents.size()) - 1; i >= 0; --i) {
    const ir::SymInt& extent = extents[static_cast<size_t>(i)];
    const ir::ValueId part = flat_component(c, c.squeeze(c.slice(tuples, last, i, 1), last), extent, stride);
    sum = sum == ir::kAbsent ? part : c.add(sum, part);
    stride *= extent;
  }
  return sum;
}

ir::SymInt product(const ir::SymShape& shape, size_t from, size_t to) {
  return num_elements(ir::SymShape(shape.begin() + static_cast<std::ptrdiff_t>(from),
                                   shape.begin() + static_cast<std::ptrdiff_t>(to)));
}

/// Kernels of sorted rows look at all elements of a row for each, those of scattered elements at all updates
/// of their row: what is more goes to the host. So do extents that are free.
constexpr int64_t kSortedByKernel = 15;
constexpr int64_t kLooksOfKernel = 1 << 14;

bool is_scattered_by_host(const NodeContext& context, ir::ValueId x, const ir::SymInt& updates) {
  const ir::SymInt elements = num_elements(context.type(x).shape);
  // Of free extents a kernel's looks may be any number.
  if (!updates.is_constant() || !elements.is_constant()) return true;
  return updates.hint() > kLooksOfKernel / std::max<int64_t>(elements.hint(), 1);
}

ir::ValueId scatter(NodeContext& context, ir::ValueId x, ir::ValueId indices, ir::ValueId updates,
                    int64_t axis, const std::string& reduction) {
  const ir::SymInt count = context.type(indices).shape[static_cast<size_t>(axis)];
  return context.add(is_scattered_by_host(context, x, count) ? "scatter" : "scatter_elements",
                     {x, indices, updates}, {{"axis", axis}, {"reduction", reduction}});
}

/// Whether there are no indices, or no updates, while a run decides how many there are of the other: the
/// result is x, and a run fails in which there are any.
bool scatters_nothing(NodeContext& context, const ir::SymInt& indices, const ir::SymInt& updates) {
  const ir::SymInt total = indices + updates;
  const bool is_open = !total.is_constant() && total.table()->is_run_time(total.expr());
  if (!is_open || same(indices, 0) == same(updates, 0)) return false;
  Compose c(context);
  const ir::ValueId count = c.dims({total}, {1});
  const char* const what = same(updates, 0) ? "{} indices of no updates" : "{} updates of no indices";
  context.set_output(
      0, value_if(context, context.input(0), {c.binary("equal", count, c.ints({0}, {1})), what, {count}}));
  return true;
}

}  // namespace

void convert_one_hot(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0)) + 1;
  const int64_t axis = context.normalize_axis(context.int_attr("axis", -1), rank);
  const auto one_hot = [&](ir::ValueId indices, const ir::SymInt& depth) {
    return context.add("one_hot", {indices, context.input(2)}, {{"axis", axis}, {"depth", depth}});
  };
  if (context.is_known(1)) {
    const ir::KnownValue& known = context.known_symbolic(context.input(1), "depth");
    const ir::SymInt depth =
        known.is_symbolic() && !is_float(context.type(context.input(1)).dtype) && known.elements().size() == 1
            ? known.elements()[0]
            : ir::SymInt(context.known_scalar(1, "depth").element_as_int(0));
    context.set_output(0, one_hot(context.input(0), depth));
    return;
  }
  Compose c(context);
  constexpr int64_t kMaxDepth = int64_t{1} << 31;
  const ir::SymInt depth = run_extent(context, one_integer(context, 1, "depth"), kMaxDepth, "depth");
  const ir::ValueId given = c.cast(context.input(0), DType::kInt64), none = c.extent(given, depth);
  const ir::ValueId indices = c.where(c.binary("less", given, c.number(given, 0)), c.add(given, none), given);
  // What is below 0 still is of no class.
  context.set_output(0,
                     one_hot(c.where(c.binary("less", indices, c.number(given, 0)), none, indices), depth));
}

void convert_top_k(NodeContext& context) {
  Compose c(context);
  const ir::ValueId given = context.input(0);
  const int64_t axis = context.normalize_axis(context.int_attr("axis", -1), context.rank(given));
  const bool largest = context.int_attr("largest", 1) != 0;
  const ir::SymInt extent = c.shape(given)[static_cast<size_t>(axis)];
  const ir::SymInt k = context.opset() < 10 ? ir::SymInt(context.required_int("k"))
                                            : build::only_integer(context, context.known_ints(1, "k"), "k");
  const ir::ValueId x = filled_along(context, given, axis, largest ? "lowest" : "last");
  const bool by_host = !is_proven(ir::Relation::kLessEqual, extent, kSortedByKernel);
  ir::ValueId order = context.add(by_host ? "sort_positions" : "arg_top_k", {x},
                                  {{"axis", axis}, {"k", k}, {"largest", int64_t{largest}}});
  // What is behind the count is none of the k: a k above the count becomes an index that is refused.
  if (x != given)
    order = c.where(c.binary("less", order, *count_along(context, given, axis)), order, c.dims({extent}, {}));
  context.set_output(0, c.gather_elements(x, order, axis));
  context.set_output(1, order);
}

void convert_compress(NodeContext& context) {
  Compose c(context);
  const bool flat = !context.has_attr("axis");
  ir::ValueId x = context.input(0);
  if (flat) x = data_dependent_reshape(context, x, {num_elements(c.shape(x))});
  const int64_t axis = flat ? 0 : context.normalize_axis(context.int_attr("axis", 0), context.rank(x));
  x = filled_along(context, x, axis, "zero");
  if (!context.is_known(1)) {
    const ir::ValueId condition = filled_behind(context, context.input(1), "zero");
    context.set_output(0, context.add_many("compress", {x, condition}, {{"axis", axis}})[0]);
    return;
  }
  const Tensor& condition = context.known(1, "condition");
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition.num_elements(); ++i) {
    if (condition.element_as_int(i) != 0) kept.push_back(i);
  }
  const int64_t count = static_cast<int64_t>(kept.size());
  context.set_output(0, c.gather(x, c.ints(kept, {count}), axis));
}

// The positions of what is not zero.
void convert_non_zero(NodeContext& context) {
  if (!context.is_known(0)) {
    const ir::ValueId x = filled_behind(context, context.input(0), "zero");
    context.set_output(0, context.add_many("find_nonzero", {x})[0]);
    return;
  }
  const Tensor& x = context.known(0, "X");
  const ir::SymShape shape = x.shape().empty() ? ir::SymShape{1} : ir::SymShape(x.shape());
  std::vector<std::vector<int64_t>> found(shape.size());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const bool zero = is_float(x.dtype()) ? x.element_as_double(i) == 0 : x.element_as_int(i) == 0;
    if (zero) continue;
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) found[d].push_back(rest % shape[d]);
  }
  std::vector<int64_t> rows;
  for (const std::vector<int64_t>& row : found) rows.insert(rows.end(), row.begin(), row.end());
  const int64_t count = found.empty() ? 0 : static_cast<int64_t>(found[0].size());
  context.set_output(0, Compose(context).ints(rows, {static_cast<int64_t>(shape.size()), count}));
}

void convert_gather_nd(NodeContext& context) {
  Compose c(context);
  const ir::SymShape x = c.shape(context.input(0)), at = c.shape(context.input(1));
  const size_t batch = static_cast<size_t>(std::max<int64_t>(0, context.int_attr("batch_dims", 0)));
  if (at.empty() || batch >= at.size() || batch + static_cast<size_t>(at.back()) > x.size())
    context.invalid("indices of shape " + to_string(at) + " do not fit data of shape " + to_string(x));
  const size_t depth = static_cast<size_t>(at.back());
  ir::SymShape out(at.begin(), at.end() - 1);
  out.insert(out.end(), x.begin() + static_cast<std::ptrdiff_t>(batch + depth), x.end());
  const ir::SymInt batches = product(x, 0, batch), inner = product(x, batch + depth, x.size());
  const ir::SymInt middle = product(x, batch, batch + depth), points = product(at, batch, at.size() - 1);
  if (depth == 0) {
    context.set_output(0, c.expand(context.input(0), out));
    return;
  }
  const ir::SymShape extents(x.begin() + static_cast<std::ptrdiff_t>(batch),
                             x.begin() + static_cast<std::ptrdiff_t>(batch + depth));
  const ir::ValueId tuples = c.reshape(context.input(1), {batches, points, at.back()});
  for (const DataExtent& extent : context.data_shape(context.input(0)).extents) {
    if (extent.axis >= batch && extent.axis < batch + depth) context.require_bound_extents(context.input(0));
  }
  const ir::ValueId rows = c.reshape(flat_indices(c, tuples, extents), {batches, points, 1});
  const ir::ValueId data = c.reshape(context.input(0), {batches, middle, inner});
  context.set_output(0, c.reshape(c.gather_elements(data, c.expand(rows, {batches, points, inner}), 1), out));
}

void convert_scatter_elements(NodeContext& context) {
  for (const size_t operand : {0, 1, 2}) context.require_bound_extents(context.input(operand));
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), context.rank(context.input(0)));
  const auto elements = [&](size_t operand) {
    return num_elements(context.type(context.input(operand)).shape);
  };
  if (scatters_nothing(context, elements(1), elements(2))) return;
  context.set_output(0, scatter(context, context.input(0), context.input(1), context.input(2), axis,
                                context.string_attr("reduction", "none")));
}

namespace {

/// Rows of updates to rows of x. The host has an index of each row for all of it.
ir::ValueId scatter_rows(NodeContext& context, ir::ValueId x, ir::ValueId rows, ir::ValueId updates,
                         const std::string& reduction) {
  Compose c(context);
  const ir::SymShape shape = c.shape(updates);
  ir::ValueId indices = c.unsqueeze(rows, 1);
  const bool by_host = is_scattered_by_host(context, x, shape[0]);
  if (!by_host) indices = c.expand(indices, shape);
  return context.add(by_host ? "scatter" : "scatter_elements", {x, indices, updates},
                     {{"axis", int64_t{0}}, {"reduction", reduction}});
}

}  // namespace

void convert_scatter_nd(NodeContext& context) {
  Compose c(context);
  for (const size_t operand : {0, 1, 2}) context.require_bound_extents(context.input(operand));
  const ir::SymShape x = c.shape(context.input(0)), at = c.shape(context.input(1));
  if (at.empty() || at.back() < 0 || static_cast<size_t>(at.back()) > x.size())
    context.invalid("indices of shape " + to_string(at) + " do not fit data of shape " + to_string(x));
  const auto depth = static_cast<size_t>(at.back());
  ir::SymShape expected(at.begin(), at.end() - 1);
  expected.insert(expected.end(), x.begin() + static_cast<std::ptrdiff_t>(depth), x.end());
  const ir::SymShape given = c.shape(context.input(2));
  const ir::SymInt points = product(at, 0, at.size() - 1);
  if (given.size() == expected.size() && scatters_nothing(context, points, product(given, 0, at.size() - 1)))
    return;
  if (!demand_equal(given, expected))
    context.invalid("updates have shape " + to_string(given) + ", expected " + to_string(expected));
  const ir::SymInt outer = product(x, 0, depth), inner = product(x, depth, x.size());
  const ir::SymShape extents(x.begin(), x.begin() + at.back());
  const ir::ValueId rows = depth == 0 ? c.filled(DType::kInt64, {points}, 0)
                                      : c.reshape(flat_indices(c, context.input(1), extents), {points});
  const ir::ValueId data = c.reshape(context.input(0), {outer, inner});
  const ir::ValueId updates = c.reshape(context.input(2), {points, inner});
  const ir::ValueId result =
      scatter_rows(context, data, rows, updates, context.string_attr("reduction", "none"));
  context.set_output(0, c.reshape(result, x));
}

namespace {

bool is_known_equal(const ir::SymShape& a, const ir::SymShape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ir::SymInt& x, const ir::SymInt& y) {
    return is_proven(ir::Relation::kEqual, x, y);
  });
}

/// The shape of what a MaxPool whose places these are pooled, if it is one.
std::optional<ir::SymShape> pooled_shape(NodeContext& context, ir::ValueId places) {
  const ir::Graph& graph = context.graph();
  const ir::NodeId producer = graph.value(places).producer;
  if (producer == ir::kAbsent) return std::nullopt;
  for (ir::NodeId id = producer; id >= 0 && graph.node(id).origins == graph.node(producer).origins; --id) {
    if (graph.node(id).op == "max_pool") return context.type(graph.node(id).inputs[0]).shape;
  }
  return std::nullopt;
}

/// Values at `places` of a map of shape `whole`, where elements that no place names are 0.
ir::ValueId unpooled(NodeContext& context, ir::ValueId places, const ir::SymShape& whole) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::ValueId zeros = c.filled(c.dtype(x), {num_elements(whole)}, 0);
  const auto flat = [&](ir::ValueId value) { return c.reshape(value, {num_elements(c.shape(x))}); };
  // A place is counted from the front alone: what is less than 0 becomes one that is refused.
  const ir::ValueId refused = c.number(places, static_cast<double>(-(int64_t{1} << 58)));
  const ir::ValueId own = c.where(c.binary("less", places, c.number(places, 0)), refused, places);
  return c.reshape(scatter(context, zeros, flat(own), flat(x), 0, "none"), whole);
}

/// The same where a run says the result's shape: of the map that was pooled where it has that shape, else of
/// the one that the windows make.
ir::ValueId dynamic_unpool(NodeContext& context, const ir::SymShape& inferred) {
  Compose c(context);
  const ir::ValueId places = context.input(1);
  const std::optional<ir::SymShape> pooled = pooled_shape(context, places);
  if (!pooled || pooled->size() != inferred.size())
    return map_in_run_shape(context, unpooled(context, places, inferred), 2);
  const auto rank = static_cast<int64_t>(inferred.size());
  const ir::ValueId given = numbers_of(context, 2, rank, "output_shape");
  const ir::ValueId same = c.cast(c.binary("equal", given, c.ints(*pooled, {rank})), DType::kInt64);
  const ir::ValueId is_pooled = c.cast(c.reduce("reduce_min", same, {0}, true), DType::kBool);
  const ir::ValueId first = c.number(places, 0);
  const ir::ValueId own = unpooled(context, c.where(is_pooled, places, first), *pooled);
  const ir::ValueId other = unpooled(context, c.where(is_pooled, first, places), inferred);
  return c.where(is_pooled, map_in_run_shape(context, own, 2), map_in_run_shape(context, other, 2));
}

}  // namespace

// Each value to its place; elements that no index names are 0. Places are those of the map that was pooled:
// of the output's shape where that is known to be its, else of the one that the windows make, from which the
// output's goes on.
void convert_max_unpool(NodeContext& context) {
  Compose c(context);
  const ir::SymShape x = c.shape(context.input(0));
  const size_t spatial = x.size() - std::min<size_t>(2, x.size());
  const ir::Ints kernel = context.required_ints("kernel_shape");
  const ir::Ints strides = context.ints_attr("strides", std::vector<int64_t>(spatial, 1));
  const ir::Ints pads = context.ints_attr("pads", std::vector<int64_t>(2 * spatial, 0));
  if (kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    context.invalid("kernel_shape, strides and pads do not fit shape " + to_string(x));
  ir::SymShape inferred = x;
  for (size_t d = 0; d < spatial; ++d)
    inferred[d + 2] = context.product(x[d + 2] - 1, strides[d]) + kernel[d] - pads[d] - pads[d + spatial];
  if (context.has_input(2) && !is_static(context, 2))
    return context.set_output(0, dynamic_unpool(context, inferred));
  const ir::SymShape out = context.has_input(2) ? context.known_ints(2, "output_shape") : inferred;
  if (out.size() != x.size())
    context.invalid("output_shape is " + to_string(out) + " for shape " + to_string(x));
  for (size_t d = 0; d < out.size(); ++d) {
    if (!demand(ir::Relation::kLessEqual, 0, out[d]))
      context.invalid("output_shape is " + to_string(out) + ": an extent is " + to_string(out[d]));
    if (d < 2 && !demand(ir::Relation::kEqual, out[d], x[d]))
      context.invalid("output_shape has " + to_string(out[d]) + ", expected " + to_string(x[d]));
  }
  if (const auto pooled = pooled_shape(context, context.input(1)); pooled && is_known_equal(out, *pooled))
    inferred = out;
  ir::ValueId result = unpooled(context, context.input(1), inferred);
  if (!is_known_equal(out, inferred)) {
    ir::SymShape padding(2 * x.size(), 0);
    for (size_t d = 0; d < x.size(); ++d) padding[d + x.size()] = out[d] - inferred[d];
    result =
        context.add("pad", {result}, {{"pads", padding}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  context.set_output(0, result);
}

}  // namespace tensormill::frontend::onnx
