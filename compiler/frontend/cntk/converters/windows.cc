#include "compiler/frontend/cntk/converters/windows.h"

#include <algorithm>

namespace tensormill::frontend::cntk {

namespace {

/// The number of CNTK's axis: one that stands for all that the kernel has, or its own.
int64_t number_at(const ir::Ints& given, size_t axis, size_t kernel_rank, int64_t otherwise) {
  if (given.size() == 1 && axis < kernel_rank) return given[0];
  return axis < given.size() ? given[axis] : otherwise;
}

bool flag_at(const std::vector<bool>& given, size_t axis, size_t kernel_rank) {
  if (given.size() == 1 && axis < kernel_rank) return given[0];
  return axis < given.size() && given[axis];
}

int64_t checked(NodeContext& node, const char* name, int64_t number, int64_t low) {
  if (number < low || number > build::kMaxWindowNumber)
    node.invalid("attribute " + std::string(name) + " has " + std::to_string(number));
  return number;
}

struct Pads {
  ir::SymInt lower = 0, upper = 0;
};

/// Pads at the end that no window reaches are of no matter: windows are counted down.
Pads auto_pads(NodeContext& node, const AxisWindow& axis, const ir::SymInt& in, bool is_ceil) {
  const int64_t center = (axis.reach() - 1) / 2, behind = axis.reach() - 1 - center;
  if (axis.stride == 1 || (axis.stride == 2 && !is_ceil)) return {center, behind};
  if (!is_ceil) {
    const ir::SymInt left = in - 1 - floordiv(in - 1, axis.stride) * axis.stride;
    return {center - floordiv(left, 2), behind};
  }
  if (!in.is_constant())
    node.unsupported("ceilOutDim", "windows with automatic pads over free dims are not implemented");
  const int64_t extent = in.hint(), windows = ceildiv(ir::SymInt(extent - 1), axis.stride).hint() + 1;
  // Rounded to 0, also where the windows reach past the end.
  const int64_t lower = center - (extent - ((windows - 1) * axis.stride + 1)) / 2;
  return {lower, (windows - 1) * axis.stride + axis.reach() - extent - lower};
}

/// What is missing at the end for the last window, where the windows are counted up.
Pads ceil_pads(const AxisWindow& axis, int64_t in) {
  const int64_t room = in + axis.lower + axis.upper - axis.reach();
  const int64_t windows = ceildiv(ir::SymInt(room), axis.stride).hint() + 1;
  return {axis.lower, (windows - 1) * axis.stride + axis.reach() - in - axis.lower};
}

}  // namespace

std::vector<AxisWindow> axis_windows(NodeContext& node, const ir::Ints& extents, size_t rank) {
  if (extents.size() > rank)
    node.invalid("windows of " + std::to_string(extents.size()) + " axes over an operand of " +
                 std::to_string(rank));
  const ir::Ints strides = node.dims("strides"), dilations = node.dims("dilation"),
                 lower = node.dims("lowerPad"), upper = node.dims("upperPad");
  const ir::CheckedList<bool> is_auto = node.flags("autoPadding");
  std::vector<AxisWindow> axes(rank);
  const size_t own = extents.size();
  for (size_t d = 0; d < rank; ++d) {
    AxisWindow& axis = axes[rank - 1 - d];
    axis.kernel = checked(node, "kernelShape", d < own ? extents[d] : 1, 1);
    axis.stride = checked(node, "strides", number_at(strides, d, own, 1), 1);
    axis.dilation = checked(node, "dilation", number_at(dilations, d, own, 1), 1);
    axis.is_auto = flag_at(is_auto, d, own);
    if (axis.is_auto) continue;
    axis.lower = checked(node, "lowerPad", number_at(lower, d, own, 0), 0);
    axis.upper = checked(node, "upperPad", number_at(upper, d, own, 0), 0);
  }
  return axes;
}

MapWindows windows_over(NodeContext& node, V map, const std::vector<AxisWindow>& axes, bool is_ceil) {
  Compose c(node);
  const size_t rank = axes.size();
  MapWindows made{map, {}, false};
  ir::SymShape pads(2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const AxisWindow& axis = axes[d];
    made.windows.kernel.emplace_back(axis.kernel);
    made.windows.strides.push_back(axis.stride);
    made.windows.dilations.push_back(axis.dilation);
    const ir::SymInt in = node.shape(made.map)[d + 2];
    const bool may_pass = is_ceil && axis.stride > 1;
    Pads own{axis.lower, axis.upper};
    if (axis.is_auto) {
      own = auto_pads(node, axis, in, is_ceil);
    } else if (may_pass && in.is_constant()) {
      own = ceil_pads(axis, in.hint());
    } else if (may_pass) {
      made.ceil_mode = true;
    }
    if (own.lower.is_constant() && own.lower.hint() < 0) {
      made.map = c.slice(made.map, static_cast<int64_t>(d) + 2, -own.lower, in + own.lower);
      own.lower = 0;
    } else if (!own.lower.is_constant() && axis.reach() < axis.stride) {
      node.unsupported("strides", "windows with gaps between them over free dims are not implemented");
    }
    pads[d] = own.lower;
    pads[d + rank] = max(own.upper, 0);
  }
  if (pads.is_constant()) {
    made.windows.pads = pads.hints();
  } else {
    made.windows.pads.assign(2 * rank, 0);
    made.windows.symbolic_pads = pads;
  }
  return made;
}

Cut transposed_cut(NodeContext& node, const AxisWindow& axis, const ir::SymInt& in,
                   std::optional<int64_t> extent) {
  const int64_t center = (axis.kernel - 1) / 2, behind = axis.kernel - 1 - center;
  if (!extent) return axis.is_auto ? Cut{center, behind} : Cut{axis.lower, axis.upper};
  const int64_t most = checked(node, "outputShape", *extent, 1),
                room = most - (axis.is_auto ? 1 : axis.kernel - axis.lower - axis.upper);
  if (room < 0 || !ir::demand(ir::Relation::kEqual, room / axis.stride + 1, in))
    node.invalid("a result of " + std::to_string(most) + " elements along an axis of " + to_string(in));
  const ir::SymInt more = ir::SymInt(most) - ((in - 1) * axis.stride + 1), half = floordiv(more, 2);
  if (axis.is_auto) return {center - half, behind - (more - half)};
  return {axis.lower, axis.kernel - 1 - axis.lower - more};
}

}  // namespace tensormill::frontend::cntk
