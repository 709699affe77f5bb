// What an iteration of a loop hands to the next one: results in the forms of what it was handed, and whether
// the counts and extents that were taken for one are.
#include <algorithm>

#include "compiler/frontend/onnx/converters/control/carried.h"
#include "compiler/frontend/onnx/converters/control/ragged.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

bool is_same(const Binding& a, const Binding& b) {
  return a.kind == b.kind && a.tensor == b.tensor && a.elements == b.elements;
}

/// What a count is beyond `start`, in each run; nothing where that cannot be told.
std::optional<int64_t> beyond(NodeContext& node, V count, V start) {
  int64_t total = 0, found = 0;
  std::vector<V> open{count};
  while (!open.empty()) {
    const V id = open.back();
    open.pop_back();
    const ir::Value& value = node.graph().value(id);
    if (id == start) {
      ++found;
      continue;
    }
    if (value.known) {
      total += value.known->element_as_int(0);
      continue;
    }
    if (value.producer == ir::kAbsent) return std::nullopt;
    const ir::Node& producer = node.graph().node(value.producer);
    if (producer.op == "take_first" && id == producer.outputs[1]) {
      open.push_back(producer.inputs[1]);
    } else if (producer.op == "add" || producer.op == "identity" || producer.op == "reshape") {
      open.insert(open.end(), producer.inputs.begin(), producer.inputs.end());
    } else {
      return std::nullopt;
    }
  }
  return found == 1 ? std::optional(total) : std::nullopt;
}

}  // namespace

/// Whether the result is a constant as the form has it; where it is not, the form is a sequence from now on.
bool CarriedValues::take_constant(Form& form, const Binding& result, const std::string& name,
                                  const BodySymbols& body) {
  if (is_same(result, form.initial)) return true;
  const bool is_optional = result.present != ir::kAbsent || form.initial.present != ir::kAbsent;
  if (is_optional || !is_sequence(result) || !is_sequence(form.initial))
    node_.unsupported("body",
                      "its output " + name +
                          " is no tensor, and changes from iteration to iteration: served are sequences and "
                          "optional values of one type");
  add_sequence(form, result, name, body);
  return false;
}

/// Adds the result to what is handed on. Whether it fits its form, which is another one from now on where it
/// does not.
bool CarriedValues::take_result(size_t index, const Binding& result, const std::string& name,
                                const BodySymbols& body, NextValues& next) {
  Form& form = forms_[index];
  if (form.kind == Kind::kMaybe) {
    next.flags.push_back(presence(context_, result));
    const V x = held(result);
    next.values.push_back(x == ir::kAbsent ? largest(form, x) : x);
    return widen(form, next.values.back(), name);
  }
  if (!is_same(result, form.initial) && add_optional(form, result)) return false;
  if (form.kind == Kind::kConstant) return take_constant(form, result, name, body);
  const bool holds_sequence = form.kind == Kind::kStack || form.kind == Kind::kRagged;
  const bool is_of_kind = holds_sequence
                              ? is_sequence(result) && result.present == ir::kAbsent
                              : result.kind == Binding::Kind::kTensor && result.tensor != ir::kAbsent;
  if (!is_of_kind)
    node_.unsupported("body", "its output " + name + " is of another kind than what it is handed");
  if (!holds_sequence) {
    next.values.push_back(result.tensor);
    return widen(form, result.tensor, name);
  }
  const Binding own = form.kind == Kind::kStack
                          ? stack_as(form, result, name)
                          : ragged_of(context_, result, form.uneven.front(), form.initial.tensor, name);
  next.values.push_back(own.tensor);
  next.tables[index] = own.extents;
  return widen(form, own.tensor, name);
}

/// Adds the tables of the sequences that have one. Whether all that need one have it, and fit it.
bool CarriedValues::take_tables(const std::vector<std::string>& names, NextValues& next) {
  bool fits = true;
  for (Form& form : forms_) {
    if (form.kind != Kind::kTable) continue;
    next.values.push_back(next.tables[form.owner]);
    fits = widen(form, next.values.back(), names[form.owner]) && fits;
  }
  return fits;
}

/// Notes what becomes of the counts of `value`; whether those that were taken for one are.
bool CarriedValues::take_counts(const Form& form, V value) {
  bool agree = true;
  for (const Axis& axis : form.axes) {
    if (axis.is_capacity) continue;
    const V count = *count_along(node_, value, static_cast<int64_t>(axis.axis));
    V& next = counts_[axis.count].next;
    if (next == ir::kAbsent) next = count;
    if (next != count && !node_.same_count(next, count)) agree = false;
  }
  counts_are_apart_ = counts_are_apart_ || !agree;
  return agree;
}

/// Whether each count that starts with some stays so.
bool CarriedValues::counts_stay() {
  const bool may_shrink = std::any_of(counts_.begin(), counts_.end(), [&](const Count& count) {
    return starts_with_some(count) && beyond(node_, count.next, count.carried).value_or(-1) < 0;
  });
  counts_may_shrink_ = counts_may_shrink_ || may_shrink;
  return !may_shrink;
}

std::optional<std::vector<V>> CarriedValues::next(const std::vector<Binding>& results,
                                                  const std::vector<std::string>& names,
                                                  const BodySymbols& body) {
  NextValues next;
  next.tables.assign(results.size(), ir::kAbsent);
  bool fits = true;
  for (size_t i = 0; i < results.size(); ++i) fits = take_result(i, results[i], names[i], body, next) && fits;
  for (size_t i = 0; i < results.size(); ++i) {
    if (forms_[i].uneven.empty() || has_table(forms_[i])) continue;
    add_table(i);
    fits = false;
  }
  if (!fits || !take_tables(names, next)) return std::nullopt;
  std::vector<BoundExtent> bound;
  auto value = next.values.begin();
  for (const Form& form : forms_) {
    if (form.kind == Kind::kConstant) continue;
    if (form.buffer) {
      fits = take_extents(form, *value, bound) && fits;
      // What the iteration is handed is out of the buffer before.
      *value = node_.add("set_growing", {*value, form.taken}, {{"buffer", *form.buffer}});
    } else {
      fits = take_counts(form, *value) && fits;
      *value = largest(form, *value);
    }
    ++value;
  }
  fits = counts_stay() && fits;
  if (!fits) return std::nullopt;
  for (const Count& count : counts_) next.values.push_back(count.next);
  next.values.insert(next.values.end(), next.flags.begin(), next.flags.end());
  return next.values;
}

/// Whether it is larger by its growth in each iteration.
bool CarriedValues::is_steady(const Count& count) const {
  return node_.graph().value(count.initial).known && beyond(node_, count.next, count.carried) == count.growth;
}

std::vector<Binding> CarriedValues::results(const std::vector<V>& final, V trips, bool is_exact) {
  const bool is_known = is_exact && !counts_.empty() && is_proven(ir::Relation::kLess, 0, *most_trips_);
  return bindings_of(final, trips, [&](const Count& count) { return is_known && is_steady(count); });
}

}  // namespace tensormill::frontend::onnx
