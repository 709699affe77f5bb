// Convolutions, pools and matrix products.
#include <algorithm>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/tflite/converters/windows.h"

namespace tensormill::frontend::tflite {

build::Windows windows_over(const NodeContext& node, V x, Padding padding, const std::vector<int64_t>& kernel,
                            std::vector<int64_t> strides, std::vector<int64_t> dilations) {
  using Numbers = std::initializer_list<const std::vector<int64_t>*>;
  for (const std::vector<int64_t>* numbers : Numbers{&kernel, &strides, &dilations}) {
    for (const int64_t number : *numbers) {
      if (number < 1 || number > build::kMaxWindowNumber)
        node.invalid("a window, stride or dilation of " + std::to_string(number));
    }
  }
  const size_t rank = kernel.size();
  build::Windows windows{kernel, std::move(strides), std::move(dilations), {}};
  windows.pads.assign(2 * rank, 0);
  if (padding == Padding::kValid) return windows;
  build::pad_same(windows, node.type(x).shape, true);
  return windows;
}

namespace {

void check_rank(const NodeContext& node, V value, int64_t rank, const char* what) {
  if (node.rank(value) != rank)
    node.invalid(std::string(what) + " has rank " + std::to_string(node.rank(value)) + ", expected " +
                 std::to_string(rank));
}

/// The shape of an operand of weights, which are known or at least of known extents.
ir::Ints weight_shape(NodeContext& node, size_t index, size_t rank) {
  const ir::SymShape shape = node.shape(node.stored(index));
  if (shape.size() != rank || !shape.is_constant())
    node.invalid("the weights have shape " + to_string(shape) + ", expected rank " + std::to_string(rank));
  return shape.hints();
}

int64_t channels_of(const NodeContext& node, V map) {
  const ir::SymInt channels = node.type(map).shape[1];
  if (!channels.is_constant()) node.unsupported("operand 0", "its channels are a free dim");
  return channels.hint();
}

V bias_of(NodeContext& node, size_t index) {
  const V bias = node.optional_real(index);
  return bias == ir::kAbsent ? bias : Compose(node).reshape(bias, {num_elements(node.shape(bias))});
}

}  // namespace

namespace {

int64_t groups_of(const NodeContext& node, int64_t channels, int64_t of_filters) {
  if (of_filters < 1 || channels % of_filters != 0)
    node.invalid("an input of " + std::to_string(channels) + " channels for filters of " +
                 std::to_string(of_filters));
  return channels / of_filters;
}

ConvForm plain_form(NodeContext& node, V map, const Shape& w, int64_t channels) {
  const auto options = node.options<Conv2DOptions>();
  ConvForm form{{}, {0, 3, 1, 2}, {w[0], w[3], w[1], w[2]}, options.fused_activation_function};
  form.spec.windows =
      windows_over(node, map, options.padding, {w[1], w[2]}, {options.stride_h, options.stride_w},
                   {options.dilation_h_factor, options.dilation_w_factor});
  form.spec.groups = groups_of(node, channels, w[3]);
  return form;
}

// Filters [1,H,W,channels * multiplier]: each channel has as many as the shapes say.
ConvForm depthwise_form(NodeContext& node, V map, const Shape& w, int64_t channels) {
  const auto options = node.options<DepthwiseConv2DOptions>();
  if (w[0] != 1 || channels < 1 || w[3] % channels != 0)
    node.invalid("filters of shape " + to_string(w) + " for " + std::to_string(channels) + " channels");
  ConvForm form{{}, {3, 0, 1, 2}, {w[3], 1, w[1], w[2]}, options.fused_activation_function};
  form.spec.windows =
      windows_over(node, map, options.padding, {w[1], w[2]}, {options.stride_h, options.stride_w},
                   {options.dilation_h_factor, options.dilation_w_factor});
  form.spec.groups = channels;
  return form;
}

}  // namespace

ConvForm conv_form(NodeContext& node, V map) {
  const ir::Ints w = weight_shape(node, 1, 4);
  const int64_t channels = channels_of(node, map);
  ConvForm form =
      node.op() == "CONV_2D" ? plain_form(node, map, w, channels) : depthwise_form(node, map, w, channels);
  return form;
}

void convert_conv_2d(NodeContext& node) {
  check_rank(node, node.stored(0), 4, "the input");
  const V map = node.real_first(0);
  const ConvForm form = conv_form(node, map);
  const V weights = node.weights(1, form.perm, form.weights);
  const V y = build::conv(node, map, weights, bias_of(node, 2), form.spec);
  node.set_real(0, node.last(y), form.activation);
}

// Filters [D,H,W,I,O].
void convert_conv_3d(NodeContext& node) {
  const auto options = node.options<Conv3DOptions>();
  check_rank(node, node.stored(0), 5, "the input");
  const V map = node.real_first(0);
  const ir::Ints w = weight_shape(node, 1, 5);
  const int64_t channels = channels_of(node, map);
  build::ConvSpec spec;
  spec.windows = windows_over(
      node, map, options.padding, {w[0], w[1], w[2]}, {options.stride_d, options.stride_h, options.stride_w},
      {options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor});
  spec.groups = groups_of(node, channels, w[3]);
  const V weights = node.weights(1, {4, 3, 0, 1, 2}, {w[4], w[3], w[0], w[1], w[2]});
  const V y = build::conv(node, map, weights, bias_of(node, 2), spec);
  node.set_real(0, node.last(y), options.fused_activation_function);
}

namespace {

/// The operands are the output's shape, filters, whose extents along the map's axes are `kernel`, x and,
/// maybe, a bias. The pads are those of the convolution that goes from the output to x.
V transposed_conv(NodeContext& node, Padding padding, const std::vector<int64_t>& kernel,
                  const std::vector<int64_t>& strides, V weights) {
  const size_t rank = kernel.size();
  const V map = node.real_first(2);
  const ir::SymShape out = node.known_ints(0, "the output's shape");
  if (out.size() != rank + 2) node.invalid("an output's shape of " + std::to_string(out.size()) + " extents");
  std::vector<int64_t> pads(2 * rank, 0), more(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    if (strides[d] < 1) node.invalid("a stride of " + std::to_string(strides[d]));
    const ir::SymInt whole = (node.shape(map)[d + 2] - 1) * strides[d] + kernel[d];
    // What both depend on is the same in all runs from here on.
    const int64_t excess = whole - out[d + 1];
    more[d] = std::max<int64_t>(-excess, 0);
    if (padding == Padding::kValid && excess > 0)
      node.invalid("an output of " + to_string(out[d + 1]) + " for windows over " + to_string(whole));
    pads[d] = std::max<int64_t>(excess, 0) / 2;
    pads[d + rank] = std::max<int64_t>(excess, 0) - pads[d];
  }
  std::vector<V> inputs{map, weights};
  if (const V bias = bias_of(node, 3); bias != ir::kAbsent) inputs.push_back(bias);
  return node.add("conv_transpose", inputs,
                  {{"strides", strides},
                   {"dilations", std::vector<int64_t>(rank, 1)},
                   {"pads", pads},
                   {"output_padding", more},
                   {"group", int64_t{1}}});
}

}  // namespace

// Filters [O,H,W,I].
void convert_transpose_conv(NodeContext& node) {
  const auto options = node.options<TransposeConvOptions>();
  check_rank(node, node.stored(2), 4, "the input");
  const ir::Ints w = weight_shape(node, 1, 4);
  const V weights = node.weights(1, {3, 0, 1, 2}, {w[3], w[0], w[1], w[2]});
  const V y =
      transposed_conv(node, options.padding, {w[1], w[2]}, {options.stride_h, options.stride_w}, weights);
  node.set_real(0, node.last(y), options.fused_activation_function);
}

// Filters [D,H,W,O,I].
void convert_conv_3d_transpose(NodeContext& node) {
  const auto options = node.options<Conv3DOptions>();
  check_rank(node, node.stored(2), 5, "the input");
  if (options.dilation_d_factor != 1 || options.dilation_h_factor != 1 || options.dilation_w_factor != 1)
    node.unsupported("dilation_factor", "dilations of a transposed convolution are not implemented");
  const ir::Ints w = weight_shape(node, 1, 5);
  const V weights = node.weights(1, {4, 3, 0, 1, 2}, {w[4], w[3], w[0], w[1], w[2]});
  const V y = transposed_conv(node, options.padding, {w[0], w[1], w[2]},
                              {options.stride_d, options.stride_h, options.stride_w}, weights);
  node.set_real(0, node.last(y), options.fused_activation_function);
}

Rows rows_of(NodeContext& node, V x) {
  const auto options = node.options<FullyConnectedOptions>();
  if (options.weights_format != WeightsFormat::kDefault)
    node.unsupported("weights_format", "SHUFFLED4x16INT8 is not implemented");
  const ir::Ints w = weight_shape(node, 1, 2);
  const ir::SymShape shape = node.shape(x);
  const bool is_row = !options.keep_num_dims || shape.empty() || !same(shape.back(), w[1]);
  if (is_row) {
    if (w[1] < 1 || !ir::demand_divisible(num_elements(shape), w[1]))
      node.invalid("an input of shape " + to_string(shape) + " for weights of shape " + to_string(w));
    x = Compose(node).reshape(x, {floordiv(num_elements(shape), w[1]), w[1]});
  }
  return {x, {w[1], w[0]}, options.fused_activation_function};
}

void convert_fully_connected(NodeContext& node) {
  Compose c(node);
  const Rows rows = rows_of(node, node.real(0));
  V y = c.matmul(rows.x, node.weights(1, {1, 0}, rows.weights));
  if (const V bias = bias_of(node, 2); bias != ir::kAbsent) y = c.add(y, bias);
  node.set_real(0, y, rows.activation);
}

void convert_batch_matmul(NodeContext& node) {
  const auto options = node.options<BatchMatMulOptions>();
  Compose c(node);
  V a = node.real(0);
  const V b = node.real(1);
  if (node.rank(a) < 2 || node.rank(b) < 2) node.invalid("an operand has a rank below 2");
  if (options.adj_x) {
    ir::Ints perm = c.count_to(node.rank(a));
    std::swap(perm.back(), perm[perm.size() - 2]);
    a = c.transpose(a, perm);
  }
  node.set_real(0, c.matmul(a, b, options.adj_y));
}

build::PoolSpec pool_over(NodeContext& node, V map) {
  const auto options = node.options<Pool2DOptions>();
  return {windows_over(node, map, options.padding, {options.filter_height, options.filter_width},
                       {options.stride_h, options.stride_w}, {1, 1})};
}

void convert_average_pool(NodeContext& node) {
  check_rank(node, node.stored(0), 4, "the input");
  const V map = node.real_first(0);
  node.set_real(0, node.last(build::avg_pool(node, map, pool_over(node, map))),
                node.options<Pool2DOptions>().fused_activation_function);
}

void convert_max_pool(NodeContext& node) {
  const Activation activation = node.options<Pool2DOptions>().fused_activation_function;
  // The largest integer is that of the largest number.
  const bool is_moved = node.has_output_scale(0) && activation == Activation::kNone;
  check_rank(node, node.stored(0), 4, "the input");
  const V map = is_moved ? node.first(node.stored(0)) : node.real_first(0);
  const V y = node.last(build::max_pool(node, map, pool_over(node, map)));
  is_moved ? node.set_stored(0, y) : node.set_real(0, y, activation);
}

void convert_l2_pool(NodeContext& node) {
  check_rank(node, node.stored(0), 4, "the input");
  const V x = node.real_first(0);
  const V squares = node.add("mul", {x, x});
  const V y = node.add("sqrt", {build::avg_pool(node, squares, pool_over(node, squares))});
  node.set_real(0, node.last(y), node.options<Pool2DOptions>().fused_activation_function);
}

}  // namespace tensormill::frontend::tflite
