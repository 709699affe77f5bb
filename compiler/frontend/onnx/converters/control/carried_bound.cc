// What iterations hand on with other extents each time: in growing buffers, its extents numbers that the next
// one binds.
#include <algorithm>

#include "compiler/frontend/onnx/converters/control/carried.h"
#include "compiler/frontend/onnx/converters/tensors/run_numbers.h"

namespace tensormill::frontend::onnx {

/// What an iteration is handed of a value whose extents it binds, or what the last one has left. Extents that
/// begin alike are taken for one, and those that begin with an element have one in each iteration, until
/// next() finds that it is not so.
void CarriedValues::take_bound(Form& form, ir::ValueId extents, ir::ValueId trip,
                               std::vector<BoundExtent>& bound) {
  ir::SymShape shape = form.type.shape;
  for (auto& [axis, extent] : form.bound_axes) {
    const ir::SymInt first = node_.type(form.first).shape[axis];
    const auto alike =
        extents_are_apart_ ? bound.end() : std::find_if(bound.begin(), bound.end(), [&](const auto& other) {
          return same(other.own, first);
        });
    if (alike == bound.end()) {
      const ir::ValueId own = row_element(node_, extents, static_cast<int64_t>(axis));
      const bool has_some = !extents_may_be_none_ && is_proven(ir::Relation::kLessEqual, 1, first);
      extent = node_.numbers_of_run(own, "an extent", has_some ? 1 : 0)[0];
      bound.push_back({extent, first});
    } else {
      extent = alike->extent;
    }
    shape[axis] = extent;
  }
  form.taken = node_.add("take_growing", {extents, trip, form.first},
                         {{"buffer", *form.buffer}, {"result", shape}, {"dtype", form.type.dtype}});
}

/// From now on iterations bind the extent of the axis.
void CarriedValues::bind_axis(Form& form, size_t axis) {
  if (!form.buffer) form.buffer = context_.builder.next_buffers(1);
  for (const Axis& own : form.axes) {
    if (own.growth == 0) form.type.shape[own.axis] -= own.raised;
    form.bound_axes[own.axis];
  }
  form.axes.clear();
  form.bound_axes[axis];
}

}  // namespace tensormill::frontend::onnx
