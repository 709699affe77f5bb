// Convolutions of constant weights become blocked ones, each with its weights in the order in which its
// kernel reads them. Input channels may stand in any order: the weights follow.
#include <algorithm>
#include <numeric>

#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/layouts/layout_rewriter.h"
#include "compiler/passes/layouts/pack_blocked.h"

namespace tensormill::passes {

namespace {

/// The groups of a convolution that are computed as one may be so many: each product then stands beside so
/// many less one by zero.
constexpr int64_t kMostJoined = 4;

/// Of a block of lanes, of which channels fill no more than one in so many, most products would be of zeros.
constexpr int64_t kLanesPerChannel = 4;

int64_t groups_of(const ir::Node& conv) { return ops::attr_int(conv.attrs, "group", 1); }

/// The window's attributes.
ir::Attrs window_of(const ir::Node& conv) {
  ir::Attrs attrs;
  for (const std::string name : {"strides", "dilations", "pads"}) {
    if (conv.attrs.has(name)) attrs.set(name, conv.attrs.ints_of(name));
  }
  if (conv.attrs.has("exact")) attrs.set("exact", conv.attrs.int_of("exact"));
  return attrs;
}

}  // namespace

bool LayoutRewriter::is_convolution_of_constants(const ir::Node& node) const {
  const Tensor* weights = constant(node.inputs[1]);
  const bool biased = node.inputs.size() > 2 && node.inputs[2] != ir::kAbsent;
  return weights != nullptr && weights->dtype() == DType::kFloat32 &&
         is_image_rank(weights->shape().size()) && weights->num_elements() > 0 &&
         !ops::is_empty(type(node.outputs[0]).shape) && (!biased || constant(node.inputs[2]) != nullptr);
}

bool LayoutRewriter::rewrite_conv(const ir::Node& node) {
  if (!is_convolution_of_constants(node)) return false;
  const int64_t groups = groups_of(node);
  const int64_t inputs = type(node.inputs[0]).shape[1];
  const int64_t outputs = type(node.outputs[0]).shape[1];
  const bool is_first = form(node.inputs[0]) == nullptr ? inputs < block() : fills_few_lanes(node);
  if (groups == 1 && is_first) {
    make_plain(node.inputs[0]);
    rewrite_first(node);
  } else if (groups == 1) {
    rewrite_dense(node, 1);
  } else if (groups == inputs && groups == outputs) {
    rewrite_depthwise(node);
  } else if (const int64_t joined = groups_to_join(inputs, outputs, groups); joined > 0) {
    rewrite_dense(node, joined);
  } else {
    return false;
  }
  return true;
}

// One tap is computed of the channels alone, wherever they stand.
bool LayoutRewriter::fills_few_lanes(const ir::Node& node) const {
  const Shape& weights = constant(node.inputs[1])->shape();
  return weights[1] * kLanesPerChannel <= block() && num_elements(weights) > weights[0] * weights[1];
}

int64_t LayoutRewriter::groups_to_join(int64_t inputs, int64_t outputs, int64_t groups) const {
  const int64_t each_in = inputs / groups, each_out = outputs / groups;
  int64_t joined = std::lcm(block() / std::gcd(each_in, block()), block() / std::gcd(each_out, block()));
  joined = std::min(joined, groups);
  if (joined > kMostJoined) return 0;
  // The last groups may be fewer where they still reach into the last block.
  const int64_t made = (groups + joined - 1) / joined;
  const auto fills = [&](int64_t channels, int64_t each) {
    return made == 1 || arranger_.blocks(channels) * block() == made * joined * each;
  };
  return fills(inputs, each_in) && fills(outputs, each_out) ? joined : 0;
}

ir::ValueId LayoutRewriter::packed_bias(const ir::Node& node, const std::vector<int64_t>& place,
                                        int64_t blocks) {
  if (node.inputs.size() < 3 || node.inputs[2] == ir::kAbsent) return ir::kAbsent;
  const Tensor packed = pack_vector(*constant(node.inputs[2]), place, blocks, block());
  return patch_.add_constant(graph_.value(node.inputs[2]).name + ".blocked", packed);
}

void LayoutRewriter::rewrite_first(const ir::Node& node) {
  const Tensor& weights = *constant(node.inputs[1]);
  const int64_t outputs = weights.shape()[0];
  const ir::ValueId packed = patch_.add_constant(graph_.value(node.inputs[1]).name + ".blocked",
                                                 pack_first_weights(weights, block()));
  const std::vector<int64_t> place = in_order(outputs);
  const ir::ValueId bias = packed_bias(node, place, arranger_.blocks(outputs));
  const ir::ValueId made =
      patch_.add_node("conv_first", {node.inputs[0], packed, bias}, window_of(node), node.origins)[0];
  set_image(node.outputs[0], made, place);
}

void LayoutRewriter::rewrite_depthwise(const ir::Node& node) {
  const ChannelForm input = image_form(node.inputs[0], node.origins);
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(input.lanes, place);
  const int64_t blocks = patch_.value(x).type.shape[1];
  const ir::ValueId packed =
      patch_.add_constant(graph_.value(node.inputs[1]).name + ".blocked",
                          pack_depthwise_weights(*constant(node.inputs[1]), place, blocks, block()));
  const ir::ValueId bias = packed_bias(node, place, blocks);
  const ir::ValueId made =
      patch_.add_node("conv_depthwise", {x, packed, bias}, window_of(node), node.origins)[0];
  set_image(node.outputs[0], made, place);
}

void LayoutRewriter::rewrite_dense(const ir::Node& node, int64_t joined) {
  const int64_t own_groups = groups_of(node), groups = (own_groups + joined - 1) / joined;
  const ChannelForm input = image_form(node.inputs[0], node.origins);
  std::vector<int64_t> place;
  ir::ValueId x;
  if (groups == 1) {
    x = arranger_.arrange_any(input.lanes, place);
  } else {
    x = arranger_.arrange(input.lanes);
    place = in_order(type(node.inputs[0]).shape[1] / own_groups * joined);
  }
  const int64_t in_blocks = patch_.value(x).type.shape[1] / groups;
  const int64_t outputs = type(node.outputs[0]).shape[1];
  const Tensor& given = *constant(node.inputs[1]);
  const Tensor weights = joined == 1 ? given : join_groups(given, own_groups, joined);
  const ir::ValueId packed = patch_.add_constant(graph_.value(node.inputs[1]).name + ".blocked",
                                                 pack_conv_weights(weights, place, in_blocks, block()));
  const std::vector<int64_t> order = in_order(outputs);
  const ir::ValueId bias = packed_bias(node, order, arranger_.blocks(outputs));
  ir::Attrs attrs = window_of(node);
  attrs.set("group", groups);
  if (groups == 1 && weights.num_elements() == weights.shape()[0] * weights.shape()[1]) {
    const int64_t channels = *std::max_element(place.begin(), place.end()) + 1;
    if (channels < in_blocks * block()) attrs.set("channels", channels);
  }
  const ir::ValueId made = patch_.add_node("conv_blocked", {x, packed, bias}, attrs, node.origins)[0];
  set_image(node.outputs[0], made, order);
}

}  // namespace tensormill::passes
