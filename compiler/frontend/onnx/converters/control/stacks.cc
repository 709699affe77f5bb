#include "compiler/frontend/onnx/converters/control/stacks.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/ragged.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

V length_of(NodeContext& node, V x) {
  const std::optional<V> count = count_along(node, x, 0);
  if (!count) node.unsupported("operand", "a sequence whose length cannot be told");
  return *count;
}

/// A position counted from the front, i64 [1], of which there are `limit`; a negative one is from the end of
/// `count` elements. A run fails in which it is none; in a branch that is not taken it is 0 then.
V place_of(StructureContext& context, V position, V count, V limit) {
  Compose c(context.node);
  const V given = c.reshape(c.cast(position, DType::kInt64), {1}), zero = c.ints({0}, {1});
  const V place = c.where(c.binary("less", given, zero), c.add(given, count), given);
  const V holds = c.binary("and", c.binary("less_equal", zero, place), c.binary("less", place, limit));
  const Check check{holds, "position {} in a sequence of {} elements", {given, count}};
  return c.add(c.where(holds, place, zero), zero_if(context.node, check));
}

/// Rows of x, which is filled behind its count, at places within it.
V rows_at(NodeContext& node, V x, V places) {
  Compose c(node);
  const V whole = filled_along(node, x, 0, "zero");
  const V last = c.dims({max(c.shape(whole)[0], 1) - 1}, {1});
  return c.gather(whole, c.binary("max", c.binary("min", places, last), c.ints({0}, {1})), 0);
}

/// The first `count` rows of x, all of which there are where the count is known to be as many.
V first_rows(NodeContext& node, V x, V count) {
  const ir::KnownValue& known = node.graph().value(count).known;
  const bool is_whole = known && same(known.elements().at(0), node.type(x).shape[0]);
  return is_whole ? x : take_first(node, x, count, 0);
}

/// What `move` makes of the rows of a stack, and of those of its table.
template <typename Move>
Binding moved_rows(const Binding& all, const Move& move) {
  Binding result = all;
  result.tensor = move(all.tensor);
  if (all.extents != ir::kAbsent) result.extents = move(all.extents);
  return result;
}

/// The extents that all elements of a form have, i64 [1, rank].
V row_of_form(NodeContext& node, const ElementForm& form) {
  ir::SymShape extents = form.type.shape;
  if (form.type.dtype == kString) extents.pop_back();
  return Compose(node).ints(extents, {1, static_cast<int64_t>(extents.size())});
}

}  // namespace

bool ElementForm::is_uneven(size_t axis) const {
  return std::find(uneven.begin(), uneven.end(), axis) != uneven.end();
}

Binding stack(V x) { return {Binding::Kind::kStack, x, {}}; }

Binding parts_at(const StructureContext& context, V x, int64_t axis, const Parts& parts,
                 const ir::SymInt& capacity) {
  NodeContext& node = context.node;
  Compose c(node);
  const ir::SymInt count = c.shape(parts.starts)[0], own = max(capacity, 1);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  const V steps = c.iota(own, {1, own}), columns = c.reshape(parts.lengths, {count, 1});
  const V places = c.add(c.reshape(parts.starts, {count, 1}), steps);
  // Where there may be none there is a place to read, which is no part's.
  const ir::SymInt some = max(extent, 1);
  const V whole = same(some, extent) ? x : longer_by(node, x, 1, axis);
  const V last = c.dims({some - 1}, {1, 1});
  const V moved = with_axis_at(node, c.gather(whole, c.binary("min", places, last), axis), axis, 0);
  ir::SymShape along(c.shape(moved).size(), 1);
  along[0] = count;
  along[static_cast<size_t>(axis) + 1] = own;
  const V is_there = c.reshape(c.binary("less", steps, columns), along);
  Binding result = stack(c.where(is_there, moved, c.filled(c.dtype(moved), c.shape(moved), 0)));
  std::vector<V> table;
  for (int64_t d = 0; d < shown_rank(node, x); ++d)
    table.push_back(d == axis ? columns : c.expand(*count_along(node, x, d), {count, 1}));
  result.uneven = {static_cast<size_t>(axis)};
  result.extents = c.concat(std::move(table), 1);
  return result;
}

Binding maybe(V x, V present) { return {Binding::Kind::kMaybe, x, {}, present}; }

V held(const Binding& binding) {
  const bool may_hold = binding.kind == Binding::Kind::kTensor || binding.kind == Binding::Kind::kMaybe;
  return may_hold ? binding.tensor : ir::kAbsent;
}

V presence(StructureContext& context, const Binding& binding) {
  if (binding.present != ir::kAbsent) return binding.present;
  Tensor has(DType::kBool, {1});
  has.set_element_int(0, is_sequence(binding) || held(binding) != ir::kAbsent ? 1 : 0);
  return context.builder.constant(std::move(has)).tensor;
}

bool is_sequence(const Binding& binding) {
  return binding.kind == Binding::Kind::kSequence || binding.kind == Binding::Kind::kStack ||
         binding.kind == Binding::Kind::kRagged;
}

ElementForm form_of_element(StructureContext& context, V x, const std::string& what) {
  NodeContext& node = context.node;
  const DataShape shape = node.data_shape(x);
  if (!shape.is_known)
    node.unsupported("operand",
                     "the shape of an element of " + what + " depends on data in a way that cannot be told");
  ElementForm form{node.type(x), {}};
  for (const DataExtent& extent : shape.extents) form.uneven.push_back(extent.axis);
  return form;
}

ElementForm common_form(const StructureContext& context, const ElementForm& a, const ElementForm& b,
                        const std::string& what) {
  const ir::SymShape& other = b.type.shape;
  if (a.type.dtype != b.type.dtype || a.type.shape.size() != other.size())
    context.node.unsupported(
        "operand", "elements of " + what + " are " + ir::to_string(a.type) + " and " + ir::to_string(b.type) +
                       "; where a run works out how many there are, or which one is meant, "
                       "served are elements of one type and rank");
  ElementForm form{a.type, {}};
  for (size_t d = 0; d < other.size(); ++d) {
    const bool is_width = form.type.dtype == kString && d + 1 == other.size();
    if (!is_width && (a.is_uneven(d) || b.is_uneven(d) || other[d] != form.type.shape[d]))
      form.uneven.push_back(d);
    form.type.shape[d] = max(form.type.shape[d], other[d]);
  }
  return form;
}

std::optional<ElementForm> element_form(StructureContext& context, const Binding& sequence,
                                        const std::string& what) {
  if (sequence.kind == Binding::Kind::kRagged)
    return element_form(context, stack_of_ragged(context, sequence), what);
  if (sequence.kind == Binding::Kind::kStack) {
    ElementForm form{context.node.type(sequence.tensor), sequence.uneven};
    form.type.shape.erase(form.type.shape.begin());
    return form;
  }
  std::optional<ElementForm> form;
  for (const V element : sequence.elements) {
    const ElementForm own = form_of_element(context, element, what);
    form = form ? common_form(context, *form, own, what) : own;
  }
  return form;
}

V extents_row(StructureContext& context, V x) {
  std::vector<V> row;
  for (int64_t axis = 0; axis < shown_rank(context.node, x); ++axis)
    row.push_back(*count_along(context.node, x, axis));
  Compose c(context.node);
  const auto rank = static_cast<int64_t>(row.size());
  return c.reshape(c.concat(std::move(row), 0), {1, rank});
}

V with_capacity(NodeContext& node, V x, const ir::SymShape& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    const ir::SymInt more = shape[d] - node.type(x).shape[d];
    if (more > 0) x = longer_by(node, x, more, axis);
  }
  return x;
}

V table_of(StructureContext& context, const Binding& all) {
  if (all.extents != ir::kAbsent) return all.extents;
  NodeContext& node = context.node;
  Compose c(node);
  const V row = row_of_form(node, *element_form(context, all, "the sequence"));
  const V table = c.expand(row, {c.shape(all.tensor)[0], c.shape(row)[1]});
  const bool is_data_dependent = node.data_shape(all.tensor).along(0) != nullptr;
  return is_data_dependent ? take_first(node, table, length_of(node, all.tensor), 0) : table;
}

Binding in_form(StructureContext& context, const Binding& sequence, const ElementForm& form) {
  if (sequence.kind == Binding::Kind::kRagged)
    return in_form(context, stack_of_ragged(context, sequence), form);
  NodeContext& node = context.node;
  Compose c(node);
  Binding result = stack(ir::kAbsent);
  result.uneven = form.uneven;
  if (sequence.kind == Binding::Kind::kSequence) {
    std::vector<V> rows, table;
    for (const V element : sequence.elements) {
      rows.push_back(
          c.unsqueeze(with_capacity(node, filled_behind(node, element, "zero"), form.type.shape), 0));
      if (!form.uneven.empty()) table.push_back(extents_row(context, element));
    }
    result.tensor = c.concat(std::move(rows), 0);
    if (!table.empty()) result.extents = c.concat(std::move(table), 0);
    return result;
  }
  ir::SymShape capacity = form.type.shape;
  capacity.insert(capacity.begin(), c.shape(sequence.tensor)[0]);
  result.extents = sequence.extents;
  if (!form.uneven.empty()) result.extents = table_of(context, sequence);
  result.tensor = with_capacity(node, sequence.tensor, capacity);
  return result;
}

Binding stacked_elements(StructureContext& context, const Binding& sequence, const std::string& what) {
  if (sequence.kind == Binding::Kind::kStack) return sequence;
  if (sequence.kind == Binding::Kind::kRagged) return stack_of_ragged(context, sequence);
  const std::optional<ElementForm> form = element_form(context, sequence, what);
  if (!form) context.node.invalid(what + " is empty");
  return in_form(context, sequence, *form);
}

V number_of_elements(StructureContext& context, const Binding& sequence) {
  if (sequence.kind == Binding::Kind::kStack) return length_of(context.node, sequence.tensor);
  if (sequence.kind == Binding::Kind::kRagged) return length_of(context.node, sequence.extents);
  return context.node.int64_constant({static_cast<int64_t>(sequence.elements.size())});
}

V element_as(const StructureContext& context, V x, const std::vector<size_t>& uneven, V row) {
  Compose c(context.node);
  for (const size_t axis : uneven) {
    const auto at = static_cast<int64_t>(axis);
    x = take_first(context.node, x, c.reshape(c.slice(row, 1, at, 1), {1}), at);
  }
  return x;
}

V stack_element(StructureContext& context, const Binding& all, V position) {
  NodeContext& node = context.node;
  Compose c(node);
  const V count = length_of(node, all.tensor);
  const V place = place_of(context, position, count, count);
  const auto row_of = [&](V rows) { return c.gather(filled_along(node, rows, 0, "zero"), place, 0); };
  const V element = c.squeeze(row_of(all.tensor), 0);
  return all.uneven.empty() ? element : element_as(context, element, all.uneven, row_of(all.extents));
}

Binding stack_with(StructureContext& context, const Binding& all, V element, V position) {
  NodeContext& node = context.node;
  Compose c(node);
  const std::string what = "the sequence";
  const ElementForm form =
      common_form(context, *element_form(context, all, what), form_of_element(context, element, what), what);
  const Binding before = in_form(context, all, form);
  const Binding own = in_form(context, {Binding::Kind::kSequence, ir::kAbsent, {element}}, form);
  const V count = length_of(node, before.tensor), more = c.plus(count, 1);
  const ir::SymInt extent = c.shape(before.tensor)[0] + 1;
  const V places = c.iota(extent);
  const V place = position == ir::kAbsent ? ir::kAbsent : place_of(context, position, count, more);
  const auto with_row = [&](V rows, V row) {
    if (place == ir::kAbsent) return data_dependent_concat(node, {rows, row}, 0);
    const V is_before = c.binary("less", places, place);
    const V moved = rows_at(node, rows, c.where(is_before, places, c.minus(places, 1)));
    ir::SymShape along(c.shape(moved).size(), 1);
    along[0] = extent;
    const V is_new = c.reshape(c.binary("equal", places, place), along);
    return first_rows(node, c.where(is_new, c.expand(row, c.shape(moved)), moved), more);
  };
  Binding result = before;
  result.tensor = with_row(before.tensor, own.tensor);
  if (before.extents != ir::kAbsent) result.extents = with_row(before.extents, own.extents);
  return result;
}

Binding stack_without(StructureContext& context, const Binding& all, V position) {
  NodeContext& node = context.node;
  Compose c(node);
  const V count = length_of(node, all.tensor);
  const ir::SymInt own = c.shape(all.tensor)[0], extent = max(own - 1, 1);
  const V last = position == ir::kAbsent ? c.ints({-1}, {1}) : position;
  const V place = place_of(context, last, count, count);
  const V places = c.iota(extent), fewer = c.minus(count, 1);
  const V from = c.where(c.binary("less", places, place), places, c.plus(places, 1));
  return moved_rows(all, [&](V rows) { return first_rows(node, rows_at(node, rows, from), fewer); });
}

V with_axis_at(NodeContext& node, V x, int64_t from, int64_t to) {
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < node.rank(x); ++d) {
    if (d != from) perm.push_back(d);
  }
  perm.insert(perm.begin() + to, from);
  return from == to ? x : Compose(node).transpose(x, std::move(perm));
}

namespace {

/// The extents of all elements along `axis`, i64 [elements, 1].
V extents_along(NodeContext& node, V table, int64_t axis) { return Compose(node).slice(table, 1, axis, 1); }

/// The most, or the least, that an element has along `axis`: i64 [1], `with` where there is none.
V extreme_extent(NodeContext& node, V table, int64_t axis, const char* op, const char* with) {
  Compose c(node);
  const V column = filled_along(node, extents_along(node, table, axis), 0, with);
  return c.reshape(c.reduce(op, column, {0}, false), {1});
}

/// The most that an element has along `axis`.
V largest_extent(NodeContext& node, V table, int64_t axis) {
  Compose c(node);
  if (c.shape(table)[0] == 0) return c.ints({0}, {1});
  return extreme_extent(node, table, axis, "reduce_max", "zero");
}

/// The extent that all elements have along `axis`; a run fails where they do not.
V even_extent(StructureContext& context, V table, int64_t axis) {
  Compose c(context.node);
  const V most = largest_extent(context.node, table, axis);
  if (c.shape(table)[0] < 2) return most;
  const V least = extreme_extent(context.node, table, axis, "reduce_min", "largest");
  const Check check{c.binary("less_equal", most, least),
                    "elements of {} to {} along axis " + std::to_string(axis) + " do not stack",
                    {least, most}};
  return c.add(most, zero_if(context.node, check));
}

/// The elements of each part close together: `x` has the parts along its axis `at`, their elements behind.
V packed(NodeContext& node, V x, V table, int64_t at, const ir::SymShape& shape) {
  Compose c(node);
  const V whole = c.reshape(filled_along(node, x, at, "zero"), shape);
  const ir::SymInt capacity = c.shape(x)[static_cast<size_t>(at) + 1];
  const V counts = filled_along(node, extents_along(node, table, at), 0, "zero");
  const V is_there = c.binary("less", c.iota(capacity, {1, capacity}), counts);
  return node.add_many("compress", {whole, c.reshape(is_there, {shape[static_cast<size_t>(at)]})},
                       {{"axis", at}})[0];
}

}  // namespace

V element_at(const StructureContext& context, const Binding& all, int64_t place) {
  Compose c(context.node);
  const V element = c.squeeze(c.slice(all.tensor, 0, place, 1), 0);
  return all.uneven.empty() ? element
                            : element_as(context, element, all.uneven, c.slice(all.extents, 0, place, 1));
}

V as_large_as_needed(const StructureContext& context, const Binding& all) {
  V x = all.tensor;
  for (const size_t axis : all.uneven) {
    const auto own = static_cast<int64_t>(axis);
    x = take_first(context.node, x, largest_extent(context.node, all.extents, own), own + 1);
  }
  return x;
}

V joined_stack(StructureContext& context, const Binding& all, int64_t axis, bool is_new) {
  NodeContext& node = context.node;
  const int64_t at = node.normalize_axis(axis, shown_rank(node, all.tensor) - (is_new ? 0 : 1));
  const V moved = with_axis_at(node, all.tensor, 0, at);
  ir::SymShape shape = node.type(moved).shape;
  if (!is_new) {
    const auto first = shape.begin() + at;
    *first = node.product(*first, *(first + 1));
    shape.erase(first + 1);
  }
  bool is_packed = false;
  std::vector<std::pair<int64_t, V>> counts;
  for (const size_t uneven : all.uneven) {
    const auto own = static_cast<int64_t>(uneven);
    is_packed = is_packed || (own == at && !is_new);
    if (own == at && !is_new) continue;
    counts.emplace_back(is_new && own >= at ? own + 1 : own, even_extent(context, all.extents, own));
  }
  V result = moved;
  if (is_packed) {
    result = packed(node, moved, all.extents, at, shape);
  } else if (!is_new) {
    result = data_dependent_reshape(node, moved, shape);
  }
  for (const auto& [counted, count] : counts) result = take_first(node, result, count, counted);
  return result;
}

namespace {

/// Whether elements that are joined along `axis`, or a new one for -1, may differ along another axis in a
/// run.
bool may_differ(StructureContext& context, const std::vector<V>& elements, int64_t axis) {
  NodeContext& node = context.node;
  const DataShape first = node.data_shape(elements[0]);
  const auto own = [&](const DataShape& shape) {
    std::vector<DataExtent> extents = shape.extents;
    std::erase_if(extents, [&](const DataExtent& extent) {
      return axis >= 0 && extent.axis == static_cast<size_t>(axis);
    });
    return extents;
  };
  return std::any_of(elements.begin(), elements.end(), [&](V element) {
    const DataShape shape = node.data_shape(element);
    const std::vector<DataExtent> a = own(first), b = own(shape);
    return first.is_known && shape.is_known &&
           !std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const DataExtent& x, const DataExtent& y) {
             return x.axis == y.axis && node.same_count(x.count, y.count);
           });
  });
}

}  // namespace

V joined_elements(StructureContext& context, const std::vector<V>& elements, int64_t axis, bool is_new) {
  NodeContext& node = context.node;
  Compose c(node);
  const int64_t at = node.normalize_axis(axis, shown_rank(node, elements[0]) + (is_new ? 1 : 0));
  if (may_differ(context, elements, is_new ? -1 : at)) {
    const Binding all{Binding::Kind::kSequence, ir::kAbsent, elements};
    return joined_stack(context, stacked_elements(context, all, "the parts"), axis, is_new);
  }
  std::vector<V> parts = of_one_width(node, elements);
  for (V& part : parts) part = is_new ? c.unsqueeze(part, at) : part;
  return data_dependent_concat(node, std::move(parts), at);
}

}  // namespace tensormill::frontend::onnx
