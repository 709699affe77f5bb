// Convolutions of bytes become blocked ones of words: four channels in each.
#include <algorithm>
#include <numeric>

#include "compiler/ops/type_rules.h"
#include "compiler/passes/layouts/layout_rewriter.h"
#include "compiler/passes/layouts/pack_blocked.h"

namespace tensormill::passes {

namespace {

std::vector<int64_t> pads_of(const ir::Node& conv) {
  return conv.attrs.has("pads") ? conv.attrs.ints_of("pads") : std::vector<int64_t>(4, 0);
}

bool any(const std::vector<int64_t>& values) {
  return std::count(values.begin(), values.end(), int64_t{0}) != static_cast<int64_t>(values.size());
}

std::vector<int64_t> first_lanes(int64_t count) {
  std::vector<int64_t> place(static_cast<size_t>(count));
  std::iota(place.begin(), place.end(), int64_t{0});
  return place;
}

}  // namespace

/// The node's bias less x_zero times the sum of the weights of each output channel.
ir::ValueId LayoutRewriter::integer_bias(const ir::Node& node) {
  const Tensor& w = *constant(node.inputs[1]);
  const Tensor* bias = node.inputs.size() > 2 ? constant(node.inputs[2]) : nullptr;
  const int64_t zero = ops::attr_int(node.attrs, "x_zero", 0);
  if (bias == nullptr && zero == 0) return ir::kAbsent;
  const int64_t outputs = w.shape()[0], row = w.num_elements() / outputs;
  Tensor shifted = Tensor::zeros(DType::kInt32, {arranger_.blocks(outputs) * block()});
  for (int64_t output = 0; output < outputs; ++output) {
    int64_t sum = 0;
    for (int64_t i = 0; i < row; ++i) sum += w.element_as_int(output * row + i);
    const int64_t own = bias == nullptr ? 0 : bias->element_as_int(output);
    shifted.set_element_int(output, static_cast<int32_t>(own - zero * sum));
  }
  return patch_.add_constant(graph_.value(node.inputs[1]).name + ".shift", shifted);
}

bool LayoutRewriter::rewrite_conv_integer(const ir::Node& node) {
  const Tensor* weights = constant(node.inputs[1]);
  const bool biased = node.inputs.size() > 2 && node.inputs[2] != ir::kAbsent;
  if (weights == nullptr || weights->shape().size() != 4 || weights->num_elements() == 0 ||
      block() % 4 != 0 || (biased && constant(node.inputs[2]) == nullptr))
    return false;
  const int64_t groups = ops::attr_int(node.attrs, "group", 1);
  const int64_t inputs = weights->shape()[1], outputs = weights->shape()[0];
  if (groups > 1 && (inputs % block() != 0 || outputs / groups % block() != 0)) return false;
  const ChannelForm input = image_form(node.inputs[0], node.origins);
  std::vector<int64_t> place = first_lanes(inputs);
  ir::ValueId x = groups == 1 ? arranger_.arrange_any(input.lanes, place) : arranger_.arrange(input.lanes);
  const int64_t in_blocks = patch_.value(x).type.shape[1] / groups;

  ir::Attrs attrs{{"group", groups}, {"words", int64_t{1}}};
  for (const std::string name : {"strides", "dilations"}) {
    if (node.attrs.has(name)) attrs.set(name, node.attrs.ints_of(name));
  }
  const int64_t zero = ops::attr_int(node.attrs, "x_zero", 0);
  const std::vector<int64_t> pads = pads_of(node);
  // What is outside of the image stands for zero: taps there are left out where that is the byte 0, and read
  // it where it is another, for the bias counts all taps.
  if (zero == 0) {
    attrs.set("pads", pads);
  } else if (any(pads)) {
    const std::vector<int64_t> around = {0, 0, pads[0], pads[1], 0, 0, 0, pads[2], pads[3], 0};
    x = patch_.add_node("pad", {x}, {{"pads", around}, {"value", static_cast<double>(zero)}},
                        node.origins)[0];
  }
  const ir::ValueId words = patch_.add_node("bytes_to_words", {x}, {}, node.origins)[0];
  const ir::ValueId packed = patch_.add_constant(graph_.value(node.inputs[1]).name + ".words",
                                                 pack_conv_words(*weights, place, in_blocks, block()));
  const ir::ValueId made =
      patch_.add_node("conv_blocked", {words, packed, integer_bias(node)}, attrs, node.origins)[0];
  set_image(node.outputs[0], made, first_lanes(outputs));
  return true;
}

}  // namespace tensormill::passes
