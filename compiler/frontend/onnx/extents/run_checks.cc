#include "compiler/frontend/onnx/extents/run_checks.h"

#include <algorithm>
#include <map>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// `holds`, or that nothing has to: in a branch that is not taken.
V unless_left(NodeContext& context, V holds) {
  Compose c(context);
  const V guard = context.guard();
  return guard == ir::kAbsent ? holds : c.binary("or", holds, c.unary("not", guard));
}

V required(NodeContext& context, V number, const Check& check) {
  std::vector<V> operands{number, unless_left(context, check.holds)};
  operands.insert(operands.end(), check.numbers.begin(), check.numbers.end());
  ir::Attrs attrs{{"what", check.what}};
  if (check.is_of_extents) attrs.set("of_extents", int64_t{1});
  return context.add("require", std::move(operands), std::move(attrs));
}

}  // namespace

V zero_if(NodeContext& context, const Check& check) {
  Compose c(context);
  const V zero = c.ints({0}, {1});
  // No other number, whatever a kernel that has it as an operand is tried with: a place by it is always
  // there.
  return c.binary("min", required(context, zero, check), zero);
}

V value_if(NodeContext& context, V x, const Check& check) {
  const ir::ValueType type = context.type(x);
  const bool is_number = type.dtype != DType::kBool && type.dtype != kString;
  if (is_number && is_proven(ir::Relation::kEqual, num_elements(type.shape), 1) &&
      context.data_shape(x).extents.empty())
    return required(context, x, check);
  return value_with(context, x, zero_if(context, check));
}

V value_with(NodeContext& context, V x, V zero) {
  Compose c(context);
  return c.squeeze(c.gather(c.unsqueeze(x, 0), zero, 0), 0);
}

V checked_number(NodeContext& context, V number, V holds, const std::string& what) {
  return required(context, number, {holds, what});
}

namespace {

/// Axes that meet.
class Meeting {
public:
  Meeting(NodeContext& context, std::vector<V>& operands, const std::vector<MeetingAxis>& axes)
      : context_(context), c_(context), operands_(operands) {
    for (const MeetingAxis& axis : axes) {
      const ir::SymInt extent = c_.shape(operands[axis.operand])[static_cast<size_t>(axis.axis)];
      const DataShape shape = context.data_shape(operands[axis.operand]);
      is_known_ = is_known_ && shape.is_known;
      const DataExtent* data = shape.along(axis.axis);
      if (data == nullptr) {
        fixed_.push_back(extent);
      } else {
        data_axes_.push_back({axis.operand, axis.axis, data->count, extent});
      }
    }
  }

  void make_same() {
    if (!is_known_ || data_axes_.empty()) return;
    if (!fixed_.empty()) {
      for (const DataAxis& axis : data_axes_) meet_fixed(axis, fixed_.front(), false);
    } else {
      share_count();
    }
  }

  void make_fixed(const ir::SymInt& extent) {
    if (!is_known_) return;
    for (const DataAxis& axis : data_axes_) meet_fixed(axis, extent, false);
  }

  void make_broadcast() {
    if (!is_known_ || data_axes_.empty()) return;
    const auto wide =
        std::find_if(fixed_.begin(), fixed_.end(), [](const ir::SymInt& extent) { return extent != 1; });
    if (wide != fixed_.end()) {
      for (const DataAxis& axis : data_axes_) meet_fixed(axis, *wide, true);
      return;
    }
    if (are_same()) {
      share_count();
    } else {
      spread();
    }
  }

private:
  /// An axis of an operand whose extent data decides.
  struct DataAxis {
    size_t operand = 0;
    int64_t axis = 0;
    V count = ir::kAbsent;
    int64_t capacity = 0;
  };

  std::string meets(const DataAxis& axis) const {
    return "axis " + std::to_string(axis.axis - context_.rank(operands_[axis.operand])) + " of an operand";
  }

  bool are_same() const {
    return std::all_of(data_axes_.begin(), data_axes_.end(), [&](const DataAxis& axis) {
      return context_.same_count(axis.count, data_axes_[0].count);
    });
  }

  static bool has_less_capacity(const DataAxis& a, const DataAxis& b) { return a.capacity < b.capacity; }

  /// The count of one of them, in the least capacity.
  void share_count() {
    const DataAxis least = *std::min_element(data_axes_.begin(), data_axes_.end(), &has_less_capacity);
    const V count = least.count;
    const int64_t capacity = least.capacity;
    for (const DataAxis& axis : data_axes_) {
      const bool is_own = context_.same_count(axis.count, count);
      if (is_own && axis.capacity == capacity) continue;
      const Check check{c_.binary("equal", axis.count, count),
                        meets(axis) + " of {} elements meets one of {}",
                        {axis.count, count}};
      const V zero = is_own ? c_.ints({0}, {1}) : zero_if(context_, check);
      operands_[axis.operand] =
          take_first(context_, at_places(axis, capacity, ir::kAbsent, zero), count, axis.axis);
    }
  }

  /// Whether as many elements as a fixed extent may be there, or one that stands for all.
  bool may_be(const DataAxis& axis, const ir::SymInt& extent, bool spreads) const {
    return spreads || axis.capacity >= extent;
  }

  /// As many elements as there is capacity for in `extent`: those of the axis, or, where it `is_one`, the
  /// only one for each. `zero`: of zero_if.
  V at_places(const DataAxis& axis, const ir::SymInt& extent, V is_one, V zero) {
    V x = operands_[axis.operand];
    if (axis.capacity == 0) x = longer_by(context_, x, 1, axis.axis);
    const int64_t last = std::max<int64_t>(axis.capacity, 1) - 1;
    V places = c_.binary("min", c_.iota(extent), c_.dims({last}, {1}));
    if (is_one != ir::kAbsent) places = c_.where(is_one, c_.ints({0}, {1}), places);
    return c_.gather(filled_along(context_, x, axis.axis, "zero"), c_.add(places, zero), axis.axis);
  }

  void meet_fixed(const DataAxis& axis, const ir::SymInt& extent, bool spreads) {
    if (!may_be(axis, extent, spreads)) return;
    const V fixed = c_.dims({extent}, {1});
    V holds = c_.binary("equal", axis.count, fixed), is_one = ir::kAbsent;
    if (spreads) {
      is_one = c_.binary("equal", axis.count, c_.ints({1}, {1}));
      holds = c_.binary("or", is_one, holds);
    }
    const Check check{holds, meets(axis) + " of {} elements meets one of {}", {axis.count, fixed}};
    operands_[axis.operand] = at_places(axis, extent, is_one, zero_if(context_, check));
  }

  /// One element along some axes stands for all of the others.
  void spread() {
    const V one = c_.ints({1}, {1});
    V all = data_axes_[0].count;
    int64_t capacity = 0;
    for (const DataAxis& axis : data_axes_) {
      all = c_.where(c_.binary("equal", all, one), axis.count, all);
      capacity = std::max(capacity, axis.capacity);
    }
    V zero = c_.ints({0}, {1});
    for (const DataAxis& axis : data_axes_) {
      const V fits =
          c_.binary("or", c_.binary("equal", axis.count, one), c_.binary("equal", axis.count, all));
      const Check check{fits, meets(axis) + " of {} elements meets one of {}", {axis.count, all}};
      zero = c_.add(zero, zero_if(context_, check));
    }
    for (const DataAxis& axis : data_axes_) {
      const V x = at_places(axis, capacity, c_.binary("equal", axis.count, one), zero);
      operands_[axis.operand] = take_first(context_, x, all, axis.axis);
    }
  }

  NodeContext& context_;
  Compose c_;
  std::vector<V>& operands_;
  std::vector<DataAxis> data_axes_;
  ir::SymShape fixed_;
  bool is_known_ = true;
};

bool are_some_data_dependent(const NodeContext& context, const std::vector<V>& operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](V x) { return x != ir::kAbsent && !context.data_shape(x).extents.empty(); });
}

bool are_shapes_known(const NodeContext& context, const std::vector<V>& operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [&](V x) { return x == ir::kAbsent || context.data_shape(x).is_known; });
}

/// The axes that stand at one place from the end, by that place.
std::map<size_t, std::vector<MeetingAxis>> meeting_axes(const NodeContext& context,
                                                        const std::vector<V>& operands) {
  std::map<size_t, std::vector<MeetingAxis>> meeting;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == ir::kAbsent) continue;
    const int64_t rank = context.rank(operands[i]);
    for (int64_t axis = 0; axis < rank; ++axis)
      meeting[static_cast<size_t>(rank - axis)].push_back({i, axis});
  }
  return meeting;
}

}  // namespace

void make_same(NodeContext& context, std::vector<V>& operands, const std::vector<MeetingAxis>& axes) {
  Meeting(context, operands, axes).make_same();
}

V with_extent(NodeContext& context, V x, int64_t axis, const ir::SymInt& extent) {
  std::vector<V> operands{x};
  Meeting(context, operands, {{0, axis}}).make_fixed(extent);
  return operands[0];
}

void make_broadcast(NodeContext& context, std::vector<V>& operands, const std::vector<MeetingAxis>& axes) {
  Meeting(context, operands, axes).make_broadcast();
}

std::vector<V> with_same_counts(NodeContext& context, std::vector<V> operands,
                                std::optional<int64_t> joined) {
  if (!are_some_data_dependent(context, operands) || !are_shapes_known(context, operands)) return operands;
  for (auto& [behind, axes] : meeting_axes(context, operands)) {
    std::erase_if(axes, [&](const MeetingAxis& each) {
      const V x = operands[each.operand];
      return each.axis == joined || context.type(x).shape[static_cast<size_t>(each.axis)] == 1 ||
             context.data_shape(x).along(each.axis) == nullptr;
    });
    make_same(context, operands, axes);
  }
  return operands;
}

std::vector<V> dynamic_broadcast(NodeContext& context, std::vector<V> operands, size_t others) {
  if (!are_some_data_dependent(context, operands) || !are_shapes_known(context, operands)) return operands;
  for (const auto& [behind, axes] : meeting_axes(context, operands)) {
    if (behind > others) make_broadcast(context, operands, axes);
  }
  return operands;
}

}  // namespace tensormill::frontend::onnx
