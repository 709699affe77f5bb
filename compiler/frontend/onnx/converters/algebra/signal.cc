// Fourier transforms, of signals and of their frames.
#include <algorithm>

#include "compiler/build/signal/fourier.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr int64_t kMaxFrames = int64_t{1} << 28;  ///< elements of all frames

struct DftForm {
  bool onesided = false, inverse = false;
  bool is_real() const { return onesided && inverse; }  ///< the result, from the beginning of its transform
};

/// A transform, and how many elements of its axis are there: i64 [1], or kAbsent for all.
struct Transform {
  V values = ir::kAbsent, count = ir::kAbsent;
};

/// `length` as the count of an axis that is as long as its bound.
V held_length(NodeContext& context, const BoundedInt& length) {
  Compose c(context);
  const V count = as_count(context, length);
  const V places = c.filled(DType::kUInt8, {max(length.most, 0)}, 0);
  return *count_along(context, take_first(context, places, count, 0), 0);
}

/// The number of elements of a transform of `length` that are wanted.
V wanted_elements(Compose& c, V length, bool is_half) {
  return is_half ? c.plus(c.div(length, c.ints({2}, {1})), 1) : length;
}

/// The transform of x [..., n, 1 or 2] along `axis`.
Transform along_axis(NodeContext& context, V x, int64_t axis, const BoundedInt& length, DftForm form) {
  Compose c(context);
  const int64_t rank = context.rank(x);
  std::vector<int64_t> perm = c.count_to(rank);
  std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 2)]);
  x = c.transpose(filled_along(context, x, axis, "zero"), perm);
  const ir::SymInt parts = c.shape(x).back();
  if (form.is_real() && !demand(ir::Relation::kEqual, parts, 2))
    context.invalid("the inverse transform to a real signal is of complex elements");
  build::check_parts(context, parts);
  const bool is_half = form.onesided && !form.inverse;
  Transform result;
  if (!length.is_known()) {
    const V count = held_length(context, length);
    result.values =
        build::fourier_step(context, x, ir::kAbsent, length.most, form.inverse, form.is_real(), count);
    result.count = wanted_elements(c, count, is_half);
  } else if (form.is_real()) {
    result.values = build::fourier_real(context, x, length.most);
  } else {
    result.values = build::fourier(context, x, ir::kAbsent, length.most, is_half, form.inverse);
  }
  result.values = c.transpose(result.values, perm);
  return result;
}

/// How long the transform along `axis` is: as the operand says, or as the axis is.
BoundedInt dft_length(NodeContext& context, int64_t axis, DftForm form) {
  Compose c(context);
  const V x = context.input(0);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  BoundedInt length;
  if (is_run_time_value(context, 1)) {
    const V given = one_integer(context, 1, "dft_length");
    const V is_length = is_within(context, given, 1, static_cast<double>(kMaxLength));
    const V checked = checked_number(context, given, is_length,
                                     "dft_length is {}, expected 1 to " + std::to_string(kMaxLength));
    length = bounded_value(context, checked, "dft_length");
  } else if (context.has_input(1)) {
    length.most = known_length(context, 1, "dft_length");
  } else {
    length.most = form.is_real() ? 2 * (extent - 1) : extent;
    const DataShape data = context.data_shape(x);
    if (const DataExtent* counted = data.along(axis))
      length.count = form.is_real() ? c.times(c.minus(counted->count, 1), 2) : counted->count;
  }
  if (length.is_known() && !demand(ir::Relation::kLessEqual, 1, length.most))
    context.invalid("dft_length is " + to_string(length.most));
  return length;
}

/// The transform along an axis that a run says: those along each axis, at places of one shape that has
/// capacity for all of them.
V along_dynamic_axis(NodeContext& context, DftForm form) {
  Compose c(context);
  context.require_fixed_shape(0);
  const V x = context.input(0), given = one_integer(context, 2, "axis"), zero = c.ints({0}, {1});
  const int64_t rank = context.rank(x), last = rank - 1;
  const V from_front =
      c.where(c.binary("less", given, zero), c.plus(given, static_cast<double>(rank)), given);
  const V is_axis = is_within(context, from_front, 0, static_cast<double>(last - 1));
  V axis = checked_number(context, from_front, is_axis,
                          "axis {} from the front is none of the axes 0 to " + std::to_string(last - 1));
  const ir::SymShape own = c.shape(x);
  std::vector<Transform> each;
  for (int64_t d = 0; d < last; ++d) {
    const bool has_length = context.has_input(1) || !form.is_real() || own[static_cast<size_t>(d)] != 1;
    if (has_length) {
      each.push_back(along_axis(context, x, d, dft_length(context, d, form), form));
      continue;
    }
    // No real signal has one element alone for its half.
    axis = checked_number(context, axis, c.unary("not", c.binary("equal", axis, c.dims({d}, {1}))),
                          "axis {} from the front has one element, half of a signal of none");
    ir::SymShape none = own;
    none.back() = 1;
    each.push_back({c.filled(c.dtype(x), none, 0), ir::kAbsent});
  }
  const auto extent_of = [&](int64_t d) {
    return c.shape(each[static_cast<size_t>(d)].values)[static_cast<size_t>(d)];
  };
  V result = ir::kAbsent;
  for (int64_t d = 0; d < last; ++d) {
    V padded = each[static_cast<size_t>(d)].values;
    for (int64_t j = 0; j < last; ++j)
      padded = longer_by(context, padded, j == d ? own[static_cast<size_t>(j)] : extent_of(j), j);
    result =
        result == ir::kAbsent ? padded : c.where(c.binary("equal", axis, c.dims({d}, {1})), padded, result);
  }
  for (int64_t d = 0; d < last; ++d) {
    const V counted = each[static_cast<size_t>(d)].count;
    const V there = counted == ir::kAbsent ? c.dims({extent_of(d)}, {1}) : counted;
    const V is_here = c.binary("equal", axis, c.dims({d}, {1}));
    result =
        take_first(context, result, c.where(is_here, there, c.dims({own[static_cast<size_t>(d)]}, {1})), d);
  }
  return result;
}

}  // namespace

// The signal is [..., n, 1 or 2]; the axis is an attribute, from opset 20 on an operand.
void convert_dft(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  const DftForm form{context.int_attr("onesided", 0) != 0, context.int_attr("inverse", 0) != 0};
  if (rank < 2) context.invalid("the signal has rank " + std::to_string(rank));
  int64_t axis = context.int_attr("axis", 1);
  if (context.opset() >= 20 && is_run_time_value(context, 2)) {
    context.set_output(0, along_dynamic_axis(context, form));
    return;
  }
  if (context.opset() >= 20)
    axis = context.has_input(2) ? context.known_scalar(2, "axis").element_as_int(0) : -2;
  axis = context.normalize_axis(axis, rank);
  if (axis == rank - 1) context.invalid("axis " + std::to_string(axis) + " of rank " + std::to_string(rank));
  const Transform result = along_axis(context, context.input(0), axis, dft_length(context, axis, form), form);
  context.set_output(0, result.count == ir::kAbsent ? result.values
                                                    : take_first(context, result.values, result.count, axis));
}

namespace {

/// A frame's length, i64 [1]: that of the window, or as the operand says.
V frame_length(NodeContext& context) {
  Compose c(context);
  if (context.has_input(2)) {
    const ir::SymShape window = c.shape(context.input(2));
    if (window.size() != 1) context.invalid("window has shape " + to_string(window));
    return c.dims(window, {1});
  }
  if (is_run_time_value(context, 3)) return one_integer(context, 3, "frame_length");
  if (context.has_input(3)) return c.dims({known_length(context, 3, "frame_length")}, {1});
  context.invalid("neither window nor frame_length is given");
}

/// STFT where a run says how long frames are or where they begin: x [batch, n, 1 or 2].
V dynamic_frames(NodeContext& context, V x, bool is_half) {
  Compose c(context);
  const ir::SymInt extent = c.shape(x)[1];
  V given = frame_length(context), step = one_integer(context, 1, "frame_step");
  const V one = c.ints({1}, {1}), own = *count_along(context, x, 1);
  const auto no_more = [&](V a, V b) { return c.binary("less_equal", a, b); };
  const V fits =
      c.binary("and", c.binary("and", no_more(one, given), no_more(given, own)), no_more(one, step));
  const V zero =
      zero_if(context, {fits, "frames of {} by steps of {} do not fit a signal of {}", {given, step, own}});
  step = c.add(step, zero);
  if (context.has_input(2) && context.has_input(3)) {
    const V said = one_integer(context, 3, "frame_length");
    step = value_if(context, step,
                    {c.binary("equal", given, said), "frame_length is {}, the window has {}", {said, given}});
  }
  const BoundedInt length = context.is_computable(given)
                                ? bounded_value(context, given, "frame_length")
                                : bounded_value(context, c.add(given, zero), "frame_length", 1);
  if (!demand(ir::Relation::kLessEqual, 1, extent) ||
      (length.is_known() && (!demand(ir::Relation::kLessEqual, 1, length.most) ||
                             !demand(ir::Relation::kLessEqual, length.most, extent))))
    context.invalid("frames of " + to_string(length.most) + " do not fit a signal of " + to_string(extent));
  const ir::SymInt most = max(length.most, 0);
  const V counted = length.is_known() ? c.dims({most}, {1}) : held_length(context, length);
  const V behind = c.binary("max", c.sub(own, counted), c.ints({0}, {1}));
  // Of steps as long as the signal there is one frame, and places of frames that are not taken stay numbers.
  const V stride = c.binary("min", c.binary("max", step, one), c.dims({extent}, {1}));
  const BoundedInt frames = bounded_value(context, c.plus(c.div(behind, stride), 1), "frame_step", 1);
  const V starts = c.mul(c.iota(frames.most, {frames.most, 1}), stride);
  const V places = c.add(starts, c.iota(most, {1, most}));
  const V parts =
      c.gather(filled_along(context, x, 1, "zero"), c.binary("min", places, c.dims({extent - 1}, {1})), 1);
  V result = ir::kAbsent;
  if (length.is_known()) {
    result = build::fourier(context, parts, context.optional_input(2), most, is_half, false);
  } else {
    result = build::fourier_step(context, parts, ir::kAbsent, most, false, false, counted);
    result = take_first(context, result, wanted_elements(c, counted, is_half), 2);
  }
  return take_first(context, result, as_count(context, frames), 1);
}

}  // namespace

// Frames of the signal [batch, n, 1 or 2], weighed by the window and transformed.
void convert_stft(NodeContext& context) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  const bool is_half = context.int_attr("onesided", 1) != 0;
  const ir::SymShape shape = c.shape(x);
  if (shape.size() == 2) x = c.unsqueeze(x, 2);
  if (shape.size() < 2) context.invalid("the signal has shape " + to_string(shape));
  if (is_run_time_value(context, 1) || is_run_time_value(context, 3)) {
    context.set_output(0, dynamic_frames(context, x, is_half));
    return;
  }
  const int64_t step = known_length(context, 1, "frame_step");
  const ir::SymInt length = context.has_input(3)
                                ? ir::SymInt(known_length(context, 3, "frame_length"))
                                : context.known_symbolic(frame_length(context), "window").elements().at(0);
  if (step < 1 || !demand(ir::Relation::kLessEqual, 1, length) ||
      !demand(ir::Relation::kLessEqual, length, shape[1]))
    context.invalid("frames of " + to_string(length) + " do not fit a signal of shape " + to_string(shape));
  const ir::SymInt frames = floordiv(shape[1] - length, step) + 1;
  if (!demand(ir::Relation::kLessEqual, context.product(frames, length), kMaxFrames))
    context.unsupported("frame_length", to_string(frames) + " frames are not implemented");
  // How many frames there are may depend on a free extent: where each begins, and its elements' places.
  const V starts = c.times(c.iota(frames, {frames, 1}), static_cast<double>(step));
  const V parts = c.gather(x, c.add(starts, c.iota(length, {1, length})), 1);
  context.set_output(0, build::fourier(context, parts, context.optional_input(2), length, is_half, false));
}

}  // namespace tensormill::frontend::onnx
