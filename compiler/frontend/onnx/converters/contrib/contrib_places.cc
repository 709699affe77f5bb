// com.microsoft's operators that move elements, and those of pictures whose channels stand last.
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/build/maps/channels.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

using V = ir::ValueId;

void convert_as_identity(NodeContext& context) {
  context.set_output(0, context.add("identity", {context.input(0)}));
}

// start, limit and a delta that may be left out
void convert_contrib_range(NodeContext& context) {
  Compose c(context);
  const V start = context.input(0);
  const V delta = context.has_input(2) ? context.input(2) : c.number(start, 1);
  context.set_output(0, context.results_as("", "Range", {start, context.input(1), delta}).at(0));
}

// Windows of `size` elements along attribute dim, `step` apart, as a new last axis.
void convert_unfold_tensor(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  const int64_t rank = context.rank(x), axis = context.normalize_axis(context.int_attr("dim", -1), rank);
  const int64_t size = context.required_int("size"), step = context.int_attr("step", 1);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  if (size < 1 || size > extent || step < 1)
    context.invalid("windows of " + std::to_string(size) + " elements every " + std::to_string(step) +
                    " of " + std::to_string(extent));
  const int64_t count = (extent - size) / step + 1;
  const V starts = c.mul(c.iota(count, {count, 1}), c.dims({step}, {}));
  const V taken = c.gather(x, c.add(starts, c.iota(size, {1, size})), axis);
  ir::Ints perm = c.count_to(rank + 1);
  perm.erase(perm.begin() + axis + 1);
  perm.push_back(axis + 1);
  context.set_output(0, c.transpose(taken, perm));
}

// The cheapest path through costs [rows, columns], or [1, rows, columns], as rows and columns of its cells.
void convert_dynamic_time_warping(NodeContext& context) {
  Compose c(context);
  context.require_fixed_shape(0);
  V costs = context.input(0);
  const ir::ValueType& type = context.type(costs);
  const bool is_one_of_many = type.shape.size() == 3 && type.shape[0] == 1;
  if (type.dtype != DType::kFloat32 || (type.shape.size() != 2 && !is_one_of_many))
    context.invalid("the costs are " + ir::to_string(type) +
                    ", expected f32 [rows, columns] or one more axis of 1");
  if (is_one_of_many) costs = c.squeeze(costs, 0);
  context.set_output(0, context.add_many("warping_path", {costs}, {})[0]);
}

// Scores [B,vocabulary] become -inf for each token that would repeat `ngram_size` tokens of input_ids [B,S].
void convert_ngram_repeat_block(NodeContext& context) {
  Compose c(context);
  const V ids = context.input(0), scores = context.input(1);
  const ir::SymShape shape = c.shape(ids);
  const int64_t size = context.required_int("ngram_size");
  if (shape.size() != 2 || context.rank(scores) != 2 || size < 1)
    context.invalid("input_ids of shape " + to_string(shape) + ", and n-grams of " + std::to_string(size));
  const ir::SymInt windows = shape[1] - size + 1;
  if (windows < 1) return context.set_output(0, c.unary("identity", scores));
  const double infinity = std::numeric_limits<double>::infinity();
  V floor = c.filled(c.dtype(scores), {shape[0], windows}, -infinity);
  if (size > 1) {
    const V places = c.add(c.iota(windows, {windows, 1}), c.iota(size - 1, {1, size - 1}));
    const V last = c.unsqueeze(c.slice(ids, 1, windows, size - 1), 1);
    const V equal = c.cast(c.binary("equal", c.gather(ids, places, 1), last), DType::kInt32);
    const V repeats = c.cast(c.reduce("reduce_min", equal, {2}, false), DType::kBool);
    floor = c.where(repeats, floor, c.number(floor, infinity));
  }
  const V next = c.slice(ids, 1, size - 1, windows);
  context.set_output(0, context.add("scatter", {scores, next, floor},
                                    {{"axis", int64_t{1}}, {"reduction", std::string("min")}}));
}

namespace {

/// Where the points of boxes lie along an axis of `extent` elements: [R,count], from the ends `low` and
/// `high` [R,1] of each, which are parts of the axis.
V box_points(Compose& c, V low, V high, int64_t extent, int64_t count) {
  const double last = static_cast<double>(extent - 1);
  if (count == 1) return c.times(c.add(low, high), 0.5 * last);
  const V step = c.times(c.sub(high, low), last / static_cast<double>(count - 1));
  return c.add(c.times(low, last), c.mul(step, c.cast(c.iota(count, {1, count}), c.dtype(low))));
}

struct Corners {
  V inside;     ///< bool, whether the point is on the axis
  V low, high;  ///< i64 elements around the point
  V part;       ///< how far the point is from the low one
};

Corners corners_of(Compose& c, V points, int64_t extent, bool nearest) {
  const double last = static_cast<double>(extent - 1);
  Corners corners;
  corners.inside = c.binary("and", c.binary("greater_equal", points, c.number(points, 0)),
                            c.binary("less_equal", points, c.number(points, last)));
  // Half a step goes up.
  const V low = nearest ? c.unary("floor", c.plus(points, 0.5)) : c.unary("floor", points);
  const auto element = [&](V x) { return c.cast(c.clip(x, 0, last), DType::kInt64); };
  corners.low = element(low);
  corners.high = element(c.unary("ceil", points));
  corners.part = c.sub(points, low);
  return corners;
}

}  // namespace

// X [N,C,H,W], boxes [R,4] of y and x from 0 to 1, the picture of each, and the size of the results: points
// in even steps over each box, the value between the four elements around them.
void convert_crop_and_resize(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0), boxes = context.input(1);
  const ir::SymShape shape = c.shape(x);
  const ir::Ints size = context.known_ints(3, "crop_size");
  if (shape.size() != 4 || context.rank(boxes) != 2 || size.size() != 2 || size[0] < 1 || size[1] < 1)
    context.invalid("X has shape " + to_string(shape) + ", crop_size is " + to_string(size));
  const ir::SymInt count = c.shape(boxes)[0], points = context.product(size[0], size[1]);
  const bool nearest = context.string_attr("mode", "bilinear") == "nearest";
  const auto end = [&](int64_t at) { return c.slice(boxes, 1, at, 1); };
  const auto axis = [&](int64_t d) {
    const ir::SymInt &extent = shape[static_cast<size_t>(d) + 2], &wanted = size[static_cast<size_t>(d)];
    return corners_of(c, box_points(c, end(d), end(d + 2), extent, wanted), extent, nearest);
  };
  const Corners rows = axis(0), columns = axis(1);
  const V pictures = c.reshape(c.gather(x, context.input(2), 0), {count, shape[1], shape[2] * shape[3]});
  const ir::SymShape along_rows{count, 1, size[0], 1}, along_columns{count, 1, 1, size[1]};
  const auto taken = [&](V row, V column) {
    const V place =
        c.add(c.mul(c.reshape(row, along_rows), c.dims({shape[3]}, {})), c.reshape(column, along_columns));
    const V index = c.expand(c.reshape(place, {count, 1, points}), {count, shape[1], points});
    return c.reshape(c.gather_elements(pictures, index, 2), {count, shape[1], size[0], size[1]});
  };
  V result = taken(rows.low, columns.low);
  if (!nearest) {
    const V right = c.reshape(columns.part, along_columns), down = c.reshape(rows.part, along_rows);
    const auto between = [&](V a, V b, V part) { return c.add(a, c.mul(c.sub(b, a), part)); };
    const V top = between(result, taken(rows.low, columns.high), right);
    const V bottom = between(taken(rows.high, columns.low), taken(rows.high, columns.high), right);
    result = between(top, bottom, down);
  }
  const V inside =
      c.binary("and", c.reshape(rows.inside, along_rows), c.reshape(columns.inside, along_columns));
  context.set_output(0,
                     c.where(inside, result, c.number(result, context.float_attr("extrapolation_value", 0))));
}

// Operand 2 is what is cut off the result at both ends of each axis.
void convert_conv_transpose_of_pads(NodeContext& context) {
  Compose c(context);
  const ir::Ints pads = context.known_ints(2, "Pads");
  V result =
      context.results_as("", "ConvTranspose", {context.input(0), context.input(1), context.optional_input(3)})
          .at(0);
  const size_t rank = c.shape(result).size() - 2;
  if (pads.size() != 2 * rank) context.invalid("Pads are " + to_string(pads));
  for (size_t d = 0; d < rank; ++d) {
    const ir::SymInt extent = c.shape(result)[d + 2] - pads[d] - pads[d + rank];
    if (pads[d] < 0 || pads[d + rank] < 0 || extent < 0) context.invalid("Pads are " + to_string(pads));
    result = c.slice(result, static_cast<int64_t>(d) + 2, pads[d], extent);
  }
  context.set_output(0, result == context.input(0) ? c.unary("identity", result) : result);
}

// NhwcConv, NhwcFusedConv and QLinearConv with attribute channels_last: X, an addend Z and the result are
// pictures whose channels stand last.
void convert_channels_last_conv(NodeContext& context) {
  const std::string& op = context.node().op_type;
  const bool is_quantized = op == "QLinearConv", is_fused = op == "NhwcFusedConv";
  std::vector<V> operands;
  for (size_t i = 0; i < context.num_inputs(); ++i) operands.push_back(context.optional_input(i));
  const auto convolved = [&](V x) {
    operands[0] = x;
    return is_fused ? context.results_as("com.microsoft", "FusedConv", operands).at(0)
                    : context.results_as("", is_quantized ? "QLinearConv" : "Conv", operands).at(0);
  };
  context.input(0);
  if (is_quantized && context.int_attr("channels_last", 0) == 0)
    return context.set_output(0, convolved(operands[0]));
  if (is_fused && context.has_input(3)) operands[3] = channels_first(context, operands[3]);
  context.set_output(0, with_channels_first(context, operands[0], convolved));
}

}  // namespace tensormill::frontend::onnx
