#include "compiler/frontend/onnx/extents/bounds.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/predicates.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/steps/host_steps.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Bounds of the integers of small values, by the nodes that they come from.
class Bounds {
public:
  using Numbers = BoundedInts;

  explicit Bounds(const ir::Graph& graph) : graph_(graph) {}

  Numbers of(V id) {
    const auto seen = seen_.find(id);
    if (seen != seen_.end()) return seen->second;
    if (depth_ == kDeepest) return std::nullopt;
    ++depth_;
    Numbers found = look_at(id);
    --depth_;
    return seen_.emplace(id, std::move(found)).first->second;
  }

private:
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                           kMost = std::numeric_limits<int64_t>::max();
  static constexpr int kDeepest = 1000;  ///< nodes in a row; what is behind more of them is not known
  struct Interval {
    int64_t least = kLeast, most = kMost;
    bool is_bounded() const { return least != kLeast && most != kMost; }
  };

  bool is_one_element(V id) const {
    return is_proven(ir::Relation::kEqual, num_elements(graph_.value(id).type.shape), 1);
  }

  Numbers look_at(V id) {
    const ir::ValueType& type = graph_.value(id).type;
    if (!type.shape.is_constant()) return std::nullopt;
    if (is_float(type.dtype) || type.dtype == DType::kBool || type.shape.size() > 1) return std::nullopt;
    if (num_elements(type.shape) > ir::kMaxKnownElements) return std::nullopt;
    // Of none nothing is to be known.
    if (num_elements(type.shape) == 0) return Numbers(std::vector<BoundedInt>());
    if (graph_.value(id).known) return listed(graph_.value(id).known);
    return by_producer(id);
  }

  Numbers by_producer(V id) {
    if (graph_.value(id).producer == ir::kAbsent) return std::nullopt;
    const ir::Node& node = graph_.node(graph_.value(id).producer);
    if (const Numbers counts = count_of(node, id)) return counts;
    if (const Numbers moved = moved_by(node)) return moved;
    if (!is_one_element(id)) return std::nullopt;
    const Interval found = interval_of(node);
    if (found.most == kMost) return std::nullopt;
    // The least of several is a number at some extents alone.
    const bool is_sum = node.op == "add" || node.op == "sub" || node.op == "mul" || node.op == "div";
    if (is_sum && are_known(node)) return Numbers({{found.most, ir::kAbsent, found.most}});
    return Numbers({{found.most, id, found.least}});
  }

  bool are_known(const ir::Node& node) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](V input) {
      const Numbers numbers = of(input);
      return numbers && numbers->size() == 1 && numbers->front().is_known();
    });
  }

  /// Extents are none: of those no interval is made.
  static Interval interval(const BoundedInt& number) {
    if (!number.most.is_constant() || !number.least.is_constant()) return {};
    return {number.least.hint(), number.most.hint()};
  }

  const Tensor* known_of(V id) const {
    const ir::KnownValue& known = graph_.value(id).known;
    return known ? &*known : nullptr;
  }

  static Numbers listed(const ir::KnownValue& value) {
    std::vector<BoundedInt> numbers;
    for (const ir::SymInt& number : value.elements()) numbers.push_back({number, ir::kAbsent, number});
    return numbers;
  }

  /// What the last output of a node counts.
  Numbers count_of(const ir::Node& node, V id) {
    const std::vector<std::optional<size_t>> axes = ops::data_axes(node);
    if (axes.empty() || id != node.outputs.back()) return std::nullopt;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i]) continue;
      const ir::SymInt most = graph_.value(node.outputs[i]).type.shape[*axes[i]];
      const int64_t least = node.op == "take_first" ? least_of(node.inputs[1]) : 0;
      return Numbers({{most, id, least <= 0 ? ir::SymInt(0) : min(least, most)}});
    }
    return std::nullopt;
  }

  /// Nodes whose elements are elements of their operands.
  Numbers moved_by(const ir::Node& node) {
    if (node.op == "concat") {
      std::vector<BoundedInt> all;
      for (const V part : node.inputs) {
        const Numbers own = of(part);
        if (!own) return std::nullopt;
        all.insert(all.end(), own->begin(), own->end());
      }
      return all;
    }
    const bool same = node.op == "identity" || node.op == "cast" || node.op == "reshape";
    if (same) return of(node.inputs[0]);
    if (node.op == "where") return chosen_by(node);
    if (node.op != "gather" && node.op != "slice") return std::nullopt;
    const Numbers from = of(node.inputs[0]);
    if (!from) return std::nullopt;
    std::vector<BoundedInt> chosen;
    for (const int64_t at : positions(node, static_cast<int64_t>(from->size()))) {
      if (at < 0 || at >= static_cast<int64_t>(from->size())) return std::nullopt;
      chosen.push_back((*from)[static_cast<size_t>(at)]);
    }
    return chosen;
  }

  /// Elements of one side or the other, where it is known which.
  Numbers chosen_by(const ir::Node& node) {
    const std::vector<std::optional<bool>> conditions =
        predicates_of(graph_, node.inputs[0], [this](V id) { return of(id); });
    const Numbers yes = of(node.inputs[1]), no = of(node.inputs[2]);
    const auto count = static_cast<size_t>(num_elements(graph_.value(node.outputs[0]).type.shape));
    std::vector<BoundedInt> chosen;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<bool> condition = conditions.size() == 1 ? conditions[0] : conditions.at(i);
      const Numbers& side = condition.value_or(false) ? yes : no;
      if (!condition || !side || (side->size() != count && side->size() != 1)) return std::nullopt;
      chosen.push_back((*side)[side->size() == 1 ? 0 : i]);
    }
    return chosen;
  }

  /// Which elements a gather or slice of a vector takes; one that is not there where that is not known.
  std::vector<int64_t> positions(const ir::Node& node, int64_t extent) const {
    std::vector<int64_t> result;
    if (node.op == "gather") {
      const Tensor* indices = known_of(node.inputs[1]);
      if (indices == nullptr) return {-1};
      for (int64_t i = 0; i < indices->num_elements(); ++i) {
        const int64_t at = indices->element_as_int(i);
        result.push_back(at < 0 ? at + extent : at);
      }
      return result;
    }
    for (int64_t i = 0; i < node.attrs.ints_of("extents")[0]; ++i)
      result.push_back(node.attrs.ints_of("starts")[0] + i * node.attrs.ints_of("steps")[0]);
    return result;
  }

  /// What a node of one element can be.
  Interval interval_of(const ir::Node& node) {
    // What else such a node reads is no bound of it.
    if (node.op == "gather" || node.op == "require") return operand(node.inputs[0], false);
    std::vector<Interval> in;
    for (const V input : node.inputs) in.push_back(operand(input, node.op == "reduce_min"));
    if (node.op == "reduce_min" || node.op == "reduce_max") return in[0];
    if (node.op == "where") return either(in[1], in[2]);
    if (node.op == "max") return {std::max(in[0].least, in[1].least), std::max(in[0].most, in[1].most)};
    if (node.op == "min") return lesser(in[0], in[1]);
    Interval result;
    bool is_over = !std::all_of(in.begin(), in.end(), [](const Interval& each) { return each.is_bounded(); });
    if (is_over) return {};
    if (node.op == "add") {
      is_over = __builtin_add_overflow(in[0].least, in[1].least, &result.least) ||
                __builtin_add_overflow(in[0].most, in[1].most, &result.most);
    } else if (node.op == "sub") {
      is_over = __builtin_sub_overflow(in[0].least, in[1].most, &result.least) ||
                __builtin_sub_overflow(in[0].most, in[1].least, &result.most);
    } else if (node.op == "mul" && in[0].least >= 0 && in[1].least >= 0) {
      is_over = __builtin_mul_overflow(in[0].least, in[1].least, &result.least) ||
                __builtin_mul_overflow(in[0].most, in[1].most, &result.most);
    } else if (node.op == "div" && in[0].least >= 0 && in[1].least > 0 && in[1].least == in[1].most) {
      result.least = in[0].least / in[1].most;
      result.most = in[0].most / in[1].most;
    } else {
      is_over = true;
    }
    return is_over ? Interval{} : result;
  }

  static Interval either(const Interval& a, const Interval& b) {
    return {std::min(a.least, b.least), std::max(a.most, b.most)};
  }

  /// What the larger of a number that is not known and one that is cannot be below.
  int64_t least_known(V id) const {
    const V producer = id == ir::kAbsent ? ir::kAbsent : graph_.value(id).producer;
    if (producer == ir::kAbsent || graph_.node(producer).op != "max") return kLeast;
    int64_t least = kLeast;
    for (const V input : graph_.node(producer).inputs) {
      const Tensor* known = known_of(input);
      if (known != nullptr && !is_float(known->dtype()) && known->num_elements() == 1)
        least = std::max(least, known->element_as_int(0));
    }
    return least;
  }

  static Interval lesser(const Interval& a, const Interval& b) {
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
  }

  /// Of all elements of an operand, or of their least.
  Interval operand(V id, bool of_least) {
    const Numbers numbers = id == ir::kAbsent ? std::nullopt : of(id);
    if (!numbers) return {least_known(id), kMost};
    if (numbers->empty()) return {};
    std::optional<Interval> all;
    for (const BoundedInt& number : *numbers) {
      const Interval one = interval(number);
      if (!all) {
        all = one;
      } else if (of_least) {
        all = lesser(*all, one);
      } else {
        all = either(*all, one);
      }
    }
    return *all;
  }

  /// What no element is below.
  int64_t least_of(V id) {
    const Numbers numbers = of(id);
    if (!numbers) return least_known(id);
    int64_t least = numbers->empty() ? kLeast : kMost;
    for (const BoundedInt& each : *numbers) least = std::min(least, interval(each).least);
    return least;
  }

  const ir::Graph& graph_;
  std::map<V, Numbers> seen_;
  int depth_ = 0;
};

}  // namespace

BoundedInts bounds_of(const NodeContext& context, V value) { return Bounds(context.graph()).of(value); }

std::optional<ir::SymShape> static_ints(const NodeContext& context, V value) {
  const BoundedInts bounds = bounds_of(context, value);
  if (!bounds) return std::nullopt;
  ir::SymShape numbers;
  for (const BoundedInt& each : *bounds) {
    if (!each.is_known()) return std::nullopt;
    numbers.push_back(each.most);
  }
  return numbers;
}

namespace {

std::vector<BoundedInt> bounded_values(NodeContext& context, V value, const char* what,
                                       std::optional<int64_t> low = std::nullopt) {
  if (context.binds_symbols() && !is_float(context.type(value).dtype)) {
    std::vector<BoundedInt> numbers;
    for (const ir::SymInt& number : context.symbolic_ints(value, what, low))
      numbers.push_back({number, ir::kAbsent, number});
    return numbers;
  }
  if (const BoundedInts found = bounds_of(context, value)) return *found;
  const ir::KnownValue& known = context.known_symbolic(value, what);
  if (is_float(context.type(value).dtype)) context.invalid(std::string(what) + " is no integer");
  std::vector<BoundedInt> numbers;
  for (const ir::SymInt& number : known.elements()) numbers.push_back({number, ir::kAbsent, number});
  return numbers;
}

}  // namespace

BoundedInt bounded_value(NodeContext& context, V value, const char* what, std::optional<int64_t> low) {
  return bounded_values(context, value, what, low).at(0);
}

std::vector<BoundedInt> bounded_ints(NodeContext& context, size_t index, const char* what) {
  const ir::ValueType& type = context.type(context.input(index));
  if (type.dtype == kString) context.invalid(std::string(what) + " is " + ir::to_string(type));
  return bounded_values(context, context.input(index), what);
}

BoundedInt bounded_int(NodeContext& context, size_t index, const char* what) {
  const std::vector<BoundedInt> numbers = bounded_ints(context, index, what);
  if (numbers.size() != 1)
    context.invalid(std::string(what) + " has " + std::to_string(numbers.size()) + " elements, expected 1");
  return numbers[0];
}

BoundedShape bounded_shape(NodeContext& context, size_t index) {
  BoundedShape shape;
  for (const BoundedInt& extent : bounded_ints(context, index, "shape")) {
    if (!extent.is_known()) shape.open.emplace_back(shape.extents.size(), extent);
    shape.extents.push_back(extent.most);
  }
  return shape;
}

bool is_count_of(NodeContext& context, const BoundedInt& number, V x, int64_t axis) {
  const DataShape shape = context.data_shape(x);
  const DataExtent* data = shape.along(axis);
  return data != nullptr && context.same_count(data->count, as_count(context, number));
}

V as_count(NodeContext& context, const BoundedInt& number) {
  if (number.is_known()) return context.extents({number.most});
  Compose c(context);
  V count = number.count;
  if (num_elements(c.shape(count)) != 1) count = c.slice(count, 0, number.element, 1);
  return c.reshape(c.cast(count, DType::kInt64), {1});
}

BoundedInt capped_int(NodeContext& context, size_t index, const char* what, const ir::SymInt& extent) {
  if (context.binds_symbols()) return bounded_int(context, index, what);
  const V value = context.input(index);
  const bool is_one = num_elements(context.type(value).shape) == 1 && !is_float(context.type(value).dtype);
  if (is_one && !context.is_computable(value) && !bounds_of(context, value)) return {extent, value, 0};
  return bounded_int(context, index, what);
}

}  // namespace tensormill::frontend::onnx
