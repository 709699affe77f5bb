#include "compiler/ir/storage.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ir/run_dims.h"

namespace tensormill::ir {

namespace {

/// All dimensions before `axis` are 1: a range along the axis is a range of bytes.
bool leads(const Shape& shape, size_t axis) {
  return std::all_of(shape.begin(), shape.begin() + static_cast<Shape::difference_type>(axis),
                     [](int64_t extent) { return extent == 1; });
}

size_t axis_of(const Node& node, size_t rank) {
  const int64_t axis = node.attrs.int_of("axis");
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

}  // namespace

Storage::Storage(const Graph& graph)
    : graph_(graph), views_(graph.nodes().size(), false), places_(graph.values().size()) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) visit(static_cast<NodeId>(i));
}

Storage::Place Storage::place(ValueId value) const {
  Place result{value, 0};
  for (Place next = places_[static_cast<size_t>(value)]; next.root != kAbsent;
       next = places_[static_cast<size_t>(next.root)]) {
    result = {next.root, result.offset + next.offset};
  }
  return result;
}

int64_t Storage::bytes_of(ValueId value) const {
  const ValueType& type = graph_.value(value).type;
  return num_bytes(type.shape, type.dtype);
}

void Storage::put(ValueId value, ValueId inside, int64_t offset) {
  places_[static_cast<size_t>(value)] = {inside, offset};
}

void Storage::visit(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op == "fused") return;
  bool view = false;
  if (graph_.ops().get(node.op).is_view) {
    put(node.outputs[0], node.inputs[0], 0);
    view = true;
  } else if (!has_constant_extents(graph_, node)) {
    // Where its bytes begin differs.
    return;
  } else if (node.op == "slice") {
    view = visit_slice(node);
  } else if (node.op == "split") {
    view = visit_split(node);
  } else if (node.op == "concat") {
    view = visit_concat(id);
  }
  views_[static_cast<size_t>(id)] = view;
}

bool Storage::visit_slice(const Node& node) {
  const Shape& in = graph_.value(node.inputs[0]).type.shape;
  const Shape& out = graph_.value(node.outputs[0]).type.shape;
  if (bytes_of(node.outputs[0]) == 0) return false;
  size_t axis = 0;
  while (axis < in.size() && in[axis] == out[axis]) ++axis;
  if (axis == in.size() || !leads(in, axis)) return false;
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t step = node.attrs.has("steps") ? node.attrs.ints_of("steps")[d] : 1;
    if ((d != axis && in[d] != out[d]) || (step != 1 && out[d] > 1)) return false;
  }
  const int64_t offset = node.attrs.ints_of("starts")[axis] * (bytes_of(node.outputs[0]) / out[axis]);
  if (offset % kStorageAlignment != 0) return false;
  put(node.outputs[0], node.inputs[0], offset);
  return true;
}

bool Storage::visit_split(const Node& node) {
  const Shape& in = graph_.value(node.inputs[0]).type.shape;
  if (!leads(in, axis_of(node, in.size()))) return false;
  int64_t offset = 0;
  for (const ValueId output : node.outputs) {
    if (offset % kStorageAlignment != 0 || bytes_of(output) == 0) return false;
    offset += bytes_of(output);
  }
  offset = 0;
  for (const ValueId output : node.outputs) {
    put(output, node.inputs[0], offset);
    offset += bytes_of(output);
  }
  return true;
}

bool Storage::visit_concat(NodeId id) {
  const Node& node = graph_.node(id);
  const ValueId whole = node.outputs[0];
  const Shape& shape = graph_.value(whole).type.shape;
  if (!leads(shape, axis_of(node, shape.size()))) return false;
  std::vector<ValueId> roots;
  int64_t offset = 0;
  for (const ValueId input : node.inputs) {
    // The part must fill a buffer that a kernel writes and that stands nowhere else yet.
    const Place at = place(input);
    const NodeId maker = graph_.value(at.root).producer;
    const bool made = maker != kAbsent && has_constant_extents(graph_, graph_.node(maker));
    if (!made || at.offset != 0 || bytes_of(at.root) != bytes_of(input) || bytes_of(input) == 0 ||
        offset % kStorageAlignment != 0 || std::count(roots.begin(), roots.end(), at.root) != 0) {
      return false;
    }
    roots.push_back(at.root);
    offset += bytes_of(input);
  }
  offset = 0;
  for (const ValueId root : roots) {
    put(root, whole, offset);
    offset += bytes_of(root);
  }
  return true;
}

}  // namespace tensormill::ir
