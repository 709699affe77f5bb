#include "compiler/ops/parts.h"

#include <algorithm>

namespace tensormill::ops {

bool part_of_elementwise(ir::PartContext& context) {
  const size_t rank = context.output.shape.size();
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    if (context.inputs[i] == nullptr) continue;
    const Shape& shape = context.inputs[i]->shape;
    const size_t missing = rank - shape.size();
    if (context.wanted.axis < missing || shape[context.wanted.axis - missing] == 1) continue;
    context.parts[i] = {context.wanted.axis - missing, context.wanted.begin, context.wanted.end};
  }
  return true;
}

bool part_beside_axis(ir::PartContext& context, size_t axis) {
  if (context.wanted.axis == axis) return false;
  std::fill(context.parts.begin(), context.parts.end(), context.wanted);
  return true;
}

bool part_of_first(ir::PartContext& context) {
  context.parts[0] = context.wanted;
  return true;
}

bool part_of_windows(ir::PartContext& context, const Window& window) {
  const ir::Part& wanted = context.wanted;
  if (wanted.axis == 0) return part_of_first(context);
  const size_t rank = window.rank();
  if (wanted.axis < 2 || wanted.axis >= rank + 2) return false;
  const size_t d = wanted.axis - 2;
  const int64_t extent = context.inputs[0]->shape[wanted.axis];
  const int64_t first = wanted.begin * window.strides[d] - window.pads_begin[d];
  const int64_t last = (wanted.end - 1) * window.strides[d] - window.pads_begin[d] + window.reach(d);
  const int64_t begin = std::max<int64_t>(first, 0), end = std::min(last, extent);
  if (begin >= end) return false;
  std::vector<int64_t> pads = window.pads_begin;
  pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
  pads[d] = begin - first;
  pads[rank + d] = last - end;
  context.changed.set("pads", pads);
  context.parts[0] = {wanted.axis, begin, end};
  return true;
}

}  // namespace tensormill::ops
