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

/// The transform of x [..., n, 1 or 2] along `axis`.
V along_axis(NodeContext& context, V x, int64_t axis, const ir::SymInt& length, DftForm form) {
  const ir::SymInt parts = context.type(x).shape.back();
  if (form.is_real() && !demand(ir::Relation::kEqual, parts, 2))
    context.invalid("the inverse transform to a real signal is of complex elements");
  build::check_parts(context, parts);
  if (form.is_real()) return build::fourier_real_along(context, x, axis, length);
  return build::fourier_along(context, x, axis, length, form.onesided && !form.inverse, form.inverse);
}

/// How long the transform along `axis` is: as the operand says, or as the axis is.
ir::SymInt dft_length(NodeContext& context, int64_t axis, DftForm form) {
  ir::SymInt length = context.type(context.input(0)).shape[static_cast<size_t>(axis)];
  if (is_run_time_value(context, 1)) {
    length = run_extent(context, one_integer(context, 1, "dft_length"), kMaxLength, "dft_length", 1);
  } else if (context.has_input(1)) {
    length = known_length(context, 1, "dft_length");
  } else if (form.is_real()) {
    length = 2 * (length - 1);
  }
  if (!demand(ir::Relation::kLessEqual, 1, length)) context.invalid("dft_length is " + to_string(length));
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
  std::vector<V> each;
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
    each.push_back(c.filled(c.dtype(x), none, 0));
  }
  const auto extent_of = [&](int64_t d) {
    return c.shape(each[static_cast<size_t>(d)])[static_cast<size_t>(d)];
  };
  V result = ir::kAbsent;
  for (int64_t d = 0; d < last; ++d) {
    V padded = each[static_cast<size_t>(d)];
    for (int64_t j = 0; j < last; ++j)
      padded = longer_by(context, padded, j == d ? own[static_cast<size_t>(j)] : extent_of(j), j);
    result =
        result == ir::kAbsent ? padded : c.where(c.binary("equal", axis, c.dims({d}, {1})), padded, result);
  }
  for (int64_t d = 0; d < last; ++d) {
    const V is_here = c.binary("equal", axis, c.dims({d}, {1})), there = c.dims({extent_of(d)}, {1});
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
  context.require_bound_extents(context.input(0));
  context.set_output(0, along_axis(context, context.input(0), axis, dft_length(context, axis, form), form));
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
  const V one = c.ints({1}, {1}), own = c.dims({extent}, {1});
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
  const V told = context.is_computable(given) ? given : c.add(given, zero);
  const ir::SymInt length = context.symbolic_ints(told, "frame_length", 1).at(0);
  if (!demand(ir::Relation::kLessEqual, 1, extent) || !demand(ir::Relation::kLessEqual, 1, length) ||
      !demand(ir::Relation::kLessEqual, length, extent))
    context.invalid("frames of " + to_string(length) + " do not fit a signal of " + to_string(extent));
  const V behind = c.binary("max", c.sub(own, c.dims({length}, {1})), c.ints({0}, {1}));
  // Of steps as long as the signal there is one frame, and places of frames that are not taken stay numbers.
  const V stride = c.binary("min", c.binary("max", step, one), own);
  const V number = c.plus(c.div(behind, stride), 1);
  const ir::SymInt frames = context.symbolic_ints(number, "frame_step", 1).at(0);
  const V places = c.add(c.mul(c.iota(frames, {frames, 1}), stride), c.iota(length, {1, length}));
  const V parts = c.gather(x, c.binary("min", places, c.dims({extent - 1}, {1})), 1);
  return build::fourier(context, parts, context.optional_input(2), length, is_half, false);
}

}  // namespace

// Frames of the signal [batch, n, 1 or 2], weighed by the window and transformed.
void convert_stft(NodeContext& context) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  context.require_bound_extents(x);
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
