#include "bench/kernels/layers.h"

namespace tensormill::bench {

namespace {

using Ints = std::vector<int64_t>;

/// A square convolution: `in` > `out` channels, `size` pixels a side, `kernel` taps a side.
struct Conv {
  int64_t in, out, size, kernel, stride;
  int count;
};

constexpr Conv kResnet50[] = {
    {3, 64, 224, 7, 2, 1},     {64, 64, 56, 1, 1, 1},    {64, 64, 56, 3, 1, 3},    {64, 256, 56, 1, 1, 4},
    {256, 64, 56, 1, 1, 2},    {256, 128, 56, 1, 1, 1},  {128, 128, 56, 3, 2, 1},  {128, 512, 28, 1, 1, 4},
    {256, 512, 56, 1, 2, 1},   {512, 128, 28, 1, 1, 3},  {128, 128, 28, 3, 1, 3},  {512, 256, 28, 1, 1, 1},
    {256, 256, 28, 3, 2, 1},   {256, 1024, 14, 1, 1, 6}, {512, 1024, 28, 1, 2, 1}, {1024, 256, 14, 1, 1, 5},
    {256, 256, 14, 3, 1, 5},   {1024, 512, 14, 1, 1, 1}, {512, 512, 14, 3, 2, 1},  {512, 2048, 7, 1, 1, 3},
    {1024, 2048, 14, 1, 2, 1}, {2048, 512, 7, 1, 1, 2},  {512, 512, 7, 3, 1, 2},
};

constexpr Conv kResnet18[] = {
    {64, 128, 56, 3, 2, 1},  {64, 128, 56, 1, 2, 1},  {128, 256, 28, 3, 2, 1},
    {128, 256, 28, 1, 2, 1}, {256, 512, 14, 3, 2, 1}, {256, 512, 14, 1, 2, 1},
};

constexpr Conv kMobilenetv2[] = {
    {3, 32, 224, 3, 2, 1},  {32, 16, 112, 1, 1, 1}, {16, 96, 112, 1, 1, 1},  {96, 24, 56, 1, 1, 1},
    {24, 144, 56, 1, 1, 2}, {144, 32, 28, 1, 1, 1}, {32, 192, 28, 1, 1, 3},  {192, 64, 14, 1, 1, 1},
    {64, 384, 14, 1, 1, 4}, {384, 96, 14, 1, 1, 1}, {96, 576, 14, 1, 1, 3},  {576, 160, 7, 1, 1, 1},
    {160, 960, 7, 1, 1, 3}, {960, 320, 7, 1, 1, 1}, {320, 1280, 7, 1, 1, 1},
};

/// Channels, size, stride, count.
constexpr Conv kMobilenetv2Depthwise[] = {
    {32, 32, 112, 3, 1, 1},  {96, 96, 112, 3, 2, 1},  {144, 144, 56, 3, 1, 1}, {144, 144, 56, 3, 2, 1},
    {192, 192, 28, 3, 1, 2}, {192, 192, 28, 3, 2, 1}, {384, 384, 14, 3, 1, 4}, {576, 576, 14, 3, 1, 2},
    {576, 576, 14, 3, 2, 1}, {960, 960, 7, 3, 1, 3},
};

/// Products with constant matrices of MiniLM-L6 at sequence length 128.
struct Product {
  const char* net;
  int64_t rows, depth, columns;
  int count;
};

constexpr Product kProducts[] = {
    {"minilm6", 128, 384, 384, 6},  {"minilm6", 128, 384, 1152, 6}, {"minilm6", 128, 384, 1536, 6},
    {"minilm6", 128, 1536, 384, 6}, {"resnet50", 1, 2048, 1000, 1},
};

std::string name_of(const Conv& conv) {
  const std::string kernel = std::to_string(conv.kernel);
  return kernel + "x" + kernel + (conv.stride > 1 ? "/" + std::to_string(conv.stride) : "") + " " +
         std::to_string(conv.in) + ">" + std::to_string(conv.out) + " " + std::to_string(conv.size);
}

Layer make_layer(const std::string& net, const Conv& conv, bool depthwise, int64_t block, int64_t batch) {
  const int64_t pad = conv.kernel / 2, k = conv.kernel, size = conv.size;
  const int64_t side = (size + 2 * pad - k) / conv.stride + 1;
  const int64_t in_blocks = (conv.in + block - 1) / block, out_blocks = (conv.out + block - 1) / block;
  Layer layer;
  layer.net = net;
  layer.name = name_of(conv);
  layer.attrs = {{"strides", Ints{conv.stride, conv.stride}}, {"pads", Ints{pad, pad, pad, pad}}};
  layer.count = conv.count;
  const double taps = static_cast<double>(k * k * (depthwise ? 1 : conv.in));
  layer.flops = 2.0 * static_cast<double>(batch * side * side * conv.out) * taps;
  const Shape bias = {out_blocks * block};
  if (depthwise) {
    layer.algorithm = "depthwise";
    layer.op = "conv_depthwise";
    layer.inputs = {{batch, in_blocks, size, size, block}, {in_blocks, k, k, block}, bias};
  } else if (conv.in < 4) {
    layer.algorithm = "direct, plain input";
    layer.op = "conv_first";
    layer.inputs = {{batch, conv.in, size, size}, {out_blocks, conv.in, k, k, block}, bias};
  } else {
    layer.algorithm = "direct";
    layer.op = "conv_blocked";
    layer.inputs = {{batch, in_blocks, size, size, block}, {out_blocks, in_blocks, k, k, block, block}, bias};
  }
  return layer;
}

void use_winograd(Layer& layer, int64_t tile) {
  const Shape weights = layer.inputs[1];
  if (layer.op != "conv_blocked" || weights[2] != 3 || layer.attrs.ints_of("strides")[0] != 1) return;
  const int64_t group = weights[0] % 2 == 0 ? 2 : 1, points = (tile + 2) * (tile + 2);
  layer.op = "conv_winograd";
  layer.algorithm = "F(" + std::to_string(tile) + ",3)";
  layer.inputs[1] = {points, weights[0] / group, weights[1] * weights[4], group * weights[5]};
  layer.attrs = {{"tile", tile}, {"pads", layer.attrs.ints_of("pads")}};
}

Layer make_layer(const Product& product, int64_t block, int64_t batch) {
  const int64_t rows = product.rows * batch;
  const int64_t blocks = (product.columns + block - 1) / block;
  Layer layer;
  layer.net = product.net;
  layer.name = "product " + std::to_string(rows) + "x" + std::to_string(product.depth) + "x" +
               std::to_string(product.columns);
  layer.algorithm = rows == 1 ? "vector by matrix" : "packed";
  layer.op = "matmul_packed";
  layer.attrs = {{"columns", product.columns}};
  layer.inputs = {{rows, product.depth}, {blocks, product.depth, block}, {product.columns}};
  layer.count = product.count;
  layer.flops = 2.0 * static_cast<double>(rows * product.depth * product.columns);
  return layer;
}

}  // namespace

std::vector<Layer> all_layers(int64_t block, int64_t batch, int64_t tile) {
  std::vector<Layer> layers;
  for (const Conv& conv : kResnet50) layers.push_back(make_layer("resnet50", conv, false, block, batch));
  for (const Conv& conv : kResnet18) layers.push_back(make_layer("resnet18", conv, false, block, batch));
  for (const Conv& conv : kMobilenetv2)
    layers.push_back(make_layer("mobilenetv2", conv, false, block, batch));
  for (const Conv& conv : kMobilenetv2Depthwise)
    layers.push_back(make_layer("mobilenetv2", conv, true, block, batch));
  for (Layer& layer : layers) {
    if (tile > 0) use_winograd(layer, tile);
  }
  for (const Product& product : kProducts) layers.push_back(make_layer(product, block, batch));
  return layers;
}

}  // namespace tensormill::bench
