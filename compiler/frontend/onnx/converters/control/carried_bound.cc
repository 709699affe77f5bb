// What iterations hand on with other extents each time: in growing buffers, its extents numbers that the next
// one binds.
#include <algorithm>
#include <set>

#include "compiler/frontend/onnx/converters/control/carried.h"
#include "compiler/frontend/onnx/converters/control/ragged.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "runtime/base/narrow.h"

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
      extent = node_.symbolic_ints(own, "an extent", has_some ? 1 : 0)[0];
      bound.push_back({extent, first});
    } else {
      extent = alike->extent;
    }
    shape[axis] = extent;
  }
  form.taken = node_.add("take_growing", {extents, trip, form.first},
                         {{"buffer", *form.buffer}, {"result", shape}, {"dtype", form.type.dtype}});
}

/// Notes the extents that `value` has along the axes whose extents iterations bind; whether those that were
/// taken for one are, and whether those that began with an element have one.
bool CarriedValues::take_extents(const Form& form, ir::ValueId value, std::vector<BoundExtent>& bound) {
  bool are_apart = false, may_be_none = false;
  for (const auto& [axis, extent] : form.bound_axes) {
    const ir::SymInt own = node_.type(value).shape[axis];
    for (const BoundExtent& other : bound)
      are_apart =
          are_apart || (same(other.extent, extent) && !is_proven(ir::Relation::kEqual, other.own, own));
    may_be_none = may_be_none || (is_proven(ir::Relation::kLessEqual, 1, extent) &&
                                  !is_proven(ir::Relation::kLessEqual, 1, own));
    bound.push_back({extent, own});
  }
  extents_are_apart_ = extents_are_apart_ || are_apart;
  extents_may_be_none_ = extents_may_be_none_ || may_be_none;
  return !are_apart && !may_be_none;
}

/// Whether the elements differ along an axis whose extent an iteration binds: then they are handed on one
/// behind the other along it.
bool CarriedValues::add_ragged(Form& form, const Binding& result, const std::string& name,
                               const BodySymbols& body) {
  if (result.kind == Binding::Kind::kStack || (result.elements.empty() && result.tensor == ir::kAbsent))
    return false;
  const ir::ValueId like = result.kind == Binding::Kind::kRagged ? result.tensor : result.elements.front();
  std::set<size_t> axes(result.uneven.begin(), result.uneven.end());
  bool are_alike = node_.type(like).dtype != kString;
  for (const ir::ValueId element : result.elements) {
    const ir::SymShape shape = node_.type(element).shape;
    are_alike = are_alike && node_.rank(element) == node_.rank(like);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (body.are_in({shape[d]})) axes.insert(d);
    }
  }
  if (axes.empty()) return false;
  if (axes.size() > 1 || !are_alike)
    node_.unsupported("body", "what it puts into the sequence " + name +
                                  " is text, of several ranks, or has several extents that an iteration "
                                  "works out");
  form.initial = ragged_of(context_, form.initial, *axes.begin(), like, name);
  form.type = node_.type(form.initial.tensor);
  form.uneven = form.initial.uneven;
  form.kind = Kind::kRagged;
  bind_axis(form, *axes.begin());
  return true;
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
