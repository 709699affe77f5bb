#include "compiler/frontend/onnx/converters/windows/data_dependent_windows.h"

#include "compiler/build/compose.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
/// The count (i64 [1]) that spatial axis d of the result has where the operand's is this; kAbsent where it
/// cannot be told.
using CountOf = std::function<V(size_t d, V count)>;

V counted(NodeContext& context, V x, const char* with, const CountOf& count_of,
          const std::function<V(V)>& compute) {
  std::vector<std::pair<int64_t, V>> counts;
  V whole = x;
  for (const DataExtent& extent : context.data_shape(x).extents) {
    if (extent.axis < 2) continue;
    const V count = count_of(extent.axis - 2, extent.count);
    if (count == ir::kAbsent) continue;
    counts.emplace_back(static_cast<int64_t>(extent.axis), count);
    whole = filled_along(context, whole, counts.back().first, with);
  }
  V result = compute(whole);
  for (const auto& [axis, count] : counts) result = take_first(context, result, count, axis);
  return result;
}

int64_t reach_of(const Windows& windows, size_t d) {
  return (windows.kernel[d] - 1) * windows.dilations[d] + 1;
}

int64_t pads_of(const Windows& windows, size_t d) {
  return windows.pads[d] + windows.pads[d + windows.kernel.size()];
}

}  // namespace

V over_windows(NodeContext& context, V x, const Windows& windows, const char* with,
               const std::function<V(V)>& compute) {
  Compose c(context);
  const CountOf count_of = [&](size_t d, V count) {
    const int64_t stride = windows.strides[d];
    // Pads that follow from the extent follow from the count.
    if (windows.same && stride != 1) return ir::kAbsent;
    const V behind = c.add(count, c.dims({pads_of(windows, d) - reach_of(windows, d) + stride}, {1}));
    const V room = c.binary("max", behind, c.ints({0}, {1}));
    return stride == 1 ? room : c.div(room, c.dims({stride}, {1}));
  };
  return counted(context, x, with, count_of, compute);
}

V from_windows(NodeContext& context, V x, const Windows& windows, const std::vector<int64_t>& extra,
               const std::function<V(V)>& compute) {
  Compose c(context);
  const CountOf count_of = [&](size_t d, V count) {
    const int64_t stride = windows.strides[d];
    const int64_t more = reach_of(windows, d) - stride + extra[d] - pads_of(windows, d);
    const V spread = stride == 1 ? count : c.mul(count, c.dims({stride}, {1}));
    return more == 0 ? spread : c.add(spread, c.dims({more}, {1}));
  };
  return counted(context, x, "zero", count_of, compute);
}

bool has_data_dependent_windows(NodeContext& context, V x) {
  for (const DataExtent& extent : context.data_shape(x).extents) {
    if (extent.axis >= 2) return true;
  }
  return false;
}

}  // namespace tensormill::frontend::onnx
