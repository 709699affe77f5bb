// SplitToSequence: parts of sizes that are known are a list; else a run works out how long they are, and how
// many, where the number of sizes is not known either.
#include <algorithm>
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/converters/tensors/data_dependent_moves.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
using Bindings = std::optional<std::vector<Binding>>;
constexpr int64_t kMaxParts = 1 << 16;

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
    if (!context_.has_input(1)) return single_elements();
    const V split = node_.input(1);
    const ir::ValueType& type = node_.type(split);
    const bool is_integer = type.dtype == DType::kInt32 || type.dtype == DType::kInt64;
    if (!is_integer || type.shape.size() > 1) node_.invalid("split is " + ir::to_string(type));
    const bool are_lengths = type.shape.size() == 1;
    if (!is_known(split)) return are_lengths ? by_lengths(split) : by_size(split);
    if (are_lengths) return of_known(node_.known_ints(1, "split"));
    const int64_t size = node_.known_scalar(1, "split").element_as_int(0);
    if (size < 1) node_.invalid("split is " + std::to_string(size));
    if (size == 1) return single_elements();
    if (is_data_dependent()) return by_size(split);
    return is_of_known_length() ? of_known(even(size)) : stacked(size);
  }

private:
  /// Whether it is known how many parts there are.
  bool is_of_known_length() const { return extent_.is_constant() && !node_.stacks_elements(); }
  bool is_data_dependent() { return node_.data_shape(x_).along(axis_) != nullptr; }
  bool is_known(V split) { return node_.is_known(1) && node_.data_shape(split).extents.empty(); }

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
    if (is_data_dependent() || !is_of_known_length()) {
      const V all = with_axis_at(node_, x_, axis_, 0);
      return std::vector{stack_of_parts(context_, drops ? all : c_.unsqueeze(all, axis_ + 1))};
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
    V x = x_;
    if (is_data_dependent()) {
      const V count = *count_along(node_, x_, axis_);
      x = value_if(node_, filled_along(node_, x_, axis_, "zero"),
                   {c_.binary("equal", count, c_.dims({total}, {1})),
                    "split adds up to " + std::to_string(total) + ", the axis has {}",
                    {count}});
    } else if (!demand(ir::Relation::kEqual, total, extent_)) {
      node_.invalid("split adds up to " + std::to_string(total) + ", the axis has " + to_string(extent_));
    }
    std::vector<V> elements;
    int64_t start = 0;
    for (const int64_t size : sizes) {
      elements.push_back(c_.slice(x, axis_, start, size));
      start += size;
    }
    return std::vector{list(std::move(elements))};
  }

  /// The most, or the least, that an element of `split` can be, within [least, extent].
  int64_t bound(int64_t least, bool is_most) {
    try {
      int64_t found = is_most ? least : std::max<int64_t>(extent_, least);
      for (const BoundedInt& each : bounded_ints(node_, 1, "split"))
        found = is_most ? std::max<int64_t>(found, each.most) : std::min<int64_t>(found, each.least);
      return std::clamp<int64_t>(found, least, std::max<int64_t>(extent_, least));
    } catch (const ValueRequired&) {
      return is_most ? std::max<int64_t>(extent_, least) : least;
    }
  }

  /// A 1-D tensor of lengths, which have to add up to what there is.
  Bindings by_lengths(V split) {
    const std::optional<V> parts = count_along(node_, split, 0);
    if (!parts) node_.unsupported("split", "its length depends on data in a way that cannot be told");
    const bool is_list = node_.data_shape(split).extents.empty();
    const ir::SymInt most = c_.shape(split)[0];
    if (most > kMaxParts) node_.unsupported("split", std::to_string(most) + " parts are not implemented");
    if (most == 0) node_.unsupported("split", "no part at all of an axis that a run works out");
    const V all = c_.cast(filled_along(node_, split, 0, "zero"), DType::kInt64);
    const V lengths = lengths_of_parts(node_, all, *count_along(node_, x_, axis_), extent_);
    const V ends = node_.add("cumsum", {lengths}, {{"axis", int64_t{0}}});
    const Binding found = parts_at(c_.sub(ends, lengths), lengths, bound(0, true));
    if (!is_list) return std::vector{counted(found, *parts)};
    std::vector<V> elements;
    for (int64_t i = 0; i < most; ++i) elements.push_back(element_at(context_, found, i));
    return std::vector{list(std::move(elements))};
  }

  /// Parts of one size, of which the last may be shorter.
  Bindings by_size(V split) {
    const V given = c_.reshape(c_.cast(split, DType::kInt64), {1}), one = c_.ints({1}, {1});
    const int64_t room = bound(1, true), most = (extent_ + bound(1, false) - 1) / bound(1, false);
    const V checked = checked_number(node_, given, c_.binary("less_equal", one, given), "split is {}");
    const V size = c_.clip(checked, 1, static_cast<double>(std::max<int64_t>(extent_, 1)));
    const V count = *count_along(node_, x_, axis_);
    if (most == 0) node_.unsupported("split", "an axis of no elements in parts whose size a run works out");
    const V starts = c_.mul(c_.iota(most), size), zero = c_.ints({0}, {1});
    const V lengths = c_.binary("max", c_.binary("min", c_.sub(count, starts), size), zero);
    const V parts = c_.div(c_.minus(c_.add(count, size), 1), size);
    return std::vector{counted(parts_at(starts, lengths, room), parts)};
  }

  /// Parts of a known size of what is all there, as one tensor.
  Bindings stacked(int64_t size) {
    const V starts = c_.mul(c_.iota(ceildiv(extent_, size)), c_.dims({size}, {1}));
    const V rest = c_.sub(c_.dims({extent_}, {1}), starts);
    return std::vector{parts_at(starts, c_.binary("min", rest, c_.dims({size}, {1})), size)};
  }

  Binding counted(Binding parts, V count) {
    parts.tensor = take_first(node_, parts.tensor, count, 0);
    parts.extents = take_first(node_, parts.extents, count, 0);
    return parts;
  }

  /// As many parts as there are starts and lengths, in `room` elements each, zeros behind their own.
  Binding parts_at(V starts, V lengths, int64_t room) {
    const ir::SymInt parts = c_.shape(starts)[0], own = std::max<int64_t>(room, 1);
    const V steps = c_.iota(own, {1, own}), columns = c_.reshape(lengths, {parts, 1});
    const V places = c_.add(c_.reshape(starts, {parts, 1}), steps);
    V whole = filled_behind(node_, x_, "zero");
    if (extent_.is_constant() && extent_.hint() == 0) whole = longer_by(node_, whole, 1, axis_);
    const V last = c_.dims({max(extent_, 1) - 1}, {1, 1});
    const V moved = with_axis_at(node_, c_.gather(whole, c_.binary("min", places, last), axis_), axis_, 0);
    ir::SymShape along(c_.shape(moved).size(), 1);
    along[0] = parts;
    along[static_cast<size_t>(axis_) + 1] = own;
    const V is_there = c_.reshape(c_.binary("less", steps, columns), along);
    Binding result = stack(c_.where(is_there, moved, c_.filled(c_.dtype(moved), c_.shape(moved), 0)));
    std::vector<V> table;
    for (int64_t d = 0; d < shown_rank(node_, x_); ++d) {
      if (d == axis_ || node_.data_shape(x_).along(d) != nullptr)
        result.uneven.push_back(static_cast<size_t>(d));
      table.push_back(d == axis_ ? columns : c_.expand(*count_along(node_, x_, d), {parts, 1}));
    }
    result.extents = c_.concat(std::move(table), 1);
    return result;
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
