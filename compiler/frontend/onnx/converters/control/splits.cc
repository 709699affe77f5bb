// SplitToSequence: parts of sizes that are known are a list; else a run works out how long they are, and how
// many, where the number of sizes is not known either.
#include <algorithm>
#include <array>
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
using Bindings = std::optional<std::vector<Binding>>;
constexpr int64_t kMaxParts = 1 << 16;

/// The number that all elements of an integer value are, where the graph fills it with one.
std::optional<int64_t> number_everywhere(const ir::Graph& graph, V id, int depth = 0) {
  constexpr std::array<std::string_view, 4> kMoves = {"expand", "reshape", "identity", "cast"};
  constexpr std::array<std::string_view, 3> kSums = {"add", "sub", "mul"};
  constexpr int kDeepest = 8;
  const ir::Value& value = graph.value(id);
  if (!is_integer(value.type.dtype)) return std::nullopt;
  if (value.known) {
    const ir::SymShape numbers = value.known.elements();
    const bool is_one = !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [&](const auto& n) {
      return n.is_constant() && n.hint() == numbers[0].hint();
    });
    return is_one ? std::optional<int64_t>(numbers[0].hint()) : std::nullopt;
  }
  if (value.producer == ir::kAbsent || depth == kDeepest || !is_integer(value.type.dtype))
    return std::nullopt;
  const ir::Node& node = graph.node(value.producer);
  const auto is_any_of = [&](const auto& ops) {
    return std::find(ops.begin(), ops.end(), node.op) != ops.end();
  };
  if (is_any_of(kMoves)) return number_everywhere(graph, node.inputs[0], depth + 1);
  if (!is_any_of(kSums)) return std::nullopt;
  const std::optional<int64_t> a = number_everywhere(graph, node.inputs[0], depth + 1),
                               b = number_everywhere(graph, node.inputs[1], depth + 1);
  int64_t result = 0;
  const bool fits = a && b &&
                    !(node.op == "add"   ? __builtin_add_overflow(*a, *b, &result)
                      : node.op == "sub" ? __builtin_sub_overflow(*a, *b, &result)
                                         : __builtin_mul_overflow(*a, *b, &result));
  return fits ? std::optional(result) : std::nullopt;
}

class Split {
public:
  explicit Split(StructureContext& context)
      : context_(context),
        node_(context.node),
        c_(context.node),
        x_(context.node.input(0)),
        axis_(node_.normalize_axis(node_.int_attr("axis", 0), shown_rank(node_, x_))),
        extent_(c_.shape(x_)[static_cast<size_t>(axis_)]) {}

  Bindings run() {
    node_.require_bound_extents(x_);
    if (!context_.has_input(1)) return single_elements();
    const V split = node_.input(1);
    const ir::ValueType& type = node_.type(split);
    const bool is_integer = type.dtype == DType::kInt32 || type.dtype == DType::kInt64;
    if (!is_integer || type.shape.size() > 1) node_.invalid("split is " + ir::to_string(type));
    const bool are_lengths = type.shape.size() == 1;
    if (!is_known(split)) {
      node_.require_bound_extents(split);
      if (const std::optional<Binding> even = are_lengths ? even_parts(split) : std::nullopt)
        return std::vector{*even};
      return are_lengths ? by_lengths(split) : by_size(split);
    }
    if (are_lengths) return of_known(node_.known_ints(1, "split"));
    const int64_t size = node_.known_scalar(1, "split").element_as_int(0);
    if (size < 1) node_.invalid("split is " + std::to_string(size));
    if (size == 1) return single_elements();
    if (is_of_known_length()) return of_known(even(size));
    return stacked(c_.ints({size}, {1}), ceildiv(extent_, size), size);
  }

private:
  /// Whether it is known how many parts there are.
  bool is_of_known_length() const { return extent_.is_constant() && !node_.stacks_elements(); }
  bool is_known(V split) { return node_.is_known(1) && c_.shape(split).is_constant(); }

  static Binding list(std::vector<V> elements) {
    return {Binding::Kind::kSequence, ir::kAbsent, std::move(elements)};
  }

  std::vector<int64_t> even(int64_t size) {
    const int64_t extent = extent_.hint();
    if (extent / size > kMaxParts)
      node_.unsupported("split", std::to_string(extent / size) + " parts are not implemented");
    std::vector<int64_t> sizes;
    for (int64_t start = 0; start < extent; start += size) sizes.push_back(std::min(size, extent - start));
    return sizes;
  }

  Bindings single_elements() {
    const bool drops = !context_.has_input(1) && node_.int_attr("keepdims", 1) == 0;
    if (!is_of_known_length()) {
      const V all = with_axis_at(node_, x_, axis_, 0);
      return std::vector{stack(drops ? all : c_.unsqueeze(all, axis_ + 1))};
    }
    Binding parts = of_known(even(1))->front();
    for (V& element : parts.elements) element = drops ? c_.squeeze(element, axis_) : element;
    return std::vector{parts};
  }

  Bindings of_known(const std::vector<int64_t>& sizes) {
    int64_t total = 0;
    for (const int64_t size : sizes) {
      if (size < 0 || !demand(ir::Relation::kLessEqual, total + size, extent_))
        node_.invalid("split does not fit an axis of " + to_string(extent_));
      total += size;
    }
    if (!demand(ir::Relation::kEqual, total, extent_))
      node_.invalid("split adds up to " + std::to_string(total) + ", the axis has " + to_string(extent_));
    std::vector<V> elements;
    int64_t start = 0;
    for (const int64_t size : sizes) {
      elements.push_back(c_.slice(x_, axis_, start, size));
      start += size;
    }
    return std::vector{list(std::move(elements))};
  }

  /// The most that an element of `split` can be, within [least, extent].
  ir::SymInt bound(int64_t least) {
    const ir::SymInt all = max(extent_, least);
    try {
      ir::SymInt found = least;
      for (const BoundedInt& each : bounded_ints(node_, 1, "split")) found = max(found, each.most);
      return min(found, all);
    } catch (const ValueRequired&) {
      return all;
    }
  }

  /// Parts of one known length, as many as follow from free dims.
  std::optional<Binding> even_parts(V split) {
    const std::optional<int64_t> length = number_everywhere(node_.graph(), split);
    const ir::SymInt parts = c_.shape(split)[0];
    if (!length || *length < 1 || !demand(ir::Relation::kEqual, node_.product(parts, *length), extent_))
      return std::nullopt;
    ir::SymShape shape = c_.shape(x_);
    const auto at = shape.begin() + axis_;
    *at = *length;
    shape.insert(at, parts);
    return stack(with_axis_at(node_, c_.reshape(x_, shape), axis_, 0));
  }

  /// A 1-D tensor of lengths, which have to add up to what there is.
  Bindings by_lengths(V split) {
    const ir::SymInt most = c_.shape(split)[0];
    if (most.is_constant() && most > kMaxParts)
      node_.unsupported("split", to_string(most) + " parts are not implemented");
    if (same(most, 0)) node_.unsupported("split", "no part at all of an axis that a run works out");
    const V count = c_.dims({extent_}, {1});
    const V lengths = lengths_of_parts(node_, c_.cast(split, DType::kInt64), count, extent_);
    const V ends = node_.add("cumsum", {lengths}, {{"axis", int64_t{0}}});
    const Binding found = parts_at(context_, x_, axis_, {c_.sub(ends, lengths), lengths}, bound(0));
    if (!most.is_constant()) return std::vector{found};
    std::vector<V> elements;
    for (int64_t i = 0; i < most; ++i) elements.push_back(element_at(context_, found, i));
    return std::vector{list(std::move(elements))};
  }

  /// Parts of a size that a run works out.
  Bindings by_size(V split) {
    const V given = c_.reshape(c_.cast(split, DType::kInt64), {1}), one = c_.ints({1}, {1});
    const V checked = checked_number(node_, given, c_.binary("less_equal", one, given), "split is {}");
    const V size = c_.binary("max", c_.binary("min", checked, c_.dims({max(extent_, 1)}, {1})), one);
    const V more = c_.minus(c_.add(c_.dims({extent_}, {1}), size), 1);
    return stacked(size, node_.symbolic_ints(c_.div(more, size), "split", 0)[0], bound(1));
  }

  /// So many parts of one size, of which the last may be shorter, as one tensor.
  Bindings stacked(V size, const ir::SymInt& number, const ir::SymInt& capacity) {
    const V starts = c_.mul(c_.iota(number), size), rest = c_.sub(c_.dims({extent_}, {1}), starts);
    return std::vector{parts_at(context_, x_, axis_, {starts, c_.binary("min", rest, size)}, capacity)};
  }

  StructureContext& context_;
  NodeContext& node_;
  Compose c_;
  V x_;
  int64_t axis_;
  ir::SymInt extent_;
};

}  // namespace

Bindings convert_split_to_sequence(StructureContext& context) { return Split(context).run(); }

}  // namespace tensormill::frontend::onnx
