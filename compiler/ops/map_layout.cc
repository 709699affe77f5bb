#include "compiler/ops/map_layout.h"

#include <algorithm>
#include <numeric>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/windows/blocked.h"

namespace tensormill::ops {

bool is_channels_last(const ir::Attrs& attrs) { return attr_bool(attrs, kChannelsLast, false); }

MapAxes map_axes(const ir::Attrs& attrs, size_t rank) {
  return is_channels_last(attrs) && rank > 1 ? MapAxes{rank - 1, 1} : MapAxes{};
}

std::vector<size_t> first_from_last(size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (rank > 2) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

std::vector<size_t> weights_from_last(MapWeights weights, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (weights == MapWeights::kNone || rank < 2) return order;
  std::rotate(order.begin(), order.end() - 2, order.end());
  if (weights == MapWeights::kConv) std::swap(order[0], order[1]);
  return order;
}

namespace {

ir::SymShape reordered(const ir::SymShape& shape, const std::vector<size_t>& order) {
  ir::SymShape made;
  for (const size_t axis : order) made.push_back(shape[axis]);
  return made;
}

std::vector<size_t> inverted(const std::vector<size_t>& order) {
  std::vector<size_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return inverse;
}

/// How input `index` is turned to have its channels first.
std::vector<size_t> order_of_input(MapWeights weights, size_t index, size_t rank) {
  return index == 0 ? first_from_last(rank)
                    : weights_from_last(index == 1 ? weights : MapWeights::kNone, rank);
}

Tensor turned(const Tensor& tensor, const std::vector<size_t>& order) {
  Shape shape;
  for (const size_t axis : order) shape.push_back(tensor.shape()[axis]);
  return permuted(tensor, order, shape);
}

}  // namespace

ir::SymShape weights_first(const ir::Attrs& attrs, MapWeights weights, const ir::SymShape& shape) {
  return is_channels_last(attrs) ? reordered(shape, weights_from_last(weights, shape.size())) : shape;
}

namespace map_layout {

FirstTypes::FirstTypes(MapWeights weights, const std::vector<const ir::ValueType*>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.emplace_back();
    if (inputs[i] == nullptr) continue;
    const ir::SymShape& shape = inputs[i]->shape;
    types.back() = {inputs[i]->dtype, reordered(shape, order_of_input(weights, i, shape.size()))};
  }
}

std::vector<const ir::ValueType*> FirstTypes::pointers() const {
  std::vector<const ir::ValueType*> made;
  for (const std::optional<ir::ValueType>& type : types) made.push_back(type ? &*type : nullptr);
  return made;
}

ir::SymShape last_shape(const ir::SymShape& first) {
  return reordered(first, inverted(first_from_last(first.size())));
}

void reference(const ir::ReferenceContext& context, MapWeights weights,
               void (*plain)(const ir::ReferenceContext&)) {
  std::vector<std::optional<Tensor>> turned_inputs(context.inputs.size());
  ir::ReferenceContext first{context.attrs, {}, {}};
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const Tensor* input = context.inputs[i];
    if (input != nullptr && i < 2)
      turned_inputs[i] = turned(*input, order_of_input(weights, i, input->shape().size()));
    first.inputs.push_back(turned_inputs[i] ? &*turned_inputs[i] : input);
  }
  Tensor& out = *context.outputs[0];
  const std::vector<size_t> order = first_from_last(out.shape().size());
  Shape shape;
  for (const size_t axis : order) shape.push_back(out.shape()[axis]);
  Tensor made(out.dtype(), shape);
  first.outputs = {&made};
  plain(first);
  strided_copy(turned(made, inverted(order)), out, row_major_strides(out.shape()), 0);
}

bool part(ir::PartContext& context, MapWeights weights, bool (*plain)(ir::PartContext&)) {
  const FirstTypes types(weights, context.inputs);
  const std::vector<size_t> order = first_from_last(context.output.shape.size());
  const ir::ValueType output{context.output.dtype, reordered(context.output.shape, order)};
  ir::Part wanted = context.wanted;
  wanted.axis = inverted(order)[wanted.axis];
  ir::PartContext first{context.attrs, types.pointers(), output, wanted, context.parts, context.changed};
  if (!plain(first)) return false;
  for (size_t i = 0; i < first.parts.size(); ++i) {
    if (first.parts[i])
      first.parts[i]->axis =
          order_of_input(weights, i, context.inputs[i]->shape.size())[first.parts[i]->axis];
  }
  context.parts = first.parts;
  context.changed = first.changed;
  return true;
}

}  // namespace map_layout

}  // namespace tensormill::ops
