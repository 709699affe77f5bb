// The algorithm of each blocked convolution, by an analytic model of the CPU: 3x3 of stride 1, also as the
// planes of a volume's window, becomes minimal filtering F(4,3) or F(2,3) where that is faster, where its
// transformed weights (4 and 16/9 times as many) fit a budget over all layers, and where f32 stays accurate
// on the layer's own weights. What was measured (AlgorithmOptions::instead) takes the place of the model's
// choice, within the same budget and accuracy. Of free dims the layers of large images are weighed: those of
// one choice serve all.
#include <algorithm>
#include <cmath>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/ops/windows/winograd.h"
#include "compiler/passes/convolutions/winograd_error.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

/// Costs in cycles, as measured on AVX-512 cores (bench/README.md, Winograd).
constexpr double kMostVectorProducts =
    1.7;  ///< vector fma a cycle in register tiles, of a core that starts two
constexpr double kProductLatency = 4;
/// Bᵀ d B and Aᵀ M A of one tile and one block of channels.
constexpr double kInputTransform4 = 200, kOutputTransform4 = 140;
constexpr double kInputTransform2 = 40, kOutputTransform2 = 35;
/// Another algorithm must be this much faster than the direct one.
constexpr double kGain = 0.87;
/// Weights of all kernels together over those of the model as it stands.
constexpr double kMaxWeights = 1.8;
constexpr double kMaxError = 1e-5;

/// Bytes a cycle that are read, and as many written, where planes are copied.
constexpr double kCopiedBytes = 8;

/// A 3x3 convolution of stride 1 with constant weights. Of a volume, each plane of the result is an image
/// that is made of as many images as the window has planes, their blocks of channels one after the other.
struct Layer {
  ir::NodeId node = ir::kAbsent;
  int64_t batch, in_blocks, out_blocks, height, width, lanes;
  int64_t group;   ///< output blocks of a register tile
  int64_t planes;  ///< of a volume's window; 0: an image
};

/// Of a free dim where layers are weighed: deep layers still have several tiles of a side.
constexpr int64_t kFreeExtent = 1024;

/// One way to compute a layer.
struct Choice {
  size_t layer = 0;
  int64_t tile = 0;
  double saved = 0;  ///< cycles, against the direct form
  double bytes = 0;  ///< of weights, more than the direct form has
};

bool fits(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "conv_blocked" || !all_equal(node, "strides", 1) || !all_equal(node, "dilations", 1))
    return false;
  if (ops::attr_int(node.attrs, "group", 1) != 1) return false;
  // Transforms have fractions, and integers would not stay so.
  if (ops::attr_bool(node.attrs, "exact", false)) return false;
  const std::optional<Tensor>& weights = graph.value(node.inputs[1]).constant;
  if (!weights || weights->dtype() != DType::kFloat32 || weights->num_elements() == 0) return false;
  const Shape& shape = weights->shape();
  const size_t dims = shape.size();
  const ir::SymShape& out = graph.value(node.outputs[0]).type.shape;
  // The planes of a volume are put together by copies of extents that are known.
  const bool is_known = dims == 6 || out.is_constant();
  return (dims == 6 || dims == 7) && is_known && shape[dims - 4] == 3 && shape[dims - 3] == 3 &&
         !(out.is_constant() && num_elements(out) == 0);
}

/// The extents by which a layer is weighed.
Shape weighed(const ir::Graph& graph, const ir::SymShape& shape) {
  if (shape.is_constant()) return shape;
  std::map<std::string, int64_t> values = graph.symbols()->hints();
  for (auto& [symbol, value] : values) value = kFreeExtent;
  Shape extents;
  for (const ir::SymInt& extent : shape)
    extents.push_back(std::max<int64_t>(extent.expr().evaluate(values).value_or(extent.hint()), 1));
  return extents;
}

Layer layer_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const Shape out = weighed(graph, graph.value(node.outputs[0]).type.shape);
  const Shape weights = graph.value(node.inputs[1]).type.shape;
  const size_t dims = out.size();
  const int64_t planes = dims == 6 ? weights[2] : 0;
  Layer layer{id, out[0], weights[1], out[1], out[dims - 3], out[dims - 2], out[dims - 1], 1, planes};
  if (planes > 0) {
    layer.batch *= out[2];
    layer.in_blocks *= planes;
  }
  for (int64_t group : {2, 3}) {
    if (layer.out_blocks % group == 0) {
      layer.group = group;
      break;
    }
  }
  return layer;
}

double products_per_cycle(const target::CpuFacts& facts) {
  return std::min<double>(facts.products_per_cycle, kMostVectorProducts);
}

/// Arithmetic, or the weights' way from beyond L2 where that takes longer.
double bounded(double cycles, double weight_bytes, const target::CpuFacts& facts) {
  const bool streamed = weight_bytes > static_cast<double>(facts.l2_bytes);
  return streamed ? std::max(cycles, weight_bytes / facts.streamed_bytes) : cycles;
}

double weight_bytes(const Layer& layer, int64_t taps) {
  return static_cast<double>(layer.in_blocks * layer.lanes * layer.out_blocks * layer.lanes * taps) * 4;
}

double direct_cycles(const Layer& layer, const target::CpuFacts& facts) {
  const double points = static_cast<double>(layer.batch * layer.height * layer.width);
  const double products = points * static_cast<double>(layer.in_blocks * layer.lanes * layer.out_blocks) * 9;
  return bounded(products / products_per_cycle(facts), weight_bytes(layer, 9), facts);
}

double winograd_cycles(const Layer& layer, int64_t tile, const target::CpuFacts& facts) {
  const int64_t across = (layer.width + tile - 1) / tile, down = (layer.height + tile - 1) / tile;
  const double tiles = static_cast<double>(layer.batch * across * down);
  const double in_blocks = static_cast<double>(layer.in_blocks),
               out_blocks = static_cast<double>(layer.out_blocks);
  const int64_t points = (tile + 2) * (tile + 2);
  const double products = static_cast<double>(points * layer.lanes) * in_blocks * out_blocks;
  // A register tile of fewer sums waits for them.
  const double full_tile = kProductLatency * facts.products_per_cycle;
  const double waiting = std::max(1.0, full_tile / (tiles * static_cast<double>(layer.group)));
  const double transforms = tile == 4 ? in_blocks * kInputTransform4 + out_blocks * kOutputTransform4
                                      : in_blocks * kInputTransform2 + out_blocks * kOutputTransform2;
  double copies = 0;
  if (layer.planes > 0) {
    const double points_of_plane =
        static_cast<double>(layer.batch * layer.height * layer.width * layer.lanes);
    copies = 4 * points_of_plane * (in_blocks + out_blocks) / kCopiedBytes;
  }
  return copies + bounded(tiles * (products * waiting / products_per_cycle(facts) + transforms),
                          weight_bytes(layer, points), facts);
}

/// The best use of the budget: by cycles saved for each byte of weights, F(4,3) taking the place of F(2,3).
std::vector<int64_t> choose_tiles(const std::vector<Layer>& layers, double budget,
                                  const target::CpuFacts& facts) {
  std::vector<Choice> choices;
  for (size_t i = 0; i < layers.size(); ++i) {
    const double direct = direct_cycles(layers[i], facts);
    for (int64_t tile : {2, 4}) {
      const double cycles = winograd_cycles(layers[i], tile, facts);
      if (cycles > direct * kGain) continue;
      const int64_t points = (tile + 2) * (tile + 2);
      choices.push_back(
          {i, tile, direct - cycles, weight_bytes(layers[i], points) - weight_bytes(layers[i], 9)});
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.saved * b.bytes > b.saved * a.bytes; });
  std::vector<Choice> chosen(layers.size());
  for (const Choice& choice : choices) {
    Choice& now = chosen[choice.layer];
    const double more = choice.bytes - now.bytes;
    if (choice.saved <= now.saved || more > budget) continue;
    budget -= more;
    now = choice;
  }
  std::vector<int64_t> tiles;
  for (const Choice& choice : chosen) tiles.push_back(choice.tile);
  return tiles;
}

double constant_bytes(const ir::Graph& graph) {
  double bytes = 0;
  for (const ir::Value& value : graph.values()) {
    if (value.constant) bytes += static_cast<double>(value.constant->num_bytes());
  }
  return bytes;
}

/// Puts what was measured in the place of the rule's choices, first where weights shrink; by layer, whether
/// that was done. What the budget does not hold stays with the rule.
std::vector<bool> replace_measured(const std::vector<Layer>& layers, double budget,
                                   const std::map<int64_t, std::map<int64_t, int64_t>>& instead,
                                   std::vector<int64_t>& tiles) {
  const auto bytes_of = [&](size_t i, int64_t tile) {
    return weight_bytes(layers[i], tile == 0 ? 9 : (tile + 2) * (tile + 2)) - weight_bytes(layers[i], 9);
  };
  for (size_t i = 0; i < layers.size(); ++i) budget -= bytes_of(i, tiles[i]);
  std::vector<bool> measured(layers.size());
  for (const bool shrinking : {true, false}) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto layer = instead.find(static_cast<int64_t>(i));
      if (measured[i] || layer == instead.end()) continue;
      const auto found = layer->second.find(tiles[i]);
      if (found == layer->second.end()) continue;
      const double more = bytes_of(i, found->second) - bytes_of(i, tiles[i]);
      if (shrinking ? more > 0 : more > budget) continue;
      budget -= more;
      tiles[i] = found->second;
      measured[i] = true;
    }
  }
  return measured;
}

/// weights [OCb,ICb,planes,3,3,b,b] as those of images: [OCb,planes*ICb,3,3,b,b].
Tensor stacked_weights(const Tensor& weights) {
  const Shape& from = weights.shape();
  Tensor stacked(weights.dtype(), {from[0], from[2] * from[1], from[3], from[4], from[5], from[6]});
  const int64_t block = from[3] * from[4] * from[5] * from[6];
  const std::span<const float> source = weights.values<float>();
  const std::span<float> target = stacked.values<float>();
  for (int64_t out = 0; out < from[0]; ++out) {
    for (int64_t in = 0; in < from[1]; ++in) {
      for (int64_t plane = 0; plane < from[2]; ++plane) {
        const int64_t first = ((out * from[1] + in) * from[2] + plane) * block;
        std::copy_n(source.begin() + first, block,
                    target.begin() + ((out * from[2] + plane) * from[1] + in) * block);
      }
    }
  }
  return stacked;
}

/// The planes of a volume [N,Cb,D,H,W,b] that each plane of the result needs, as images
/// [N*D',planes*Cb,H,W,b].
ir::ValueId stacked_planes(ir::Patch& patch, const ir::Node& node, int64_t planes, int64_t results) {
  ir::ValueId x = node.inputs[0];
  Shape shape = patch.value(x).type.shape;
  const Shape pads = node.attrs.has("pads") ? node.attrs.ints_of("pads") : Shape(6, 0);
  if (pads[0] != 0 || pads[3] != 0) {
    const Shape around = {0, 0, pads[0], 0, 0, 0, 0, 0, pads[3], 0, 0, 0};
    x = patch.add_node("pad", {x}, {{"pads", around}}, node.origins)[0];
  }
  shape[2] = results;
  std::vector<ir::ValueId> parts;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const ir::Attrs part{{"starts", Shape{0, 0, plane, 0, 0, 0}}, {"extents", shape}, {"steps", Shape(6, 1)}};
    parts.push_back(patch.add_node("slice", {x}, part, node.origins)[0]);
  }
  if (planes > 1) x = patch.add_node("concat", parts, {{"axis", int64_t{1}}}, node.origins)[0];
  if (planes == 1) x = parts[0];
  x = patch.add_node("transpose", {x}, {{"perm", Shape{0, 2, 1, 3, 4, 5}}}, node.origins)[0];
  const Shape images = {shape[0] * results, planes * shape[1], shape[3], shape[4], shape[5]};
  return patch.add_node("reshape", {x}, {{"shape", images}}, node.origins)[0];
}

/// The layer by F(tile,3) in the graph, or nothing where that is not accurate.
bool rewrite(const ir::Graph& graph, ir::Patch& patch, const Layer& layer, int64_t tile,
             const ir::Attrs& marks) {
  const ir::Node& node = graph.node(layer.node);
  const ir::Value& weights = graph.value(node.inputs[1]);
  const Tensor images = layer.planes > 0 ? stacked_weights(*weights.constant) : *weights.constant;
  Tensor transformed = ops::winograd_weights(images, tile, layer.group);
  if (!(winograd_error(images, transformed, tile) <= kMaxError)) return false;
  std::vector<ir::ValueId> inputs = node.inputs;
  inputs[1] = patch.add_constant(weights.name + ".winograd", std::move(transformed));
  ir::Attrs attrs = marks;
  attrs.set("tile", tile);
  const bool padded = node.attrs.has("pads");
  if (layer.planes == 0) {
    if (padded) attrs.set("pads", node.attrs.ints_of("pads"));
    patch.replace(node.outputs[0], patch.add_node("conv_winograd", inputs, attrs, node.origins)[0]);
    return true;
  }
  const Shape& out = graph.value(node.outputs[0]).type.shape;
  if (padded) {
    const ir::Ints pads = node.attrs.ints_of("pads");
    attrs.set("pads", Shape{pads[1], pads[2], pads[4], pads[5]});
  }
  inputs[0] = stacked_planes(patch, node, layer.planes, out[2]);
  const ir::ValueId made = patch.add_node("conv_winograd", inputs, attrs, node.origins)[0];
  const Shape apart = {out[0], out[2], out[1], out[3], out[4], out[5]};
  const ir::ValueId planes = patch.add_node("reshape", {made}, {{"shape", apart}}, node.origins)[0];
  patch.replace(node.outputs[0],
                patch.add_node("transpose", {planes}, {{"perm", Shape{0, 2, 1, 3, 4, 5}}}, node.origins)[0]);
  return true;
}

ir::Attrs marks_of(size_t layer, bool measured) {
  return {{"layer", static_cast<int64_t>(layer)}, {"chosen_by", std::string(measured ? "records" : "rule")}};
}

/// The direct form as it stands, with marks.
void mark_direct(const ir::Graph& graph, ir::Patch& patch, const Layer& layer, const ir::Attrs& marks) {
  const ir::Node& node = graph.node(layer.node);
  ir::Attrs attrs = node.attrs;
  for (const auto& [name, value] : marks.all()) attrs.set(name, value);
  patch.replace(node.outputs[0], patch.add_node(node.op, node.inputs, attrs, node.origins)[0]);
}

}  // namespace

ir::Graph choose_algorithms(const ir::Graph& graph, const PassContext& context) {
  std::vector<Layer> layers;
  // The transforms are written with fused multiply-adds.
  for (size_t i = 0; context.facts.fma && i < graph.nodes().size(); ++i) {
    const ir::NodeId id = static_cast<ir::NodeId>(i);
    if (fits(graph, graph.node(id))) layers.push_back(layer_of(graph, id));
  }
  const AlgorithmOptions& options = context.algorithms;
  const double budget = (kMaxWeights - 1) * constant_bytes(graph);
  std::vector<int64_t> tiles(layers.size(), options.everywhere.value_or(0));
  if (!options.everywhere) tiles = choose_tiles(layers, budget, context.facts);
  std::vector<bool> measured(layers.size());
  if (!options.everywhere) measured = replace_measured(layers, budget, options.instead, tiles);
  ir::Patch patch(graph, "choose_algorithms");
  for (size_t i = 0; i < layers.size(); ++i) {
    const ir::Attrs marks = options.mark ? marks_of(i, measured[i]) : ir::Attrs();
    // The smaller tile has the smaller factors.
    int64_t tile = tiles[i];
    while (tile >= 2 && !rewrite(graph, patch, layers[i], tile, marks)) tile -= 2;
    if (tile < 2 && options.mark) mark_direct(graph, patch, layers[i], marks);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
