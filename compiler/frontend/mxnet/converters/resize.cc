// Pictures in other sizes.
#include "compiler/build/pictures/resize_maps.h"

#include <cmath>

#include "compiler/frontend/mxnet/converters/windows.h"

namespace tensormill::frontend::mxnet {

namespace {

void check_picture(NodeContext& node, V x) {
  if (node.rank(x) != 4) node.invalid("the input has rank " + std::to_string(node.rank(x)) + ", expected 4");
}

/// A transposed convolution with the weights that the file has.
V upsampled_by_weights(NodeContext& node, V x, int64_t scale) {
  const V weight = node.input_or(1, "weight");
  const int64_t kernel = 2 * scale - scale % 2, pad = scale / 2, filters = node.integer("num_filter");
  if (!same(node.shape(x)[1], filters) || node.rank(weight) != 4 || !same(node.shape(weight)[2], kernel))
    node.invalid("weights of shape " + to_string(node.shape(weight)) + " for an input of shape " +
                 to_string(node.shape(x)));
  return node.add("conv_transpose", {x, weight},
                  {{"strides", std::vector<int64_t>{scale, scale}},
                   {"dilations", std::vector<int64_t>{1, 1}},
                   {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                   {"output_padding", std::vector<int64_t>{0, 0}},
                   {"group", filters}});
}

/// An extent that an attribute says, or a factor of the input's.
ir::SymInt resized_extent(NodeContext& node, const char* name, const char* factor, const ir::SymInt& extent) {
  if (!node.has(factor)) return node.integer(name, 1);
  node.skip(name);
  const double times = node.real(factor);
  if (!(times > 0) || times > 65536) node.invalid(std::string(factor) + " is " + std::to_string(times));
  if (times == std::floor(times)) return node.product(extent, static_cast<int64_t>(times));
  if (!extent.is_constant()) node.unsupported(factor, "a part of a free extent is not implemented");
  // As float32 has the product.
  return static_cast<int64_t>(static_cast<float>(extent.hint()) * static_cast<float>(times));
}

}  // namespace

void convert_upsampling(NodeContext& node) {
  const V x = node.input(0);
  check_picture(node, x);
  const int64_t scale = node.integer("scale");
  if (scale < 1 || scale > 1024) node.invalid("scale is " + std::to_string(scale));
  const std::string type = node.text("sample_type");
  if (type == "bilinear") return node.set_output(upsampled_by_weights(node, x, scale));
  if (type != "nearest") node.invalid("sample_type is \"" + type.substr(0, 40) + "\"");
  for (const char* name : {"num_filter", "multi_input_mode"}) node.skip(name);
  if (node.num_inputs() != 1) node.unsupported("num_args", "several inputs are not implemented");
  node.set_output(Compose(node).tile_each(x, {1, 1, scale, scale}));
}

void convert_bilinear_resize(NodeContext& node) {
  const V x = node.input(0);
  check_picture(node, x);
  const ir::SymShape s = node.shape(x);
  const std::string mode = node.text("mode", "size");
  const build::ResizeRule rule = node.flag("align_corners", true)
                                     ? build::ResizeRule{.align_corners = true}
                                     : build::ResizeRule{.half_pixel_centers = true};
  ir::SymShape size;
  if (mode == "like") {
    for (const char* name : {"height", "width", "scale_height", "scale_width"}) node.skip(name);
    const ir::SymShape like = node.shape(node.input(1));
    if (like.size() != 4) node.invalid("the second input has rank " + std::to_string(like.size()));
    size = {like[2], like[3]};
  } else if (mode == "size") {
    size = {resized_extent(node, "height", "scale_height", s[2]),
            resized_extent(node, "width", "scale_width", s[3])};
  } else {
    node.unsupported("mode", "\"" + mode.substr(0, 40) + "\" is not implemented");
  }
  node.set_output(build::resize_bilinear(node, x, size, rule));
}

// Means of as many parts, which are windows of one size where they divide the extents.
void convert_adaptive_avg_pool(NodeContext& node) {
  const V x = node.input(0);
  check_picture(node, x);
  ir::Ints out = node.ints("output_size", std::vector<int64_t>{1});
  if (out.empty()) out = {1};
  if (out.size() == 1) out.push_back(out[0]);
  const ir::SymShape s = node.shape(x);
  ir::SymShape kernel;
  for (size_t d = 0; d < 2; ++d) {
    if (out.size() != 2 || out[d] < 1) node.invalid("output_size are no two numbers");
    if (out[d] == 1) {
      kernel.push_back(s[d + 2]);
      continue;
    }
    if (!s[d + 2].is_constant() || s[d + 2].hint() % out[d] != 0)
      node.unsupported("output_size", "parts of different sizes are not implemented");
    kernel.emplace_back(s[d + 2].hint() / out[d]);
  }
  if (out[0] == 1 && out[1] == 1) return node.set_output(Compose(node).reduce_spatial("reduce_mean", x));
  if (!kernel.is_constant()) node.unsupported("output_size", "of free extents it is not implemented");
  node.set_output(node.add("avg_pool", {x},
                           {{"kernel", kernel},
                            {"strides", kernel.hints()},
                            {"dilations", std::vector<int64_t>{1, 1}},
                            {"pads", std::vector<int64_t>{0, 0, 0, 0}},
                            {"ceil_mode", int64_t{0}},
                            {"count_include_pad", int64_t{0}}}));
}

}  // namespace tensormill::frontend::mxnet
