// Custom operators of MediaPipe's networks. Their options are the runtime's own structs, as they lie in
// memory.
#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/frontend/tflite/converters/windows.h"

namespace tensormill::frontend::tflite {

namespace {

/// The first `count` numbers of the options.
std::vector<int32_t> numbers_of(const NodeContext& node, size_t count) {
  const std::string_view bytes = node.node().custom_options;
  std::vector<int32_t> numbers(count);
  if (bytes.size() < count * sizeof(int32_t))
    node.invalid("its options have " + std::to_string(bytes.size()) + " bytes, expected at least " +
                 std::to_string(count * sizeof(int32_t)));
  std::memcpy(numbers.data(), bytes.data(), count * sizeof(int32_t));
  return numbers;
}

/// Numbered otherwise than in the schema.
Padding padding_of(const NodeContext& node, int32_t number) {
  if (number != 1 && number != 2) node.invalid("padding " + std::to_string(number));
  return number == 1 ? Padding::kSame : Padding::kValid;
}

/// Extents of a map [1 or n,h,w,c] that are numbers.
ir::Ints map_shape(NodeContext& node, V map) {
  const ir::SymShape shape = node.shape(map);
  if (shape.size() != 4) node.invalid("a map of shape " + to_string(shape));
  for (size_t axis = 1; axis < 4; ++axis)
    if (!shape[axis].is_constant()) node.unsupported("operand 0", "extents of its map are free dims");
  return {-1, shape[1].hint(), shape[2].hint(), shape[3].hint()};
}

struct Pooling {
  Padding padding = Padding::kSame;
  Shape strides, kernel;  ///< of rows, of columns
  Activation activation = Activation::kNone;
};

Pooling pooling_of(NodeContext& node) {
  constexpr int64_t kMostPlaces = 256;
  const std::vector<int32_t> numbers = numbers_of(node, 6);
  Pooling pooling{padding_of(node, numbers[0]), {numbers[2], numbers[1]}, {numbers[4], numbers[3]}};
  for (const Shape* all : {&pooling.strides, &pooling.kernel}) {
    for (const int64_t number : *all)
      if (number < 1 || number > kMostPlaces) node.invalid("a window or stride of " + std::to_string(number));
  }
  if (pooling.kernel[0] * pooling.kernel[1] > kMostPlaces)
    node.unsupported("filter", "windows of more than " + std::to_string(kMostPlaces) + " elements");
  if (numbers[5] < 0 || numbers[5] > static_cast<int32_t>(Activation::kSignBit))
    node.invalid("activation " + std::to_string(numbers[5]));
  pooling.activation = static_cast<Activation>(numbers[5]);
  return pooling;
}

/// x with `number` around it, so that windows of the pooling lie side by side.
V padded(NodeContext& node, V x, const Shape& shape, const Pooling& pooling, Shape& windows) {
  std::vector<int64_t> pads(8, 0);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t extent = shape[d + 1], kernel = pooling.kernel[d], stride = pooling.strides[d];
    const bool is_same = pooling.padding == Padding::kSame;
    const int64_t count = is_same ? (extent + stride - 1) / stride : (extent - kernel) / stride + 1;
    if (extent < 1 || (!is_same && extent < kernel)) node.invalid("a window larger than its map");
    const int64_t excess = std::max<int64_t>((count - 1) * stride + kernel - extent, 0);
    pads[d + 1] = is_same ? excess / 2 : 0;
    pads[d + 5] = is_same ? excess - excess / 2 : 0;
    windows.push_back(count);
  }
  if (pads == std::vector<int64_t>(8, 0)) return x;
  const auto lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  return node.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", lowest}});
}

}  // namespace

// Operands: x [n,h,w,i], filters [o,kh,kw,i], bias [o]. Options: padding, strides of columns and rows.
void convert_transposed_conv_bias(NodeContext& node) {
  const std::vector<int32_t> numbers = numbers_of(node, 3);
  const Shape strides{numbers[2], numbers[1]};
  const bool is_same = padding_of(node, numbers[0]) == Padding::kSame;
  const ir::SymShape filters = node.shape(node.stored(1));
  if (filters.size() != 4 || !filters.is_constant())
    node.invalid("filters of shape " + to_string(filters) + ", expected rank 4");
  const Shape w = filters.hints();
  const ir::Ints shape = map_shape(node, node.stored(0));
  std::vector<int64_t> pads(4, 0);
  for (size_t d = 0; d < 2; ++d) {
    if (strides[d] < 1 || strides[d] > build::kMaxWindowNumber)
      node.invalid("a stride of " + std::to_string(strides[d]));
    const int64_t excess = is_same ? std::max<int64_t>(w[d + 1] - (shape[d + 1] - 1) % strides[d] - 1, 0) : 0;
    pads[d] = excess / 2;
    pads[d + 2] = excess - excess / 2;
  }
  std::vector<V> inputs{node.real_first(0), node.weights(1, {3, 0, 1, 2}, {w[3], w[0], w[1], w[2]})};
  if (const V bias = node.optional_real(2); bias != ir::kAbsent)
    inputs.push_back(Compose(node).reshape(bias, {w[0]}));
  const V y = node.add("conv_transpose", inputs,
                       {{"strides", std::vector<int64_t>(strides)},
                        {"dilations", std::vector<int64_t>(2, 1)},
                        {"pads", pads},
                        {"output_padding", std::vector<int64_t>(2, 0)},
                        {"group", int64_t{1}}});
  node.set_real(0, node.last(y));
}

// The largest element of each window, and where it stands in the window, the first of equal ones: row times
// columns of a window plus column, as a real number that is larger by a tenth.
void convert_max_pool_with_places(NodeContext& node) {
  const Pooling pooling = pooling_of(node);
  Compose c(node);
  const V x = node.real(0);
  const ir::Ints shape = map_shape(node, x);
  Shape windows;
  const V around = padded(node, x, shape, pooling, windows);
  std::vector<V> parts;
  for (int64_t row = 0; row < pooling.kernel[0]; ++row) {
    const V rows = c.slice(around, 1, row, windows[0], pooling.strides[0]);
    for (int64_t column = 0; column < pooling.kernel[1]; ++column)
      parts.push_back(c.unsqueeze(c.slice(rows, 2, column, windows[1], pooling.strides[1]), 4));
  }
  const V all = c.concat(parts, 4);
  node.set_real(0, c.reduce("reduce_max", all, {4}, false), pooling.activation);
  if (node.num_outputs() < 2) return;
  node.set_real(1, c.plus(c.cast(c.arg_max(all, 4, false), DType::kFloat32), 0.1));
}

// Operands: what was the largest of each window, and where it stood. Windows lie side by side.
void convert_max_unpooling(NodeContext& node) {
  const Pooling pooling = pooling_of(node);
  if (pooling.strides != pooling.kernel)
    node.unsupported("stride", "windows that overlap, or have gaps between them, are not implemented");
  Compose c(node);
  const V x = node.real(0);
  const ir::Ints shape = map_shape(node, x);
  const ir::SymInt batch = node.shape(x)[0];
  const int64_t rows = pooling.kernel[0], columns = pooling.kernel[1];
  const ir::SymShape apart{batch, shape[1], 1, shape[2], 1, shape[3]};
  std::vector<int64_t> numbers(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const V places = c.ints(numbers, {1, 1, rows, 1, columns, 1});
  const V at = c.reshape(c.cast(node.real(1), DType::kInt64), apart);
  const V spread = c.where(c.binary("equal", at, places), c.reshape(x, apart), c.number(x, 0));
  node.set_real(0, c.reshape(spread, {batch, shape[1] * rows, shape[2] * columns, shape[3]}),
                pooling.activation);
}

}  // namespace tensormill::frontend::tflite
