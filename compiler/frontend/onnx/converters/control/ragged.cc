#include "compiler/frontend/onnx/converters/control/ragged.h"

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The extent of x along `axis`, i64 [1].
V length_of(NodeContext& node, V x, size_t axis) { return node.extents({node.type(x).shape[axis]}); }

/// Whether an element can be behind others: all but the extent along `axis` are the same.
void check_fits(const NodeContext& node, const ir::ValueType& own, const ir::ValueType& others, size_t axis) {
  bool fits = own.dtype == others.dtype && own.shape.size() == others.shape.size();
  for (size_t d = 0; fits && d < own.shape.size(); ++d)
    fits = d == axis || demand(ir::Relation::kEqual, own.shape[d], others.shape[d]);
  if (!fits)
    node.unsupported("operand", "an element of " + ir::to_string(own) + " in a sequence of " +
                                    ir::to_string(others) + ", of which a run works out how long they are");
}

}  // namespace

Binding ragged_of(StructureContext& context, const Binding& sequence, size_t axis, V like,
                  const std::string& what) {
  NodeContext& node = context.node;
  const bool is_ragged = sequence.kind == Binding::Kind::kRagged && sequence.uneven.front() == axis;
  const bool is_list = sequence.kind == Binding::Kind::kSequence;
  if ((!is_ragged && !is_list) || sequence.present != ir::kAbsent)
    node.unsupported("operand", what + " has elements whose extents along several axes a run works out");
  if (is_ragged) return sequence;
  Compose c(node);
  ir::ValueType type = node.type(like);
  type.shape[axis] = 0;
  Binding all{Binding::Kind::kRagged, c.filled(type.dtype, type.shape, 0), {}};
  all.extents = c.ints({}, {0});
  all.uneven = {axis};
  for (const V element : sequence.elements) all = ragged_with(context, all, element);
  return all;
}

Binding ragged_with(StructureContext& context, const Binding& all, V element) {
  NodeContext& node = context.node;
  Compose c(node);
  const size_t axis = all.uneven.front();
  check_fits(node, node.type(element), node.type(all.tensor), axis);
  Binding result = all;
  result.tensor = c.concat({all.tensor, element}, static_cast<int64_t>(axis));
  result.extents = c.concat({all.extents, length_of(node, element, axis)}, 0);
  return result;
}

Binding stack_of_ragged(const StructureContext& context, const Binding& all) {
  NodeContext& node = context.node;
  Compose c(node);
  const V ends = node.add("cumsum", {all.extents}, {{"axis", int64_t{0}}});
  const V longest = c.reduce("reduce_max", c.concat({all.extents, c.ints({0}, {1})}, 0), {0}, true);
  const ir::SymInt capacity = node.symbolic_ints(longest, "the length of an element", 0)[0];
  return parts_at(context, all.tensor, static_cast<int64_t>(all.uneven.front()),
                  {c.sub(ends, all.extents), all.extents}, capacity);
}

}  // namespace tensormill::frontend::onnx
