#include "compiler/frontend/onnx/run_checks.h"

#include <algorithm>
#include <map>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/counted.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// `holds`, or that nothing has to: in a branch that is not taken.
V unless_left(NodeContext& context, V holds) {
  Compose c(context);
  const V guard = context.guard();
  return guard == ir::kAbsent ? holds : c.binary("or", holds, c.unary("not", guard));
}

/// 0 where it holds, else `extent`, which no gather of so many finds.
V place_if(NodeContext& context, V holds, int64_t extent) {
  Compose c(context);
  return c.where(unless_left(context, holds), c.ints({0}, {1}), c.ints({extent}, {1}));
}

/// An axis of an operand whose extent data decides.
struct CountedAxis {
  size_t operand = 0;
  int64_t axis = 0;
  V count = ir::kAbsent;
  int64_t room = 0;
};

}  // namespace

V zero_if(NodeContext& context, V holds) {
  return checked_number(context, Compose(context).ints({0}, {1}), holds,
                        "what a run says of axes, extents or places does not go together");
}

V value_if(NodeContext& context, V x, V holds) {
  Compose c(context);
  const V all = c.unsqueeze(x, 0);
  // The same of the one that x has.
  if (num_elements(c.shape(x)) == 1)
    return c.squeeze(c.gather(c.concat({all, all}, 0), place_if(context, holds, 2), 0), 0);
  return c.squeeze(c.gather(all, place_if(context, holds, 1), 0), 0);
}

V checked_number(NodeContext& context, V number, V holds, const std::string& what) {
  return context.add("require", {number, unless_left(context, holds)}, {{"what", what}});
}

std::vector<V> with_same_counts(NodeContext& context, std::vector<V> operands,
                                std::optional<int64_t> joined) {
  std::map<size_t, std::vector<CountedAxis>> meeting;  // by axis from the end
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == ir::kAbsent) continue;
    const DataShape shape = context.data_shape(operands[i]);
    if (!shape.is_known) return operands;
    const Shape& extents = context.type(operands[i]).shape;
    for (const DataExtent& extent : shape.extents) {
      const auto axis = static_cast<int64_t>(extent.axis);
      if (axis == joined || extents[extent.axis] == 1) continue;
      meeting[extents.size() - extent.axis].push_back({i, axis, extent.count, extents[extent.axis]});
    }
  }
  Compose c(context);
  for (const auto& [behind, axes] : meeting) {
    const CountedAxis least = *std::min_element(
        axes.begin(), axes.end(), [](const CountedAxis& a, const CountedAxis& b) { return a.room < b.room; });
    for (const CountedAxis& own : axes) {
      if (context.same_count(own.count, least.count)) continue;
      V& x = operands[own.operand];
      const V same = c.binary("equal", own.count, least.count);
      x = c.slice(filled_along(context, x, own.axis, "zero"), own.axis, 0, least.room);
      x = take_first(context, value_if(context, x, same), least.count, own.axis);
    }
  }
  return operands;
}

namespace {

/// The fixed extent of another operand, other than 1, that meets the axis `behind` from the end.
std::optional<int64_t> fixed_extent(const NodeContext& context, const std::vector<V>& operands,
                                    size_t behind) {
  for (const V operand : operands) {
    const Shape& extents = context.type(operand).shape;
    if (behind > extents.size()) continue;
    const auto axis = static_cast<int64_t>(extents.size() - behind);
    const int64_t extent = extents[static_cast<size_t>(axis)];
    if (extent > 1 && context.data_shape(operand).along(axis) == nullptr) return extent;
  }
  return std::nullopt;
}

/// Whether no number but the room bounds a count.
bool is_roomy(const NodeContext& context, V count) {
  const BoundedInts number = context.room() ? bounds_of(context, count, context.room()) : std::nullopt;
  return number && number->size() == 1 && number->front().grows;
}

/// The one element along the axis for each, or the `extent` ones that there are.
V as_many(NodeContext& context, V x, const DataExtent& data, int64_t extent) {
  Compose c(context);
  const auto axis = static_cast<int64_t>(data.axis);
  const V none = c.ints({0}, {1}), is_one = c.binary("equal", data.count, c.ints({1}, {1}));
  const V holds = c.binary("or", is_one, c.binary("equal", data.count, c.ints({extent}, {1})));
  const V own =
      c.binary("min", c.ints(c.count_to(extent), {extent}), c.ints({c.shape(x)[data.axis] - 1}, {1}));
  const V places = c.add(c.where(is_one, none, own), zero_if(context, holds));
  return c.gather(filled_along(context, x, axis, "zero"), places, axis);
}

}  // namespace

std::vector<V> broadcast_as_run(NodeContext& context, std::vector<V> operands) {
  for (V& x : operands) {
    const size_t rank = context.type(x).shape.size();
    for (const DataExtent& data : context.data_shape(x).extents) {
      const std::optional<int64_t> extent = fixed_extent(context, operands, rank - data.axis);
      const int64_t room = context.type(x).shape[data.axis];
      if (extent && room > 1 && (room == *extent || is_roomy(context, data.count)))
        x = as_many(context, x, data, *extent);
    }
  }
  return operands;
}

}  // namespace tensormill::frontend::onnx
