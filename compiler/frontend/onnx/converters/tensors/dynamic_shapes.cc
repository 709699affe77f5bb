// Reshape to a shape, and Squeeze and Unsqueeze of axes, that a run works out.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/model_step.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// A number within [0, most] times `factor`, or `most` where that is more; all i64 [1].
V product_up_to(Compose& c, V number, V factor, V most) {
  return c.binary("min", c.mul(number, c.binary("min", c.binary("max", factor, c.ints({0}, {1})), most)),
                  most);
}

/// What the model's numbers of a shape stand for: i64 [their number], of as many elements as x has.
V resolved_extents(NodeContext& context, V x, V wanted) {
  Compose c(context);
  const ir::SymInt rank = c.shape(wanted)[0], own_rank = context.rank(x);
  const V own = dynamic_extents(context, x), zero = c.ints({0}, {1}), one = c.ints({1}, {1});
  V extents = wanted;
  if (context.int_attr("allowzero", 0) == 0) {
    // Where there is no axis to be the same as there is no such extent.
    const V same = rank <= own_rank ? c.slice(own, 0, 0, rank)
                                    : c.concat({own, c.filled(DType::kInt64, {rank - own_rank}, -2)}, 0);
    extents = c.where(c.binary("equal", wanted, zero), same, wanted);
  }
  const V is_rest = c.binary("equal", extents, c.ints({-1}, {1}));
  const V rests = c.reduce("reduce_sum", c.cast(is_rest, DType::kInt64), {0}, true);
  const V listed = c.where(is_rest, one, extents);
  const V elements = c.reduce("reduce_prod", own_rank == 0 ? one : own, {0}, true),
          most = c.plus(elements, 1);
  V product = one;
  for (int64_t i = 0; i < rank; ++i) product = product_up_to(c, product, c.slice(listed, 0, i, 1), most);
  const V rest = c.div(elements, c.binary("max", product, one)), has_rest = c.binary("equal", rests, one);
  const V all = c.where(has_rest, c.mul(product, rest), product);
  const V is_whole = c.binary("and", c.binary("equal", all, elements),
                              c.binary("or", c.unary("not", has_rest), c.binary("less", zero, product)));
  const V are_extents = c.binary("less_equal", zero, c.reduce("reduce_min", listed, {0}, true));
  const V holds = c.binary("and", c.binary("and", is_whole, are_extents), c.binary("less_equal", rests, one));
  const Check check{holds, "shape {} is none of {} elements, of shape {}", {wanted, elements, own}};
  return c.add(c.where(is_rest, rest, extents), zero_if(context, check));
}

}  // namespace

namespace {

/// The axis of the result for extent `at` of the shape that the model gives, which is resolved to `own`.
DynamicAxis reshaped_axis_of(NodeContext& context, const BoundedInt& given, int64_t at, V own) {
  const V x = context.input(0);
  if (given.is_known() && given.most > 0) return {given.most};
  if (given.is_known() && given.most == 0 && context.int_attr("allowzero", 0) != 0) return {0};
  if (given.is_known() && given.most == 0 && at < context.rank(x)) {
    const DataShape data = context.data_shape(x);
    const DataExtent* same = data.along(at);
    return {context.type(x).shape[static_cast<size_t>(at)], same == nullptr ? ir::kAbsent : same->count};
  }
  // Numbers that are not known may be 0 or -1.
  const bool is_extent = !given.is_known() && given.least > 0;
  const BoundedInt extent = is_extent ? given : bounded_value(context, own, "shape", 0);
  return {extent.most, as_count(context, extent)};
}

/// The shape that the model gives, of which a run's numbers are no symbols: they may be 0 or -1.
std::vector<BoundedInt> given_extents(NodeContext& context) {
  if (!context.binds_symbols()) return bounded_ints(context, 1, "shape");
  const V shape = context.input(1);
  std::vector<BoundedInt> extents;
  const int64_t count = num_elements(context.type(shape).shape);
  for (int64_t i = 0; i < count; ++i) {
    const RowPart own = part_of_row(context, shape, i);
    if (!context.is_computable(own.part)) {
      extents.push_back({0, shape, 0, i});
      continue;
    }
    const ir::SymInt known =
        context.known_symbolic(own.part, "shape").elements().at(static_cast<size_t>(own.at));
    extents.push_back({known, ir::kAbsent, known});
  }
  return extents;
}

}  // namespace

namespace {

/// Extents of a Reshape, of which those of x that a run decides are no numbers.
class ReshapedAxes {
public:
  ReshapedAxes(NodeContext& context, const ir::SymShape& shape)
      : from_(context.type(context.input(0)).shape), data_axes_(from_.size(), false), to_(shape) {
    for (const DataExtent& extent : context.data_shape_of(0).extents) data_axes_[extent.axis] = true;
    if (context.int_attr("allowzero", 0) != 0) return;
    for (size_t i = 0; i < std::min(to_.size(), from_.size()); ++i) {
      if (to_[i] == 0) to_[i] = data_axes_[i] ? ir::SymInt(kSame) : from_[i];
    }
  }

  /// Whether each data-dependent axis stays as it is or is, with its neighbours, in the one axis that is the
  /// rest.
  bool keep_counts() {
    match_front();
    match_back();
    const bool has_data_dependent =
        std::find(data_axes_.begin() + static_cast<std::ptrdiff_t>(from_begin_),
                  data_axes_.begin() + static_cast<std::ptrdiff_t>(from_end_),
                  true) != data_axes_.begin() + static_cast<std::ptrdiff_t>(from_end_);
    return !has_data_dependent || (to_end_ - to_begin_ == 1 && to_[to_begin_] == kRest);
  }

private:
  static constexpr int64_t kRest = -1, kSame = -2;

  bool is_one(size_t axis) const { return from_[axis] == 1 && !data_axes_[axis]; }

  void match_front() {
    while (to_begin_ < to_end_ && to_[to_begin_] != kRest) {
      if (to_[to_begin_] == kSame) {
        while (from_begin_ < to_begin_ && is_one(from_begin_)) ++from_begin_;
        if (from_begin_ != to_begin_) return;
        ++from_begin_, ++to_begin_;
        continue;
      }
      size_t from = from_begin_, to = to_begin_;
      const auto next_from = [&]() -> std::optional<int64_t> {
        return from < from_end_ && !data_axes_[from] ? std::optional(from_[from++]) : std::nullopt;
      };
      const auto next_to = [&]() -> std::optional<int64_t> {
        return to < to_end_ && to_[to] >= 0 ? std::optional(to_[to++]) : std::nullopt;
      };
      if (!have_same_product(next_from, next_to)) return;
      from_begin_ = from, to_begin_ = to;
    }
  }

  void match_back() {
    while (to_end_ > to_begin_ && to_[to_end_ - 1] != kRest) {
      if (to_[to_end_ - 1] == kSame) {
        while (from_end_ > std::max(to_end_, from_begin_) && is_one(from_end_ - 1)) --from_end_;
        if (from_end_ != to_end_ || from_end_ == from_begin_) return;
        --from_end_, --to_end_;
        continue;
      }
      size_t from = from_end_, to = to_end_;
      const auto next_from = [&]() -> std::optional<int64_t> {
        return from > from_begin_ && !data_axes_[from - 1] ? std::optional(from_[--from]) : std::nullopt;
      };
      const auto next_to = [&]() -> std::optional<int64_t> {
        return to > to_begin_ && to_[to - 1] >= 0 ? std::optional(to_[--to]) : std::nullopt;
      };
      if (!have_same_product(next_from, next_to)) return;
      from_end_ = from, to_end_ = to;
    }
  }

  /// Of one or more axes of the result, and of as many of x as it takes.
  template <typename From, typename To>
  static bool have_same_product(const From& next_from, const To& next_to) {
    int64_t own = 1, wanted = *next_to();
    while (own != wanted) {
      int64_t& less = own < wanted ? own : wanted;
      const std::optional<int64_t> next = own < wanted ? next_from() : next_to();
      if (!next || __builtin_mul_overflow(less, *next, &less)) return false;
    }
    return true;
  }

  ir::SymShape from_;
  std::vector<bool> data_axes_;
  ir::SymShape to_;
  // What is left of both.
  size_t from_begin_ = 0, from_end_ = from_.size(), to_begin_ = 0, to_end_ = to_.size();
};

}  // namespace

bool reshape_keeps_counts(NodeContext& context, const ir::SymShape& shape) {
  const DataShape data = context.data_shape_of(0);
  return !data.is_known || data.extents.empty() || ReshapedAxes(context, shape).keep_counts();
}

void dynamic_reshape(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  require_known_extents(context);
  if (const ir::SymInt axes = num_elements(c.shape(context.input(1))); axes > kMaxTensorRank)
    context.invalid("a shape of " + std::to_string(axes) + " axes; there may be " +
                    std::to_string(kMaxTensorRank));
  const std::vector<BoundedInt> given = given_extents(context);
  const auto rank = static_cast<int64_t>(given.size());
  if (!context.data_shape_of(1).extents.empty()) static_cast<void>(context.known(1, "shape"));
  const V wanted = c.reshape(c.cast(context.input(1), DType::kInt64), {rank});
  const V extents = resolved_extents(context, x, wanted);
  std::vector<DynamicAxis> axes(given.size());
  V stride = c.ints({1}, {1});
  for (int64_t i = rank - 1; i >= 0; --i) {
    const V own = c.slice(extents, 0, i, 1);
    DynamicAxis& axis = axes[static_cast<size_t>(i)];
    axis = reshaped_axis_of(context, given[static_cast<size_t>(i)], i, own);
    axis.stride = stride;
    stride = c.mul(stride, own);
  }
  // What is there of x stands close together.
  const V flat = data_dependent_reshape(context, x, {num_elements(c.shape(x))});
  const V result = taken_at(context, flat, places_of(context, axes), axes);
  context.set_reshaped(result, x);
  context.set_output(0, result);
}

void dynamic_squeeze(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  require_known_extents(context);
  const ir::SymShape shape = c.shape(x);
  const V counts = dynamic_extents(context, x);
  NamedAxes axes = named_axes(context, 1, context.rank(x));
  const V is_long = c.cast(c.unary("not", c.binary("equal", counts, c.ints({1}, {1}))), DType::kInt64);
  const V longer = c.reduce("reduce_max", c.mul(is_long, axes.flags), {0}, true);
  const V zero = zero_if(context, {c.binary("equal", longer, c.ints({0}, {1})),
                                   "axes {} of shape {} are not all of one element",
                                   {axes.given, counts}});
  // Where no others can be meant, what is left is known.
  const bool is_fixed = num_elements(shape) != 0 && context.data_shape(x).extents.empty();
  if (is_fixed && std::count(shape.begin(), shape.end(), 1) == axes.number) {
    ir::SymShape others = shape;
    std::erase(others, 1);
    return context.set_output(0, value_with(context, c.reshape(x, others), zero));
  }
  axes.flags = c.add(axes.flags, zero);
  context.set_output(0, without_axes(context, x, counts, axes));
}

void dynamic_unsqueeze(NodeContext& context) {
  require_known_extents(context);
  const ir::SymInt added = num_elements(context.type(context.input(1)).shape);
  const NamedAxes axes = named_axes(context, 1, context.rank(context.input(0)) + added);
  context.set_output(0, with_axes(context, context.input(0), axes));
}

}  // namespace tensormill::frontend::onnx
