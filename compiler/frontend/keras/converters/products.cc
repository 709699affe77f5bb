// Dense layers, convolutions and pools.
#include <algorithm>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/keras/converters/windows.h"

namespace tensormill::frontend::keras {

void check_rank(const LayerContext& context, V x, int64_t rank) {
  if (context.rank(x) != rank)
    context.invalid("the input has rank " + std::to_string(context.rank(x)) + ", expected " +
                    std::to_string(rank));
}

size_t spatial_rank(const LayerContext& context) {
  for (const char digit : context.class_name()) {
    if (digit >= '1' && digit <= '3') return static_cast<size_t>(digit - '0');
  }
  context.invalid("it has a converter of other layers");
}

V spatial_input(LayerContext& context) {
  const V x = context.input();
  check_rank(context, x, static_cast<int64_t>(spatial_rank(context)) + 2);
  return x;
}

int64_t channels_of(const LayerContext& context, V map) {
  const ir::SymInt channels = context.type(map).shape[1];
  if (!channels.is_constant()) context.unsupported("input", "its channels are a free dim");
  return channels.hint();
}

build::Windows windows_over(const LayerContext& context, V x, const std::string& padding,
                            const std::vector<int64_t>& kernel, std::vector<int64_t> strides,
                            std::vector<int64_t> dilations) {
  using Numbers = std::initializer_list<const std::vector<int64_t>*>;
  for (const std::vector<int64_t>* numbers : Numbers{&kernel, &strides, &dilations}) {
    for (const int64_t number : *numbers) {
      if (number < 1 || number > build::kMaxWindowNumber)
        context.invalid("a window, stride or dilation of " + std::to_string(number));
    }
  }
  const size_t rank = kernel.size();
  build::Windows windows{kernel, std::move(strides), std::move(dilations), {}};
  windows.pads.assign(2 * rank, 0);
  if (padding == "causal" && rank == 1) {
    windows.pads[0] = (windows.kernel[0] - 1) * windows.dilations[0];
  } else if (padding == "same") {
    build::pad_same(windows, context.type(x).shape, true);
  } else if (padding != "valid") {
    context.invalid("padding is \"" + padding + "\"");
  }
  return windows;
}

namespace {

V bias_of(LayerContext& context, size_t index) {
  return context.config().flag("use_bias", true) ? context.weight("bias", index) : ir::kAbsent;
}

/// Weights [spatial...,in,out] with the last axes first, in the order that `front` says.
V filters(LayerContext& context, V w, const std::vector<int64_t>& front) {
  const int64_t spatial = context.rank(w) - 2;
  std::vector<int64_t> perm;
  for (const int64_t axis : front) perm.push_back(spatial + axis);
  for (int64_t axis = 0; axis < spatial; ++axis) perm.push_back(axis);
  return Compose(context).transpose(w, perm);
}

struct Geometry {
  std::vector<int64_t> kernel, strides, dilations;
  std::string padding;
};

Geometry geometry_of(const LayerContext& context, size_t rank) {
  const LayerConfig& config = context.config();
  return {config.integers("kernel_size", rank), config.integers("strides", rank, 1),
          config.integers("dilation_rate", rank, 1), config.text("padding", "valid")};
}

V convolved(LayerContext& context, V map, V weights, V bias, int64_t groups, const Geometry& geometry) {
  build::ConvSpec spec;
  spec.windows =
      windows_over(context, map, geometry.padding, geometry.kernel, geometry.strides, geometry.dilations);
  spec.groups = groups;
  return build::conv(context, map, weights, bias, spec);
}

}  // namespace

void convert_dense(LayerContext& context) {
  const V w = context.weight("kernel", 0), x = context.input();
  const ir::Ints shape = context.weight_shape(w, 2, "the kernel");
  if (context.config().integer("units", shape[1]) != shape[1])
    context.invalid("a kernel of shape " + to_string(shape) + " for " +
                    std::to_string(context.config().integer("units")) + " units");
  if (context.rank(x) < 2 || !demand(ir::Relation::kEqual, context.shape(x).back(), shape[0]))
    context.invalid("an input of shape " + to_string(context.shape(x)) + " for a kernel of shape " +
                    to_string(shape));
  Compose c(context);
  V y = c.matmul(x, w);
  if (const V bias = bias_of(context, 1); bias != ir::kAbsent) y = c.add(y, bias);
  context.set_output(with_activation(context, y));
}

void convert_conv(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  const V map = context.map(x), w = context.weight("kernel", 0);
  const ir::Ints shape = context.weight_shape(w, rank + 2, "the kernel");
  const Geometry geometry = geometry_of(context, rank);
  const int64_t channels = channels_of(context, map), groups = context.config().integer("groups", 1);
  context.config().skip("filters");
  if (groups < 1 || channels != shape[rank] * groups || shape[rank + 1] % groups != 0 ||
      !std::equal(geometry.kernel.begin(), geometry.kernel.end(), shape.begin()))
    context.invalid("a kernel of shape " + to_string(shape) + " in " + std::to_string(groups) +
                    " groups for " + std::to_string(channels) + " channels");
  const V y = convolved(context, map, filters(context, w, {1, 0}), bias_of(context, 1), groups, geometry);
  context.set_output(with_activation(context, context.unmap(y)));
}

namespace {

/// Kernels [spatial...,channels,multiplier]: each channel has as many filters.
V depthwise(LayerContext& context, V map, V w, V bias, const Geometry& geometry) {
  const size_t rank = geometry.kernel.size();
  const ir::Ints shape = context.weight_shape(w, rank + 2, "the depthwise kernel");
  const int64_t channels = channels_of(context, map);
  context.config().skip("depth_multiplier");
  if (shape[rank] != channels || !std::equal(geometry.kernel.begin(), geometry.kernel.end(), shape.begin()))
    context.invalid("a depthwise kernel of shape " + to_string(shape) + " for " + std::to_string(channels) +
                    " channels");
  ir::SymShape arranged{channels * shape[rank + 1], 1};
  arranged.insert(arranged.end(), shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(rank));
  const V weights = Compose(context).reshape(filters(context, w, {0, 1}), arranged);
  return convolved(context, map, weights, bias, channels, geometry);
}

/// Reads the options of layers that are implemented for one group alone. Their weights say how many filters
/// there are.
void refuse_groups(LayerContext& context) {
  if (context.config().integer("groups", 1) != 1)
    context.unsupported("option groups", "it is not implemented");
  context.config().skip("filters");
}

}  // namespace

void convert_depthwise_conv(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  refuse_groups(context);
  // Keras 2 called the kernel so.
  const bool is_old = !context.weights().is_numbered() && context.weights().find("kernel", 0) == nullptr;
  const V w = context.weight(is_old ? "depthwise_kernel" : "kernel", 0);
  const V y = depthwise(context, context.map(x), w, bias_of(context, 1), geometry_of(context, rank));
  context.set_output(with_activation(context, context.unmap(y)));
}

void convert_separable_conv(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  refuse_groups(context);
  const V inner = depthwise(context, context.map(x), context.weight("depthwise_kernel", 0), ir::kAbsent,
                            geometry_of(context, rank));
  const V w = context.weight("pointwise_kernel", 1);
  const ir::Ints shape = context.weight_shape(w, rank + 2, "the pointwise kernel");
  if (channels_of(context, inner) != shape[rank])
    context.invalid("a pointwise kernel of shape " + to_string(shape) + " for " +
                    std::to_string(channels_of(context, inner)) + " channels");
  const std::vector<int64_t> ones(rank, 1);
  const V y = convolved(context, inner, filters(context, w, {1, 0}), bias_of(context, 2), 1,
                        {ones, ones, ones, "valid"});
  context.set_output(with_activation(context, context.unmap(y)));
}

namespace {

/// What of the whole of a transposed convolution is cut off in front and behind, and what is added behind.
struct TransposePads {
  std::vector<int64_t> pads, more;
};

// The length of the result is n * stride for "same" and that of the whole for "valid", or, with
// output_padding, that many more than the least one.
TransposePads transpose_pads(const LayerContext& context, const Geometry& geometry) {
  const size_t rank = geometry.kernel.size();
  const bool is_same = geometry.padding == "same", is_given = context.config().has("output_padding");
  if (!is_same && geometry.padding != "valid") context.invalid("padding is \"" + geometry.padding + "\"");
  const ir::Ints given = context.config().integers("output_padding", rank, 0);
  TransposePads made{std::vector<int64_t>(2 * rank, 0), std::vector<int64_t>(rank, 0)};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = geometry.strides[d];
    for (const int64_t number : {geometry.kernel[d], stride, geometry.dilations[d]}) {
      if (number < 1 || number > build::kMaxWindowNumber)
        context.invalid("a window, stride or dilation of " + std::to_string(number));
    }
    const int64_t reach = (geometry.kernel[d] - 1) * geometry.dilations[d] + 1;
    const int64_t least = is_same ? reach % 2 : reach;
    if (is_given && (given[d] < 0 || given[d] >= stride || (is_same && least + given[d] > stride)))
      context.invalid("an output_padding of " + std::to_string(given[d]) + " for a stride of " +
                      std::to_string(stride));
    // How much longer the whole is than the result, for one window.
    int64_t over = is_same ? reach - stride : std::min<int64_t>(reach - stride, 0);
    if (is_given) over = reach - least - given[d];
    const int64_t cut = std::max<int64_t>(over, 0);
    made.pads[d] = cut / 2;
    made.pads[d + rank] = cut - cut / 2;
    made.more[d] = std::max<int64_t>(-over, 0);
  }
  return made;
}

}  // namespace

// Kernels [spatial...,out,in].
void convert_conv_transpose(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  refuse_groups(context);
  const V map = context.map(x), w = context.weight("kernel", 0);
  const ir::Ints shape = context.weight_shape(w, rank + 2, "the kernel");
  const Geometry geometry = geometry_of(context, rank);
  if (channels_of(context, map) != shape[rank + 1] ||
      !std::equal(geometry.kernel.begin(), geometry.kernel.end(), shape.begin()))
    context.invalid("a kernel of shape " + to_string(shape) + " for " +
                    std::to_string(channels_of(context, map)) + " channels");
  const TransposePads pads = transpose_pads(context, geometry);
  std::vector<V> operands{map, filters(context, w, {1, 0})};
  if (const V bias = bias_of(context, 1); bias != ir::kAbsent) operands.push_back(bias);
  const V y = context.add("conv_transpose", operands,
                          {{"strides", geometry.strides},
                           {"dilations", geometry.dilations},
                           {"pads", pads.pads},
                           {"output_padding", pads.more},
                           {"group", int64_t{1}}});
  context.set_output(with_activation(context, context.unmap(y)));
}

void convert_pool(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  const V map = context.map(x);
  const LayerConfig& config = context.config();
  const ir::Ints size = config.integers("pool_size", rank);
  const ir::Ints strides = config.has("strides") ? config.integers("strides", rank) : size;
  const build::PoolSpec spec{windows_over(context, map, config.text("padding", "valid"), size, strides,
                                          std::vector<int64_t>(rank, 1))};
  const bool is_max = context.class_name().starts_with("Max");
  context.set_output(
      context.unmap(is_max ? build::max_pool(context, map, spec) : build::avg_pool(context, map, spec)));
}

void convert_global_pool(LayerContext& context) {
  const V x = spatial_input(context);
  Compose c(context);
  const bool is_max = context.class_name().starts_with("GlobalMax"),
             keeps = context.config().flag("keepdims", false);
  const V map = context.map(x);
  const std::optional<size_t> given = is_max ? std::nullopt : context.tensor_argument("mask", 1);
  const V mask = given ? context.raw(*given) : context.mask();
  if (mask != ir::kAbsent && !is_max) {
    // The mean of the steps that count.
    const ir::SymShape steps = c.shape(mask);
    const V weights = c.cast(c.reshape(mask, {steps[0], 1, steps[1]}), c.dtype(map));
    const V sum = c.reduce("reduce_sum", c.mul(map, weights), {2}, true);
    const V mean = c.div(sum, c.reduce("reduce_sum", weights, {2}, true));
    return context.set_output(keeps ? context.unmap(mean) : c.squeeze(mean, 2));
  }
  V y = c.reduce_spatial(is_max ? "reduce_max" : "reduce_mean", map);
  if (keeps) return context.set_output(context.unmap(y));
  const ir::SymShape shape = c.shape(y);
  context.set_output(c.reshape(y, {shape[0], shape[1]}));
}

}  // namespace tensormill::frontend::keras
