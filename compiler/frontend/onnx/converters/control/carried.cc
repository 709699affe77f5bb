#include "compiler/frontend/onnx/converters/control/carried.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr int64_t kMostElements = int64_t{1} << 31;  ///< along an axis that grows

}  // namespace

/// Whether an axis is as long as the largest that is handed on, and has no count of its own.
bool CarriedValues::Form::is_capacity(size_t axis) const {
  if (kind == Kind::kTable) return false;
  if (type.dtype == kString && axis + 1 == type.shape.size()) return true;
  return kind == Kind::kStack && axis > 0 &&
         std::find(uneven.begin(), uneven.end(), axis - 1) != uneven.end();
}

CarriedValues::Axis& CarriedValues::Form::along(size_t axis) {
  const auto found =
      std::find_if(axes.begin(), axes.end(), [&](const Axis& own) { return own.axis == axis; });
  if (found != axes.end()) return *found;
  axes.push_back({axis, 0, 0, is_capacity(axis)});
  return axes.back();
}

CarriedValues::CarriedValues(StructureContext& context, const std::vector<Binding>& initial,
                             std::optional<ir::SymInt> most_trips, bool binds)
    : context_(context), node_(context.node), most_trips_(std::move(most_trips)), binds_(binds) {
  for (size_t i = 0; i < initial.size(); ++i) {
    Form form;
    form.initial = initial[i];
    const bool is_tensor = initial[i].kind == Binding::Kind::kTensor;
    const bool is_stack = initial[i].kind == Binding::Kind::kStack && initial[i].present == ir::kAbsent;
    if (!is_tensor && !is_stack) {
      form.kind = Kind::kConstant;
    } else {
      const DataShape shape = node_.data_shape(initial[i].tensor);
      if (!shape.is_known)
        node_.unsupported("body", "the shape of value " + std::to_string(i) +
                                      " that it hands on depends on data in a way that cannot be told");
      form.kind = is_tensor ? Kind::kTensor : Kind::kStack;
      form.type = node_.type(initial[i].tensor);
      for (const DataExtent& extent : shape.extents) form.axes.push_back({extent.axis, 0, 0});
      form.uneven = initial[i].uneven;
    }
    forms_.push_back(std::move(form));
  }
  for (size_t i = 0; i < initial.size(); ++i) {
    if (!forms_[i].uneven.empty()) add_table(i);
  }
}

bool CarriedValues::has_table(const Form& form) const {
  return std::any_of(forms_.begin(), forms_.end(), [&](const Form& other) {
    return other.kind == Kind::kTable && &forms_[other.owner] == &form;
  });
}

void CarriedValues::add_table(size_t owner) {
  const Form& all = forms_[owner];
  Form table;
  table.kind = Kind::kTable;
  table.owner = owner;
  table.initial = tensor(all.initial.extents);
  if (all.kind == Kind::kRagged) {
    table.type = node_.type(table.initial.tensor);
    bind_axis(table, 0);
    forms_.push_back(std::move(table));
    return;
  }
  const bool is_text = all.type.dtype == kString;
  const auto rank = static_cast<int64_t>(all.type.shape.size()) - (is_text ? 2 : 1);
  table.type = {DType::kInt64, {all.type.shape[0], rank}};
  for (const Axis& axis : all.axes) {
    if (axis.axis == 0) table.axes.push_back(axis);
  }
  forms_.push_back(std::move(table));
}

ir::SymInt CarriedValues::extent_of(const Form& form, size_t axis) const {
  ir::SymInt extent = form.type.shape[axis];
  for (const Axis& own : form.axes) {
    if (own.axis == axis && own.growth != 0) extent += node_.product(own.growth, max(*most_trips_, 1));
  }
  return extent;
}

/// Counts that begin alike and grow alike are taken for one, until next() finds that they are not.
void CarriedValues::share_counts() {
  counts_.clear();
  for (Form& form : forms_) {
    for (Axis& axis : form.axes) {
      if (axis.is_capacity) continue;
      const bool is_empty = form.initial.tensor == ir::kAbsent;
      const V first = is_empty ? node_.int64_constant({0})
                               : *count_along(node_, form.initial.tensor, static_cast<int64_t>(axis.axis));
      const auto alike = [&](const Count& count) {
        return count.growth == axis.growth && node_.same_count(count.initial, first);
      };
      auto found = counts_are_apart_ ? counts_.end() : std::find_if(counts_.begin(), counts_.end(), alike);
      if (found == counts_.end()) found = counts_.insert(found, {first, axis.growth});
      axis.count = static_cast<size_t>(found - counts_.begin());
    }
  }
}

std::vector<V> CarriedValues::initial() {
  share_counts();
  std::vector<V> values;
  for (Form& form : forms_) {
    if (form.kind == Kind::kConstant) continue;
    values.push_back(largest(form, form.initial.tensor));
    if (!form.buffer) continue;
    form.first = std::exchange(values.back(), node_.extents(node_.type(values.back()).shape));
  }
  for (const Count& count : counts_) values.push_back(count.initial);
  for (const Form& form : forms_) {
    if (form.kind == Kind::kMaybe) values.push_back(presence(context_, form.initial));
  }
  return values;
}

/// x, or nothing at all, at the form's largest extents, zeros behind what there is.
V CarriedValues::largest(const Form& form, V x) {
  Compose c(node_);
  if (form.axes.empty()) return x == ir::kAbsent ? c.filled(form.type.dtype, form.type.shape, 0) : x;
  ir::SymShape extents = form.type.shape;
  for (const Axis& axis : form.axes) extents[axis.axis] = extent_of(form, axis.axis);
  if (x == ir::kAbsent || num_elements(c.shape(x)) == 0) return c.filled(form.type.dtype, extents, 0);
  x = filled_behind(node_, x, "zero");
  for (const Axis& axis : form.axes) {
    const auto at = static_cast<int64_t>(axis.axis);
    const ir::SymInt own = c.shape(x)[axis.axis], more = extents[axis.axis] - own;
    // What grows is a multiple of the iterations behind what it is.
    if (more > 0) x = longer_by(node_, x, more, at);
    if (more < 0) x = c.slice(x, at, 0, extents[axis.axis]);
  }
  return x;
}

/// How many values are handed on.
size_t CarriedValues::places() const {
  return static_cast<size_t>(std::count_if(forms_.begin(), forms_.end(),
                                           [](const Form& form) { return form.kind != Kind::kConstant; }));
}

std::vector<Binding> CarriedValues::bindings_of(const std::vector<V>& all, V trip,
                                                const std::function<bool(const Count&)>& is_whole) {
  std::vector<Binding> bindings;
  std::vector<BoundExtent> bound;
  const size_t values = places();
  size_t next = 0, flag = values + counts_.size();
  for (Form& form : forms_) {
    if (form.kind == Kind::kConstant) {
      bindings.push_back(form.initial);
      continue;
    }
    V x = all[next++];
    if (form.buffer) {
      take_bound(form, x, trip, bound);
      x = form.taken;
    }
    for (const Axis& axis : form.axes) {
      if (axis.is_capacity || is_whole(counts_[axis.count])) continue;
      x = take_zeroed(node_, x, all[values + axis.count], static_cast<int64_t>(axis.axis));
    }
    if (form.kind == Kind::kTable) {
      bindings[form.owner].extents = x;
      continue;
    }
    bindings.push_back(form.kind == Kind::kMaybe    ? maybe(x, all[flag++])
                       : form.kind == Kind::kStack  ? stack(x)
                       : form.kind == Kind::kRagged ? Binding{Binding::Kind::kRagged, x, {}}
                                                    : tensor(x));
    bindings.back().uneven = form.uneven;
  }
  return bindings;
}

std::vector<Binding> CarriedValues::arguments(const std::vector<V>& carried, V trip) {
  const size_t values = places();
  Compose c(node_);
  std::vector<V> all = carried;
  for (size_t i = 0; i < counts_.size(); ++i) {
    V& count = all[values + i];
    // Which next() finds to be so in every iteration; what takes the last element is told here.
    if (starts_with_some(counts_[i])) count = c.binary("max", count, c.ints({1}, {1}));
    counts_[i].carried = count;
  }
  return bindings_of(all, trip, [](const Count& /*count*/) { return false; });
}

std::vector<int64_t> CarriedValues::spare() const {
  std::vector<int64_t> spare;
  int64_t output = 1;  // behind the number of the iteration
  for (const Form& form : forms_) {
    if (form.kind == Kind::kConstant) continue;
    for (const Axis& axis : form.axes) {
      if (axis.growth > 0) {
        const std::vector<int64_t> own{output, static_cast<int64_t>(axis.axis), axis.growth};
        spare.insert(spare.end(), own.begin(), own.end());
      }
    }
    ++output;
  }
  return spare;
}

/// Whether the first iteration sees one element at least, and so does each where none takes any away.
bool CarriedValues::starts_with_some(const Count& count) const {
  const ir::KnownValue& first = node_.graph().value(count.initial).known;
  return !counts_may_shrink_ && first && first->element_as_int(0) > 0;
}

void CarriedValues::refuse(const std::string& name, const ir::ValueType& type, const Form& form) const {
  node_.unsupported("body", "its output " + name + " is " + ir::to_string(type) + ", handed on as " +
                                ir::to_string(form.type) +
                                ": that is implemented for known numbers of iterations alone; in others "
                                "extents may change by a fixed number in each iteration");
}

void CarriedValues::check_bound(int64_t growth, const std::string& name) const {
  if (growth > 0 && (!most_trips_ || most_trips_->hint() > kMostElements / growth))
    node_.unsupported("M", "the number of iterations has no bound while the model is compiled, and output " +
                               name + " of the body grows in each");
}

/// Whether `result` can be handed on in the form, which is changed to one in which it can.
bool CarriedValues::widen(Form& form, V result, const std::string& name) {
  const ir::ValueType& type = node_.type(result);
  const DataShape shape = node_.data_shape(result);
  if (!shape.is_known)
    node_.unsupported("body",
                      "the shape of its output " + name + " depends on data in a way that cannot be told");
  if (type.dtype != form.type.dtype || type.shape.size() != form.type.shape.size()) refuse(name, type, form);
  if (form.buffer && !shape.extents.empty())
    node_.unsupported("body", "extents of its output " + name + " are counted in a loop that binds them");
  bool fits = true;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    if (form.bound_axes.count(d) != 0) continue;
    const bool is_data_dependent = shape.along(static_cast<int64_t>(d)) != nullptr;
    fits = add_capacity(form, d, type.shape[d] - extent_of(form, d), is_data_dependent, name) && fits;
  }
  return fits;
}

/// Whether the form has capacity for `more` along an axis, of which a count may say how much is there. First
/// it gets as much as a value needs; where that is not enough, as much as it gets longer by in each
/// iteration.
bool CarriedValues::add_capacity(Form& form, size_t axis, const ir::SymInt& by, bool is_data_dependent,
                                 const std::string& name) {
  const bool is_same = by.is_constant() && by.hint() == 0;
  if (binds_ && !is_same && (form.buffer || !most_trips_ || !by.is_constant())) {
    bind_axis(form, axis);
    return false;
  }
  if (!by.is_constant()) refuse(name, form.type, form);
  const int64_t more = by.hint();
  const bool is_new =
      std::none_of(form.axes.begin(), form.axes.end(), [&](const Axis& own) { return own.axis == axis; });
  if (is_new && more == 0 && !is_data_dependent) return true;
  Axis& own = form.along(axis);
  if (more <= own.growth) return own.is_capacity || !is_new;
  if (own.growth != 0) refuse(name, form.type, form);
  if (own.raised == 0) {
    own.raised = more;
    form.type.shape[axis] += more;
  } else {
    check_bound(more, name);
    form.type.shape[axis] -= own.raised;
    own.growth = more;
  }
  return false;
}

/// Whether the value is optional, and its form another one from now on.
bool CarriedValues::add_optional(Form& form, const Binding& result) {
  const auto is_optional = [](const Binding& binding) {
    return binding.kind == Binding::Kind::kNone || binding.kind == Binding::Kind::kMaybe;
  };
  const V before = held(form.initial), after = held(result);
  if ((!is_optional(form.initial) && !is_optional(result)) || (before == ir::kAbsent && after == ir::kAbsent))
    return false;
  form.type = node_.type(before == ir::kAbsent ? after : before);
  form.kind = Kind::kMaybe;
  return true;
}

/// A list that the body changes is a stack from now on, or ragged.
void CarriedValues::add_sequence(Form& form, const Binding& result, const std::string& name,
                                 const BodySymbols& body) {
  if (binds_ && add_ragged(form, result, name, body)) return;
  const std::string what = "the sequence " + name;
  const std::optional<ElementForm> before = element_form(context_, form.initial, what),
                                   after = element_form(context_, result, what);
  if (!before && !after) node_.unsupported("body", what + " has no element whose type is known");
  const ElementForm elements = before && after ? common_form(context_, *before, *after, what)
                               : before        ? *before
                                               : *after;
  form.type = elements.type;
  form.type.shape.insert(form.type.shape.begin(), static_cast<int64_t>(form.initial.elements.size()));
  form.uneven = elements.uneven;
  if (before) form.initial = in_form(context_, form.initial, elements);
  form.kind = Kind::kStack;
  if (binds_) return bind_axis(form, 0);
  const bool is_list = result.kind == Binding::Kind::kSequence;
  const auto listed = static_cast<int64_t>(result.elements.size());
  const ir::SymInt length = is_list ? ir::SymInt(listed) : node_.type(result.tensor).shape[0];
  static_cast<void>(add_capacity(form, 0, length - form.type.shape[0], !is_list, name));
}

/// A sequence in the form of a stack that is handed on, which gets a table where it needs one.
Binding CarriedValues::stack_as(Form& form, const Binding& result, const std::string& name) {
  const std::string what = "the sequence " + name;
  ElementForm own{form.type, form.uneven};
  own.type.shape.erase(own.type.shape.begin());
  for (size_t d = 0; d < own.type.shape.size(); ++d) own.type.shape[d] = extent_of(form, d + 1);
  const std::optional<ElementForm> given = element_form(context_, result, what);
  if (!given) {
    // As long as the other, of which nothing is there.
    Compose c(node_);
    const auto nothing = [&](V rows) { return take_first(node_, rows, node_.int64_constant({0}), 0); };
    Binding none = stack(nothing(largest(form, ir::kAbsent)));
    none.uneven = form.uneven;
    const auto rank = static_cast<int64_t>(form.type.shape.size()) - (form.type.dtype == kString ? 2 : 1);
    if (!none.uneven.empty())
      none.extents = nothing(c.filled(DType::kInt64, {c.shape(none.tensor)[0], rank}, 0));
    return none;
  }
  const ElementForm both = common_form(context_, own, *given, what);
  if (both.uneven != form.uneven) {
    form.uneven = both.uneven;
    if (form.initial.tensor != ir::kAbsent) {
      ElementForm first = both;
      first.type.shape = ir::SymShape(form.type.shape.begin() + 1, form.type.shape.end());
      form.initial = in_form(context_, form.initial, first);
    }
  }
  return in_form(context_, result, both);
}

}  // namespace tensormill::frontend::onnx
