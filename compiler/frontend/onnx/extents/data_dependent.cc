#include "compiler/frontend/onnx/extents/data_dependent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "compiler/build/compose.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/steps/host_steps.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

V filled(NodeContext& context, V x, const DataExtent& data, const char* with) {
  Compose c(context);
  const DType dtype = c.dtype(x);
  const V number = dtype == DType::kBool ? c.cast(x, DType::kUInt8) : x;
  const V result = context.add("fill_behind", {number, data.count},
                               {{"axis", static_cast<int64_t>(data.axis)}, {"with", std::string(with)}});
  return c.cast(result, dtype);
}

bool is_zero(const char* with) { return std::string_view(with) == "zero"; }

/// The take_first that made x, where zeros are behind what it takes anyway; or null.
const ir::Node* taken_of_zeros(NodeContext& context, V x) {
  const ir::Value& value = context.graph().value(x);
  if (value.producer == ir::kAbsent) return nullptr;
  const ir::Node& node = context.graph().node(value.producer);
  const bool is_taken = node.op == "take_first" && node.outputs[0] == x && node.attrs.has("zeros");
  return is_taken ? &node : nullptr;
}

}  // namespace

V filled_behind(NodeContext& context, V x, const char* with) {
  if (const ir::Node* taken = taken_of_zeros(context, x); taken != nullptr && is_zero(with)) {
    // Its axis, and then those of what it is taken of.
    return filled_behind(context, taken->inputs[0], with);
  }
  for (const DataExtent& data : context.data_shape(x).extents) x = filled(context, x, data, with);
  return x;
}

V filled_along(NodeContext& context, V x, int64_t axis, const char* with) {
  const ir::Node* taken = taken_of_zeros(context, x);
  if (taken != nullptr && is_zero(with) && taken->attrs.int_of("axis") == axis) return taken->inputs[0];
  const DataShape shape = context.data_shape(x);
  const DataExtent* data = shape.along(axis);
  return data != nullptr ? filled(context, x, *data, with) : x;
}

V with_count(NodeContext& context, V x, int64_t axis, const char* with, const std::function<V(V)>& compute) {
  const V whole = filled_along(context, x, axis, with);
  const V result = compute(whole);
  if (whole == x) return result;
  const V count = *count_along(context, x, axis);
  const auto extent = [&](V value) { return context.type(value).shape[static_cast<size_t>(axis)]; };
  if (extent(result) != extent(x)) return take_first(context, result, count, axis);
  return context.add_many("take_first", {result, count}, {{"axis", axis}, {"fits", int64_t{1}}})[0];
}

V longer_by(NodeContext& context, V x, const ir::SymInt& more, int64_t axis) {
  Compose c(context);
  ir::SymShape behind = c.shape(x);
  behind[static_cast<size_t>(axis)] = more;
  return c.concat({x, c.filled(c.dtype(x), behind, 0)}, axis);
}

V take_first(NodeContext& context, V x, V count, int64_t axis) {
  if (context.binds_symbols()) return context.dynamic_prefix(x, count, axis);
  // The only element, which is always there.
  const auto own = static_cast<size_t>(axis < 0 ? axis + context.rank(x) : axis);
  if (is_proven(ir::Relation::kEqual, context.type(x).shape[own], 1) && !context.graph().value(count).known) {
    const BoundedInts number = bounds_of(context, count);
    if (number && number->size() == 1 && number->front().least >= 1) return x;
  }
  return context.add_many("take_first", {x, count}, {{"axis", axis}})[0];
}

namespace {

/// Axes of a shape, one behind the other.
struct AxisRange {
  size_t first = 0, last = 0;
  bool holds(size_t axis) const { return axis >= first && axis < last; }
};

/// The axes of `from` that axis `at` of `to` is made of, if it is made of whole ones.
std::optional<AxisRange> merged_axes(const ir::SymShape& from, const ir::SymShape& to, size_t at) {
  const auto behind = [&](size_t first, const ir::SymInt& product) -> std::optional<size_t> {
    ir::SymInt passed = 1;
    for (; first < from.size() && !same(passed, product); ++first) passed *= from[first];
    return same(passed, product) ? std::optional(first) : std::nullopt;
  };
  const ir::SymInt before =
      num_elements(ir::SymShape(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(at)));
  const std::optional<size_t> first = behind(0, before);
  std::optional<size_t> last = first ? behind(*first, to[at]) : std::nullopt;
  if (!last) return std::nullopt;
  // What is 1 at most behind them may be none.
  const auto is_one = [](const ir::SymInt& extent) { return is_proven(ir::Relation::kEqual, extent, 1); };
  while (*last < from.size() && is_one(from[*last]) && (at + 1 == to.size() || !is_one(to[at + 1]))) ++*last;
  return AxisRange{*first, *last};
}

/// x of shape `from` in shape `to`, whose axis `at` is made of the axes of `range`: what is there of them,
/// close together.
V merged(NodeContext& context, V x, AxisRange range, const ir::SymShape& to, size_t at) {
  Compose c(context);
  const ir::SymShape from = c.shape(x);
  const auto axis = static_cast<int64_t>(at);
  std::vector<V> counts;
  std::vector<size_t> counted;
  for (size_t d = range.first; d < range.last; ++d) {
    counts.push_back(*count_along(context, x, static_cast<int64_t>(d)));
    if (context.data_shape(x).along(static_cast<int64_t>(d)) != nullptr) counted.push_back(d);
  }
  for (const size_t d : counted) x = filled_along(context, x, static_cast<int64_t>(d), "zero");
  V result = context.reshape(x, to), total = counts[0];
  for (size_t i = 1; i < counts.size(); ++i) total = c.mul(total, counts[i]);
  bool is_leading = counted.size() == 1;
  for (size_t d = range.first; is_leading && d < counted[0]; ++d)
    is_leading = is_proven(ir::Relation::kEqual, from[d], 1);
  if (is_leading) return take_first(context, result, total, axis);
  V rest = c.iota(to[at]), place = c.ints({0}, {1});
  ir::SymInt stride = 1;
  for (size_t d = range.last; d-- > range.first; stride *= from[d]) {
    const V count = c.binary("max", counts[d - range.first], c.ints({1}, {1}));
    const V own = context.add("mod", {rest, count}, {{"fmod", int64_t{0}}});
    place = c.add(place, c.mul(own, c.dims({stride}, {1})));
    rest = c.div(rest, count);
  }
  result = c.gather(result, c.binary("min", place, c.dims({to[at] - 1}, {1})), axis);
  return take_first(context, result, total, axis);
}

}  // namespace

V data_dependent_reshape(NodeContext& context, V x, const ir::SymShape& shape) {
  const ir::SymShape from = context.type(x).shape;
  const auto is_kept = [&](const DataExtent& extent) { return reshaped_axis(from, extent.axis, shape); };
  for (const DataExtent& extent : context.data_shape(x).extents) {
    if (is_kept(extent)) continue;
    for (size_t at = 0; at < shape.size(); ++at) {
      const std::optional<AxisRange> range = shape[at] > 1 ? merged_axes(from, shape, at) : std::nullopt;
      if (range && range->holds(extent.axis)) return merged(context, x, *range, shape, at);
    }
  }
  return context.reshape(x, shape);
}

std::optional<V> count_along(NodeContext& context, V x, int64_t axis) {
  const DataShape shape = context.data_shape(x);
  if (!shape.is_known) return std::nullopt;
  if (const DataExtent* data = shape.along(axis)) return data->count;
  return context.extents({context.type(x).shape[static_cast<size_t>(axis)]});
}

V take_zeroed(NodeContext& context, V x, V count, int64_t axis) {
  if (context.binds_symbols()) return context.dynamic_prefix(x, count, axis);
  return context.add_many("take_first", {x, count},
                          {{"axis", axis}, {"fits", int64_t{1}}, {"zeros", int64_t{1}}})[0];
}

namespace {

/// How much more of it there is capacity for along the axis in an iteration that is handed x, or what was
/// appended to such: the loop has noted it (CarriedValues::spare).
int64_t spare_of(NodeContext& context, V x, int64_t axis) {
  const ir::ValueId producer = context.graph().value(x).producer;
  if (producer == ir::kAbsent) return 0;
  const ir::Node& node = context.graph().node(producer);
  if (node.op == "append" && node.attrs.int_of("axis") == axis)
    return spare_of(context, node.inputs[0], axis) -
           context.type(node.inputs[2]).shape[static_cast<size_t>(axis)].hint();
  if (node.op != ir::kLoopBegin || !node.attrs.has("spare")) return 0;
  const ir::Ints spare = node.attrs.ints_of("spare");
  for (size_t i = 0; i + 2 < spare.size(); i += 3) {
    if (node.outputs[static_cast<size_t>(spare[i])] == x && spare[i + 1] == axis) return spare[i + 2];
  }
  return 0;
}

/// The parts behind what a loop hands on, in its place: what was there before does not move. Nothing where
/// that is not what the first of them is.
std::optional<V> appended(NodeContext& context, const std::vector<V>& parts, int64_t axis) {
  Compose c(context);
  const ir::Node* taken = taken_of_zeros(context, parts[0]);
  if (taken == nullptr || taken->attrs.int_of("axis") != axis) return std::nullopt;
  // The node goes where others are added.
  const V whole = taken->inputs[0], count = taken->outputs[1];
  if (!context.data_shape(whole).extents.empty()) return std::nullopt;
  for (size_t i = 1; i < parts.size(); ++i) {
    const DataShape shape = context.data_shape(parts[i]);
    if (!shape.is_known || !shape.extents.empty()) return std::nullopt;
  }
  const int64_t spare = spare_of(context, whole, axis);
  ir::SymInt more = 0;
  for (size_t i = 1; i < parts.size(); ++i) more += c.shape(parts[i])[static_cast<size_t>(axis)];
  if (!more.is_constant() || more.hint() == 0 || more.hint() > spare) return std::nullopt;
  const V part = parts.size() == 2 ? parts[1] : c.concat({parts.begin() + 1, parts.end()}, axis);
  const V longer = context.add("append", {whole, count, part}, {{"axis", axis}});
  return take_zeroed(context, longer, c.add(count, c.dims({more}, {1})), axis);
}

/// Parts one behind the other, of which some are as long as data says: joined at their largest extents, then
/// moved together.
V joined_counts(NodeContext& context, const std::vector<V>& inputs, int64_t axis) {
  if (const std::optional<V> joined = appended(context, inputs, axis)) return *joined;
  Compose c(context);
  std::vector<V> parts, counts;
  ir::SymInt extent = 0;
  for (const V input : inputs) {
    const std::optional<V> count = count_along(context, input, axis);
    if (!count)
      context.unsupported("operand", "a part whose shape depends on data in a way that cannot be told");
    counts.push_back(*count);
    parts.push_back(filled_along(context, input, axis, "zero"));
    extent += c.shape(input)[static_cast<size_t>(axis)];
  }
  const V places = c.iota(extent);
  V from = places, total = c.ints({0}, {1});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const V count = counts[i];
    total = c.add(total, count);
    if (parts[i] == inputs[i]) continue;
    const V gap = c.sub(c.dims({c.shape(inputs[i])[static_cast<size_t>(axis)]}, {1}), count);
    from = c.add(from, c.where(c.binary("less", places, total), c.ints({0}, {1}), gap));
  }
  const V last = c.minus(c.dims({extent}, {1}), 1);
  const V moved = c.gather(c.concat(parts, axis), c.binary("min", from, last), axis);
  return context.add_many("take_first", {moved, total}, {{"axis", axis}, {"fits", int64_t{1}}})[0];
}

}  // namespace

V data_dependent_concat(NodeContext& context, std::vector<V> parts, int64_t axis) {
  const auto is_data_dependent = [&](V part) { return context.data_shape(part).along(axis) != nullptr; };
  if (parts.size() < 2 || !std::any_of(parts.begin(), parts.end(), is_data_dependent))
    return context.add("concat", std::move(parts), {{"axis", axis}});
  return joined_counts(context, parts, axis);
}

}  // namespace tensormill::frontend::onnx
