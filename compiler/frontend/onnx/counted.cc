#include "compiler/frontend/onnx/counted.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/host_steps.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

V filled(NodeContext& context, V x, const DataExtent& data, const char* with) {
  Compose c(context);
  const DType dtype = c.dtype(x);
  const V number = dtype == DType::kBool ? c.cast(x, DType::kUInt8) : x;
  const V result = context.add("fill_behind", {number, data.count},
                               {{"axis", static_cast<int64_t>(data.axis)}, {"with", std::string(with)}});
  return c.cast(result, dtype);
}

/// Bounds of the integers of small values, by the nodes that they come from.
class Bounds {
public:
  using Numbers = std::optional<std::vector<BoundedInt>>;

  /// `is_sample`: of two bounds the number, since the less of them is no formula of a free extent.
  Bounds(const ir::Graph& graph, bool is_sample) : graph_(graph), is_sample_(is_sample) {}

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
  static constexpr double kExact = 0x1p53;  ///< integers up to it are floats
  static constexpr int kDeepest = 1000;     ///< nodes in a row; what is behind more of them is not known
  struct Interval {
    int64_t least = kLeast, most = kMost;
    bool is_number = false;  ///< `most` is one of the model's
  };

  Numbers look_at(V id) {
    const ir::ValueType& type = graph_.value(id).type;
    if (is_float(type.dtype) || type.dtype == DType::kBool || type.shape.size() > 1) return std::nullopt;
    if (num_elements(type.shape) > ir::kMaxKnownElements) return std::nullopt;
    if (const Tensor* known = known_of(id)) return listed(*known);
    if (graph_.value(id).producer == ir::kAbsent) return std::nullopt;
    const ir::Node& node = graph_.node(graph_.value(id).producer);
    if (const Numbers counts = count_of(node, id)) return counts;
    if (node.op == "cast" && is_float(graph_.value(node.inputs[0]).type.dtype)) return rounded(node, id);
    if (const Numbers moved = moved_by(node)) return moved;
    if (num_elements(type.shape) != 1) return std::nullopt;
    const Interval found = interval_of(node);
    return found.most == kMost ? std::nullopt : Numbers({{found.most, id, found.least}});
  }

  /// An integer of one element that a float, held between two numbers, is cast to.
  Numbers rounded(const ir::Node& node, V id) const {
    if (num_elements(graph_.value(id).type.shape) != 1) return std::nullopt;
    const auto [least, most] = float_range(node.inputs[0]);
    if (!(least >= -kExact && most <= kExact)) return std::nullopt;
    return Numbers({{static_cast<int64_t>(most), id, static_cast<int64_t>(least)}});
  }

  /// Between which numbers a clip holds a float of one element.
  std::pair<double, double> float_range(V id) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::array<std::string_view, 5> kMoves = {"identity", "reshape", "floor", "ceil", "round"};
    const ir::Node* node = nullptr;
    for (;;) {
      const ir::NodeId producer = graph_.value(id).producer;
      if (producer == ir::kAbsent) return {-kInfinity, kInfinity};
      node = &graph_.node(producer);
      if (std::find(kMoves.begin(), kMoves.end(), node->op) == kMoves.end()) break;
      id = node->inputs[0];
    }
    const auto number = [&](size_t input, double otherwise) {
      if (input >= node->inputs.size() || node->inputs[input] == ir::kAbsent) return otherwise;
      const std::optional<Tensor>& constant = graph_.value(node->inputs[input]).constant;
      return constant && constant->num_elements() == 1 ? constant->element_as_double(0) : otherwise;
    };
    if (node->op == "clip") return {std::floor(number(1, -kInfinity)), std::ceil(number(2, kInfinity))};
    return {-kInfinity, kInfinity};
  }

  const Tensor* known_of(V id) const {
    const std::optional<Tensor>& known = graph_.value(id).known;
    return known ? &*known : nullptr;
  }

  static Numbers listed(const Tensor& tensor) {
    std::vector<BoundedInt> numbers;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const int64_t number = tensor.element_as_int(i);
      numbers.push_back({number, ir::kAbsent, number});
    }
    return numbers;
  }

  /// What the last output of a node counts.
  Numbers count_of(const ir::Node& node, V id) {
    const std::vector<std::optional<size_t>> axes = ops::data_axes(node);
    if (axes.empty() || id != node.outputs.back()) return std::nullopt;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i]) continue;
      const int64_t most = graph_.value(node.outputs[i]).type.shape[*axes[i]];
      const int64_t least = node.op == "take_first" ? operand(node.inputs[1], false).least : 0;
      return Numbers({{most, id, std::clamp<int64_t>(least, 0, most)}});
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
    std::vector<Interval> in;
    for (const V input : node.inputs) in.push_back(operand(input, node.op == "reduce_min"));
    if (node.op == "reduce_min" || node.op == "reduce_max") return in[0];
    if (node.op == "where") return {std::min(in[1].least, in[2].least), std::max(in[1].most, in[2].most)};
    if (node.op == "max") return {std::max(in[0].least, in[1].least), std::max(in[0].most, in[1].most)};
    if (node.op == "min") return lesser(in[0], in[1]);
    Interval result;
    const bool is_bounded = std::all_of(in.begin(), in.end(), [](const Interval& each) {
      return each.least != kLeast && each.most != kMost;
    });
    bool is_over = !is_bounded;
    if (is_bounded && node.op == "add") {
      is_over = __builtin_add_overflow(in[0].least, in[1].least, &result.least) ||
                __builtin_add_overflow(in[0].most, in[1].most, &result.most);
    } else if (is_bounded && node.op == "sub") {
      is_over = __builtin_sub_overflow(in[0].least, in[1].most, &result.least) ||
                __builtin_sub_overflow(in[0].most, in[1].least, &result.most);
    } else if (is_bounded && node.op == "mul" && in[0].least >= 0 && in[1].least >= 0) {
      is_over = __builtin_mul_overflow(in[0].least, in[1].least, &result.least) ||
                __builtin_mul_overflow(in[0].most, in[1].most, &result.most);
    }
    return is_over ? Interval{} : result;
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

  /// The less of two.
  Interval lesser(const Interval& a, const Interval& b) const {
    const bool by_number = is_sample_ && a.is_number != b.is_number;
    const Interval& bound = by_number ? (a.is_number ? a : b) : (a.most < b.most ? a : b);
    return {std::min(a.least, b.least), bound.most, bound.is_number};
  }

  /// Of all elements of an operand, or of their least.
  Interval operand(V id, bool of_least) {
    const Numbers numbers = id == ir::kAbsent ? std::nullopt : of(id);
    if (!numbers) return {least_known(id), kMost};
    if (numbers->empty()) return {};
    std::optional<Interval> all;
    for (const BoundedInt& each : *numbers) {
      const Interval one{each.least, each.most, each.is_known() && each.most <= kMaxPadded};
      if (!all) {
        all = one;
      } else if (of_least) {
        all = lesser(*all, one);
      } else {
        all = Interval{std::min(all->least, one.least), std::max(all->most, one.most)};
      }
    }
    return *all;
  }

  const ir::Graph& graph_;
  bool is_sample_;
  std::map<V, Numbers> seen_;
  int depth_ = 0;
};

}  // namespace

V filled_behind(NodeContext& context, V x, const char* with) {
  for (const DataExtent& data : context.data_shape(x).extents) x = filled(context, x, data, with);
  return x;
}

V filled_along(NodeContext& context, V x, int64_t axis, const char* with) {
  const DataShape shape = context.data_shape(x);
  const DataExtent* data = shape.along(axis);
  return data != nullptr ? filled(context, x, *data, with) : x;
}

V with_count(NodeContext& context, V x, int64_t axis, const char* with, const std::function<V(V)>& compute) {
  const V whole = filled_along(context, x, axis, with);
  const V result = compute(whole);
  return whole == x ? result : take_first(context, result, *count_along(context, x, axis), axis);
}

V longer_by(NodeContext& context, V x, int64_t more, int64_t axis) {
  Compose c(context);
  Shape behind = c.shape(x);
  behind[static_cast<size_t>(axis)] = more;
  return c.concat({x, c.filled(c.dtype(x), behind, 0)}, axis);
}

V take_first(NodeContext& context, V x, V count, int64_t axis) {
  // The only element, which is always there.
  const auto own = static_cast<size_t>(axis < 0 ? axis + context.rank(x) : axis);
  if (context.type(x).shape[own] == 1 && !context.graph().value(count).known) {
    const Bounds::Numbers number = Bounds(context.graph(), context.is_sample()).of(count);
    if (number && number->size() == 1 && number->front().least >= 1) return x;
  }
  return context.add_many("take_first", {x, count}, {{"axis", axis}})[0];
}

namespace {

/// Axes of a shape, one behind the other.
struct AxisRange {
  size_t first = 0, last = 0;
  bool holds(size_t axis) const { return axis >= first && axis < last; }
};

/// The axes of `from` that axis `at` of `to` is made of, if it is made of whole ones.
std::optional<AxisRange> merged_axes(const Shape& from, const Shape& to, size_t at) {
  const auto behind = [&](size_t first, int64_t product) -> std::optional<size_t> {
    int64_t passed = 1;
    for (; first < from.size() && passed < product; ++first) passed *= from[first];
    return passed == product ? std::optional(first) : std::nullopt;
  };
  const int64_t before = num_elements(Shape(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(at)));
  const std::optional<size_t> first = behind(0, before);
  const std::optional<size_t> last = first ? behind(*first, to[at]) : std::nullopt;
  return last ? std::optional(AxisRange{*first, *last}) : std::nullopt;
}

/// x of shape `from` in shape `to`, whose axis `at` is made of the axes of `range`: what is there of them,
/// close together.
V merged(NodeContext& context, V x, AxisRange range, const Shape& to, size_t at) {
  Compose c(context);
  const Shape from = c.shape(x);
  const auto axis = static_cast<int64_t>(at);
  std::vector<V> counts;
  std::vector<size_t> counted;
  for (size_t d = range.first; d < range.last; ++d) {
    counts.push_back(*count_along(context, x, static_cast<int64_t>(d)));
    if (context.data_shape(x).along(static_cast<int64_t>(d)) != nullptr) counted.push_back(d);
  }
  for (const size_t d : counted) x = filled_along(context, x, static_cast<int64_t>(d), "zero");
  V result = context.reshape(x, to), total = counts[0];
  for (size_t i = 1; i < counts.size(); ++i) total = c.mul(total, counts[i]);
  bool is_leading = counted.size() == 1;
  for (size_t d = range.first; is_leading && d < counted[0]; ++d) is_leading = from[d] == 1;
  if (is_leading) return take_first(context, result, total, axis);
  V rest = c.ints(c.count_to(to[at]), {to[at]}), place = c.ints({0}, {1});
  int64_t stride = 1;
  for (size_t d = range.last; d-- > range.first; stride *= from[d]) {
    const V count = c.binary("max", counts[d - range.first], c.ints({1}, {1}));
    const V own = context.add("mod", {rest, count}, {{"fmod", int64_t{0}}});
    place = c.add(place, c.mul(own, c.ints({stride}, {1})));
    rest = c.div(rest, count);
  }
  result = c.gather(result, c.binary("min", place, c.ints({to[at] - 1}, {1})), axis);
  return take_first(context, result, total, axis);
}

}  // namespace

V counted_reshape(NodeContext& context, V x, const Shape& shape) {
  const Shape from = context.type(x).shape;
  const auto is_kept = [&](const DataExtent& extent) { return reshaped_axis(from, extent.axis, shape); };
  for (const DataExtent& extent : context.data_shape(x).extents) {
    if (is_kept(extent)) continue;
    for (size_t at = 0; at < shape.size(); ++at) {
      const std::optional<AxisRange> range = shape[at] > 1 ? merged_axes(from, shape, at) : std::nullopt;
      if (range && range->holds(extent.axis)) return merged(context, x, *range, shape, at);
    }
  }
  return context.reshape(x, shape);
}

std::optional<V> count_along(NodeContext& context, V x, int64_t axis) {
  const DataShape shape = context.data_shape(x);
  if (!shape.is_known) return std::nullopt;
  if (const DataExtent* data = shape.along(axis)) return data->count;
  return context.int64_constant({context.type(x).shape[static_cast<size_t>(axis)]});
}

namespace {

/// Parts one behind the other, of which some are as long as data says: joined at their largest extents, then
/// moved together.
V concat_counted(NodeContext& context, const std::vector<V>& inputs, int64_t axis) {
  Compose c(context);
  std::vector<V> parts, counts;
  int64_t extent = 0;
  for (const V input : inputs) {
    const std::optional<V> count = count_along(context, input, axis);
    if (!count)
      context.unsupported("operand", "a part whose shape depends on data in a way that cannot be told");
    counts.push_back(*count);
    parts.push_back(filled_along(context, input, axis, "zero"));
    extent += c.shape(input)[static_cast<size_t>(axis)];
  }
  const V places = c.ints(c.count_to(extent), {extent});
  V from = places, total = c.ints({0}, {1});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const V count = counts[i];
    total = c.add(total, count);
    if (parts[i] == inputs[i]) continue;
    const V gap = c.sub(c.ints({c.shape(inputs[i])[static_cast<size_t>(axis)]}, {1}), count);
    from = c.add(from, c.where(c.binary("less", places, total), c.ints({0}, {1}), gap));
  }
  const V last = c.minus(c.ints({extent}, {1}), 1);
  const V moved = c.gather(c.concat(parts, axis), c.binary("min", from, last), axis);
  return context.add_many("take_first", {moved, total}, {{"axis", axis}, {"fits", int64_t{1}}})[0];
}

}  // namespace

V counted_concat(NodeContext& context, std::vector<V> parts, int64_t axis) {
  const auto is_counted = [&](V part) { return context.data_shape(part).along(axis) != nullptr; };
  if (parts.size() < 2 || !std::any_of(parts.begin(), parts.end(), is_counted))
    return context.add("concat", std::move(parts), {{"axis", axis}});
  if (!context.is_sample()) return concat_counted(context, parts, axis);
  // Two by two: the sum of two extents is a formula of theirs.
  V joined = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) joined = concat_counted(context, {joined, parts[i]}, axis);
  return joined;
}

std::vector<BoundedInt> bounded_ints(NodeContext& context, size_t index, const char* what) {
  const ir::ValueType& type = context.type(context.input(index));
  if (type.dtype == kString) context.invalid(std::string(what) + " is " + ir::to_string(type));
  if (const Bounds::Numbers found = Bounds(context.graph(), context.is_sample()).of(context.input(index)))
    return *found;
  std::vector<BoundedInt> numbers;
  for (const int64_t each : context.known_ints(index, what)) numbers.push_back({each, ir::kAbsent, each});
  return numbers;
}

BoundedInt bounded_int(NodeContext& context, size_t index, const char* what) {
  const std::vector<BoundedInt> numbers = bounded_ints(context, index, what);
  if (numbers.size() != 1)
    context.invalid(std::string(what) + " has " + std::to_string(numbers.size()) + " elements, expected 1");
  return numbers[0];
}

namespace {

/// The known numbers of which a known value is the least, by the nodes that it comes from, of which a few are
/// looked at.
std::vector<int64_t> least_of(const ir::Graph& graph, V id) {
  constexpr int kMostNodes = 64;
  constexpr std::array<std::string_view, 6> kMoves = {"identity", "cast",       "reshape",
                                                      "min",      "reduce_min", "concat"};
  std::vector<int64_t> numbers;
  std::vector<V> open{id};
  for (int visited = 0; !open.empty(); ++visited) {
    const ir::Value& value = graph.value(open.back());
    open.pop_back();
    const ir::Node* node = value.producer == ir::kAbsent ? nullptr : &graph.node(value.producer);
    const bool is_move = node != nullptr && std::find(kMoves.begin(), kMoves.end(), node->op) != kMoves.end();
    if (is_move && visited < kMostNodes) {
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    } else if (value.known && !is_float(value.type.dtype)) {
      for (int64_t i = 0; i < value.known->num_elements(); ++i)
        numbers.push_back(value.known->element_as_int(i));
    }
  }
  return numbers;
}

}  // namespace

BoundedInt capped_int(NodeContext& context, size_t index, const char* what, int64_t extent) {
  const BoundedInt number = bounded_int(context, index, what);
  if (!context.is_sample() || !number.is_known()) return number;
  std::vector<int64_t> numbers = least_of(context.graph(), context.input(index));
  if (numbers.size() < 2 || std::find(numbers.begin(), numbers.end(), extent) == numbers.end()) return number;
  std::erase(numbers, extent);
  // A number that is the extent by chance is no other than that.
  const int64_t cap = numbers.empty() ? extent : *std::min_element(numbers.begin(), numbers.end());
  if (cap < 0 || cap > kMaxPadded) return number;
  return {cap, context.input(index), 0};
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
  if (number.is_known()) return context.int64_constant({number.most});
  Compose c(context);
  return c.reshape(c.cast(number.count, DType::kInt64), {1});
}

}  // namespace tensormill::frontend::onnx
