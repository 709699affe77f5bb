#include "compiler/frontend/onnx/converters/stacks.h"

#include <algorithm>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/counted.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

V length_of(NodeContext& node, V x) {
  const std::optional<V> count = count_along(node, x, 0);
  if (!count) node.unsupported("operand", "a sequence whose length cannot be told");
  return *count;
}

/// A position counted from the front, i64 [1], of which there are `limit` in a tensor of `extent`; a negative
/// one is from the end of `count` elements. One that is none is `extent`, which no gather finds, or 0 in a
/// branch that is not taken.
V place_of(StructureContext& context, V position, V count, V limit, int64_t extent) {
  Compose c(context.node);
  const V given = c.reshape(c.cast(position, DType::kInt64), {1}), zero = c.ints({0}, {1});
  const V place = c.where(c.binary("less", given, zero), c.add(given, count), given);
  V none = c.ints({extent}, {1});
  if (context.builder.guard() != ir::kAbsent) none = c.where(context.builder.guard(), none, zero);
  const V below = c.where(c.binary("less", place, limit), place, none);
  return c.where(c.binary("less", place, zero), none, below);
}

/// The place, checked, for what only compares with it.
V checked_place(StructureContext& context, V position, V count, V limit, int64_t extent) {
  Compose c(context.node);
  return c.gather(c.ints(c.count_to(extent), {extent}), place_of(context, position, count, limit, extent), 0);
}

/// Rows of a stack that is filled behind its count, at places within it.
V rows_at(NodeContext& node, V whole, V places) {
  Compose c(node);
  return c.gather(whole, c.clip(places, 0, static_cast<double>(c.shape(whole)[0] - 1)), 0);
}

}  // namespace

Binding stack(V x) { return {Binding::Kind::kStack, x, {}}; }

Binding maybe(V x, V present) { return {Binding::Kind::kMaybe, x, {}, present}; }

V held(const Binding& binding) {
  const bool may_hold = binding.kind == Binding::Kind::kTensor || binding.kind == Binding::Kind::kMaybe;
  return may_hold ? binding.tensor : ir::kAbsent;
}

V presence(StructureContext& context, const Binding& binding) {
  if (binding.kind == Binding::Kind::kMaybe) return binding.present;
  Tensor has(DType::kBool, {1});
  has.set_element_int(0, held(binding) != ir::kAbsent ? 1 : 0);
  return context.builder.constant(std::move(has)).tensor;
}

bool is_sequence(const Binding& binding) {
  return binding.kind == Binding::Kind::kSequence || binding.kind == Binding::Kind::kStack;
}

std::optional<ir::ValueType> element_type(StructureContext& context, const Binding& sequence,
                                          const std::string& what) {
  NodeContext& node = context.node;
  if (sequence.kind == Binding::Kind::kStack) {
    ir::ValueType type = node.type(sequence.tensor);
    type.shape.erase(type.shape.begin());
    return type;
  }
  std::optional<ir::ValueType> type;
  for (const V element : sequence.elements) {
    const DataShape shape = node.data_shape(element);
    if (!shape.is_known || !shape.extents.empty())
      node.unsupported("operand", "an element's shape in " + what + " depends on data; served are elements " +
                                      "of one type and shape");
    if (node.type(element).dtype == kString)
      node.unsupported("operand", "strings in " + what + ", whose length a run works out");
    if (type && !(*type == node.type(element)))
      node.unsupported("operand", "elements of " + what + " are " + ir::to_string(*type) + " and " +
                                      ir::to_string(node.type(element)) +
                                      "; where a run works out how many there are, or which one is meant, " +
                                      "served are elements of one type and shape");
    type = node.type(element);
  }
  return type;
}

V stacked_elements(StructureContext& context, const Binding& sequence, const std::string& what) {
  if (sequence.kind == Binding::Kind::kStack) return sequence.tensor;
  if (!element_type(context, sequence, what)) context.node.invalid(what + " is empty");
  Compose c(context.node);
  std::vector<V> rows;
  for (const V element : sequence.elements) rows.push_back(c.unsqueeze(element, 0));
  return c.concat(std::move(rows), 0);
}

V number_of_elements(StructureContext& context, const Binding& sequence) {
  if (sequence.kind == Binding::Kind::kStack) return length_of(context.node, sequence.tensor);
  return context.node.int64_constant({static_cast<int64_t>(sequence.elements.size())});
}

V stack_element(StructureContext& context, V x, V position) {
  Compose c(context.node);
  const V count = length_of(context.node, x), whole = filled_along(context.node, x, 0, "zero");
  return c.squeeze(c.gather(whole, place_of(context, position, count, count, c.shape(x)[0]), 0), 0);
}

Binding stack_with(StructureContext& context, V x, V element, V position) {
  NodeContext& node = context.node;
  Compose c(node);
  const DataShape shape = node.data_shape(element);
  ir::ValueType type = node.type(x);
  type.shape.erase(type.shape.begin());
  if (!shape.is_known || !shape.extents.empty() || !(node.type(element) == type))
    node.unsupported("tensor", "an element of " + ir::to_string(node.type(element)) +
                                   " in a sequence whose length a run works out, of " + ir::to_string(type) +
                                   ": served are elements of one type and shape");
  const V row = c.unsqueeze(element, 0);
  if (position == ir::kAbsent) return stack(counted_concat(node, {x, row}, 0));
  const V count = length_of(node, x), more = c.plus(count, 1);
  const int64_t extent = c.shape(x)[0] + 1;
  const V place = checked_place(context, position, count, more, extent);
  const V places = c.ints(c.count_to(extent), {extent});
  const V before = c.binary("less", places, place);
  const V moved =
      rows_at(node, filled_along(node, x, 0, "zero"), c.where(before, places, c.minus(places, 1)));
  Shape along(c.shape(moved).size(), 1);
  along[0] = extent;
  const V is_new = c.reshape(c.binary("equal", places, place), along);
  return stack(take_first(node, c.where(is_new, c.expand(row, c.shape(moved)), moved), more, 0));
}

Binding stack_without(StructureContext& context, V x, V position) {
  NodeContext& node = context.node;
  Compose c(node);
  const V count = length_of(node, x);
  const int64_t extent = std::max<int64_t>(c.shape(x)[0] - 1, 1);
  const V last = position == ir::kAbsent ? c.ints({-1}, {1}) : position;
  const V place = checked_place(context, last, count, count, c.shape(x)[0]);
  const V places = c.ints(c.count_to(extent), {extent});
  const V from = c.where(c.binary("less", places, place), places, c.plus(places, 1));
  return stack(take_first(node, rows_at(node, filled_along(node, x, 0, "zero"), from), c.minus(count, 1), 0));
}

V with_axis_at(NodeContext& node, V x, int64_t from, int64_t to) {
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < node.rank(x); ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return from == to ? x : Compose(node).transpose(x, std::move(perm));
}

V joined_stack(StructureContext& context, V x, int64_t axis, bool is_new) {
  NodeContext& node = context.node;
  const int64_t at = node.normalize_axis(axis, node.rank(x) - (is_new ? 0 : 1));
  const V moved = with_axis_at(node, x, 0, at);
  if (is_new) return moved;
  Shape shape = node.type(moved).shape;
  const auto first = shape.begin() + at;
  *first = node.product(*first, *(first + 1));
  shape.erase(first + 1);
  return counted_reshape(node, moved, shape);
}

}  // namespace tensormill::frontend::onnx
