// AffineGrid, CenterCropPad, TensorScatter and ImageDecoder: results by position, and pictures.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/image/image.h"

namespace tensormill::frontend::onnx {

using V = ir::ValueId;

namespace {

/// The homogeneous positions [spatial..., rank+1] of all elements, that on the last axis first, worked out
/// from their indices: the extents may be free.
V grid_nodes(Compose& c, DType dtype, const ir::SymShape& spatial, bool align) {
  ir::SymShape each = spatial;
  each.push_back(1);
  const DType wide = dtype_bytes(dtype) < 4 ? DType::kFloat32 : dtype;
  std::vector<V> parts;
  for (size_t d = spatial.size(); d-- > 0;) {
    ir::SymShape along(each.size(), 1);
    along[d] = spatial[d];
    const V at = c.cast(c.iota(spatial[d], along), wide), extent = c.extent(at, spatial[d]);
    // One element alone stands at -1.
    const V last = c.binary("max", c.minus(extent, 1), c.number(extent, 1));
    const V place = align ? c.div(c.times(at, 2), last) : c.div(c.plus(c.times(at, 2), 1), extent);
    parts.push_back(c.expand(c.minus(place, 1), each));
  }
  parts.push_back(c.filled(wide, each, 1));
  return c.cast(c.concat(std::move(parts), static_cast<int64_t>(spatial.size())), dtype);
}

/// AffineGrid of a size that a run says.
V dynamic_grid(NodeContext& context, bool align) {
  Compose c(context);
  V theta = context.input(0);
  const ir::SymShape shape = c.shape(theta), numbers = c.shape(context.input(1));
  const ir::SymInt rank = shape.size() == 3 ? shape[1] : ir::SymInt(0);
  if ((rank != 2 && rank != 3) || shape[2] != rank + 1 || numbers != ir::SymShape{rank + 2})
    context.invalid("theta has shape " + to_string(shape) + " for a size of " + to_string(numbers));
  const auto number = [&](int64_t at) {
    return c.cast(row_element(context, context.input(1), at), DType::kInt64);
  };
  context.require_bound_extents(theta);
  const V batch = number(0), own = c.dims({shape[0]}, {1});
  theta = value_if(context, theta,
                   {c.binary("equal", batch, own), "size has a batch of {}, theta of {}", {batch, own}});
  ir::SymShape out{shape[0]}, spatial;
  for (int64_t d = 0; d < rank; ++d) {
    spatial.push_back(run_extent(context, number(d + 2), kMaxListed, "size"));
    out.push_back(spatial.back());
  }
  out.push_back(rank);
  const V grid = grid_nodes(c, c.dtype(theta), spatial, align);
  const ir::SymShape row{1, num_elements(spatial), rank + 1};
  return c.reshape(c.matmul(c.reshape(grid, row), theta, true), out);
}

}  // namespace

// Opset 20: the positions in [-1, 1] of each output element, x first, moved by theta [N,d,d+1].
void convert_affine_grid(NodeContext& context) {
  Compose c(context);
  const V theta = context.input(0);
  const bool align = context.int_attr("align_corners", 0) != 0;
  if (is_run_time_value(context, 1) && !static_ints(context, context.input(1))) {
    context.set_output(0, dynamic_grid(context, align));
    return;
  }
  const ir::SymShape size = context.known_ints(1, "size");
  const int64_t rank = static_cast<int64_t>(size.size()) - 2;
  if ((rank != 2 && rank != 3) || !demand_equal(c.shape(theta), {size[0], rank, rank + 1}))
    context.invalid("theta has shape " + to_string(c.shape(theta)) + " for a size of " + to_string(size));
  const ir::SymShape spatial(size.begin() + 2, size.end());
  ir::SymInt points = 1;
  for (const ir::SymInt& extent : spatial) points = context.product(points, extent);
  ir::SymShape out{size[0]};
  out.insert(out.end(), spatial.begin(), spatial.end());
  out.push_back(rank);
  // A table of many positions would be larger than what is made of them.
  const bool is_free = !points.is_constant();
  if (is_free || context.product(points, rank + 1) > kMaxListed) {
    const V grid = grid_nodes(c, c.dtype(theta), spatial, align);
    context.set_output(0, c.reshape(c.matmul(c.reshape(grid, {1, points, rank + 1}), theta, true), out));
    return;
  }
  std::vector<double> homogeneous;
  const Shape extents(spatial);
  for (int64_t point = 0; point < points.hint(); ++point) {
    int64_t rest = point;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      const double at = static_cast<double>(rest % extents[d]), extent = static_cast<double>(extents[d]);
      homogeneous.push_back(align ? (extent == 1 ? -1 : 2 * at / (extent - 1) - 1)
                                  : (2 * at + 1) / extent - 1);
    }
    homogeneous.push_back(1);
  }
  const V grid = c.doubles(c.dtype(theta), homogeneous, {1, points, rank + 1});
  context.set_output(0, c.reshape(c.matmul(grid, theta, true), out));
}

// Opset 18: each axis cut to its middle, or filled with zeros on both sides.
void convert_center_crop_pad(NodeContext& context) {
  context.require_bound_extents(context.input(0));
  Compose c(context);
  V x = context.input(0);
  const int64_t rank = context.rank(x);
  const ir::SymShape wanted = context.known_ints(1, "shape");
  const ir::Ints axes = context.ints_attr("axes", c.count_to(rank));
  if (axes.size() != wanted.size())
    context.invalid("shape has " + std::to_string(wanted.size()) + " values for " +
                    std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = context.normalize_axis(axes[i], rank);
    ir::SymShape shape = c.shape(x);
    ir::SymInt& extent = shape[static_cast<size_t>(axis)];
    if (!demand(ir::Relation::kLessEqual, 0, wanted[i])) context.invalid("shape is " + to_string(wanted));
    if (!extent.is_constant() || !wanted[i].is_constant()) {
      x = centered(context, x, axis, wanted[i]);
    } else if (wanted[i] < extent) {
      x = c.slice(x, axis, (extent - wanted[i]) / 2, wanted[i]);
    } else if (wanted[i] > extent) {
      const int64_t missing = wanted[i] - extent;
      extent = missing / 2;
      std::vector<V> parts;
      if (extent > 0) parts.push_back(c.filled(c.dtype(x), shape, 0));
      parts.push_back(x);
      extent = missing - missing / 2;
      parts.push_back(c.filled(c.dtype(x), shape, 0));
      x = c.concat(std::move(parts), axis);
    }
  }
  context.set_output(0, x == context.input(0) ? c.unary("identity", x) : x);
}

// Each row's first `length` elements of the time axis in reverse.
void convert_reverse_sequence(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  const ir::SymShape shape = c.shape(x);
  const ir::SymInt rank = static_cast<int64_t>(shape.size());
  const int64_t batch_axis = context.normalize_axis(context.int_attr("batch_axis", 1), rank);
  const int64_t time_axis = context.normalize_axis(context.int_attr("time_axis", 0), rank);
  ir::SymShape along_time(shape.size(), 1), along_batch(shape.size(), 1);
  along_time[static_cast<size_t>(time_axis)] = shape[static_cast<size_t>(time_axis)];
  along_batch[static_cast<size_t>(batch_axis)] = shape[static_cast<size_t>(batch_axis)];
  const ir::Ints steps = c.count_to(shape[static_cast<size_t>(time_axis)]);
  const V time = c.ints(steps, along_time);
  const V count =
      count_along(context, x, time_axis).value_or(c.dims({shape[static_cast<size_t>(time_axis)]}, {1}));
  const V length = c.reshape(integers_within(context, context.input(1), count, "sequence_lens"), along_batch);
  const V mirrored = c.sub(c.minus(length, 1), time);
  const V from = c.where(c.binary("less", time, length), mirrored, time);
  context.set_output(0, c.gather_elements(x, c.expand(from, shape), time_axis));
}

// Opset 24: rows of an update into a cache, from a place of each batch entry on.
void convert_tensor_scatter(NodeContext& context) {
  Compose c(context);
  const V past = context.input(0), update = context.input(1);
  const ir::SymShape shape = c.shape(past);
  const int64_t rank = context.rank(past), axis = context.normalize_axis(context.int_attr("axis", -2), rank);
  const size_t at = static_cast<size_t>(axis);
  const std::string mode = context.string_attr("mode", "linear");
  if (mode != "linear" && mode != "circular") context.invalid("mode is \"" + mode + "\"");
  ir::SymShape expected = shape;
  expected[at] = c.shape(update).size() == shape.size() ? c.shape(update)[at] : ir::SymInt(-1);
  if (axis == 0 || c.shape(update) != expected || expected[at] > shape[at])
    context.invalid("an update of shape " + to_string(c.shape(update)) + " does not fit a cache of " +
                    to_string(shape));
  const ir::SymInt rows = expected[at], &places = shape[at];
  if (rows == 0 || places == 0) {
    context.set_output(0, c.unary("identity", past));
    return;
  }
  ir::SymShape along(shape.size(), 1), batch(shape.size(), 1);
  along[at] = places;
  batch[0] = shape[0];
  V row = c.iota(places, along);
  if (context.has_input(2)) {
    V first = c.cast(context.input(2), DType::kInt64);
    if (mode == "linear")
      first = integers_within(context, first, c.dims({places - rows}, {1}), "write_indices");
    row = c.sub(row, c.reshape(first, batch));
  }
  const V none = c.ints({0}, {}), last = c.dims({rows - 1}, {});
  if (mode == "circular") row = context.add("mod", {row, c.dims({places}, {})}, {{"fmod", int64_t{0}}});
  const V inside = c.binary("and", c.binary("greater_equal", row, none), c.binary("less_equal", row, last));
  const V chosen = c.binary("max", c.binary("min", row, last), none);
  context.set_output(0, c.where(inside, c.gather_elements(update, c.expand(chosen, shape), axis), past));
}

namespace {

/// The picture whose file is a run's: its size is known once it is decoded.
V dynamic_picture(NodeContext& context, int channels, bool reversed) {
  Compose c(context);
  context.require_fixed_shape(0);
  const V file = context.input(0), extents = context.add("picture_extents", {file});
  ir::SymShape shape;
  for (int64_t side = 0; side < 2; ++side)
    shape.push_back(context.symbolic_ints(c.slice(extents, 0, side, 1), "encoded_stream", 0).at(0));
  shape.push_back(channels);
  const V canvas = c.filled(DType::kUInt8, shape, 0);
  return context.add("decode_picture", {file, canvas}, {{"reversed", int64_t{reversed}}});
}

}  // namespace

// Opset 20: a picture's file becomes [height,width,channels], and a file that cannot be decoded an empty
// picture.
void convert_image_decoder(NodeContext& context) {
  const std::string format = context.string_attr("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    context.invalid("pixel_format is \"" + format + "\"");
  const ir::ValueType& type = context.type(context.input(0));
  if (type.dtype != DType::kUInt8 || type.shape.size() != 1)
    context.invalid("encoded_stream is " + ir::to_string(type));
  const int channels = format == "Grayscale" ? 1 : 3;
  if (!context.is_known(0)) {
    context.set_output(0, dynamic_picture(context, channels, format == "BGR"));
    return;
  }
  const Tensor& file = context.known(0, "encoded_stream");
  const image::Image picture = image::decode_or_empty(
      {static_cast<const std::byte*>(file.data()), file.num_bytes()}, channels, format == "BGR");
  const ir::SymShape shape{picture.height, picture.width, picture.channels};
  context.set_output(0, context.constant(Tensor::from<uint8_t>(shape, picture.pixels)));
}

}  // namespace tensormill::frontend::onnx
