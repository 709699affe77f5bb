// Normalizations by the statistics of channels, or of groups of them, on blocked tensors: means of pixels
// lane by lane, of which those of a group are put together as plain tensors of one element a channel. Readers
// of the maps do the rest element by element.
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/layouts/layout_rewriter.h"
#include "compiler/passes/layouts/pack_blocked.h"

namespace tensormill::passes {

bool LayoutRewriter::rewrite_groups(const ir::Node& node) {
  ChannelForm made = *form(node.inputs[0]);
  const ir::SymShape& in = type(node.inputs[0]).shape;
  const ir::SymShape& out = type(node.outputs[0]).shape;
  const auto channels = static_cast<int64_t>(made.lanes.size());
  if (out.empty() || !are_equal(out[0], in[0])) return false;
  if (made.groups > 0) {
    ir::SymShape image = {in[0], channels};
    image.insert(image.end(), made.spatial.begin(), made.spatial.end());
    made.groups = 0;
    if (!are_equal(out, image)) return false;
  } else {
    if (!made.is_image() || out.size() != 3 || !out[1].is_constant()) return false;
    made.groups = out[1];
    if (made.groups < 1 || channels % made.groups != 0) return false;
  }
  set_form(node.outputs[0], std::move(made));
  return true;
}

ir::ValueId LayoutRewriter::mean_of_groups(ir::ValueId x, int64_t channels, int64_t groups) {
  const ir::SymShape& shape = patch_.value(x).type.shape;
  std::vector<int64_t> axes;
  for (size_t d = 2; d + 1 < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  const auto mean = [&](ir::ValueId of, const std::vector<int64_t>& along) {
    return patch_.add_node("reduce_mean", {of}, {{"axes", along}, {"keepdims", int64_t{1}}},
                           arranger_.origins())[0];
  };
  const ir::SymInt images = shape[0];
  const ir::ValueId pixels = mean(x, axes);
  if (groups == channels) return pixels;
  const std::vector<std::string>& origins = arranger_.origins();
  const ir::ValueId plain = patch_.add_node("from_blocked", {pixels}, {{"channels", channels}}, origins)[0];
  const ir::SymShape pixel = patch_.value(plain).type.shape, rows = {images, groups, channels / groups};
  const ir::ValueId means = mean(reshaped(plain, rows, origins), {2});
  const ir::ValueId spread = patch_.add_node("expand", {means}, {{"shape", rows}}, origins)[0];
  return patch_.add_node("to_blocked", {reshaped(spread, pixel, origins)}, {{"block", block()}}, origins)[0];
}

ir::ValueId LayoutRewriter::of_channels(ir::ValueId value, size_t rank, int64_t channels) {
  const Tensor* given = constant(value);
  if (given == nullptr || given->num_elements() == 0) return ir::kAbsent;
  Shape pixel(rank + 2, 1);
  pixel[1] = channels;
  Tensor all = Tensor::zeros(given->dtype(), pixel);
  for (int64_t c = 0; c < channels; ++c)
    all.set_element(c, given->element_as_double(c * given->num_elements() / channels));
  return patch_.add_constant(graph_.value(value).name + ".blocked",
                             pack_channels(all, in_order(channels), arranger_.blocks(channels), block(), 0));
}

bool LayoutRewriter::rewrite_norm(const ir::Node& node) {
  const ChannelForm* from = form(node.inputs[0]);
  if (from == nullptr || (from->groups == 0 && (node.op != "instance_norm" || !from->is_image())))
    return false;
  if (node.op == "layer_norm" && axis_of(node, -1, 3) != 2) return false;
  const auto channels = static_cast<int64_t>(from->lanes.size());
  const int64_t groups = from->groups > 0 ? from->groups : channels;
  std::vector<ir::ValueId> affine;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    // layer_norm's are of each element: of the pixels, too.
    if (node.op == "layer_norm") return false;
    affine.push_back(of_channels(node.inputs[i], from->rank, channels));
    if (affine.back() == ir::kAbsent) return false;
  }
  const auto add = [&](const char* op, std::vector<ir::ValueId> inputs) {
    return patch_.add_node(op, std::move(inputs), {}, node.origins)[0];
  };
  Tensor least = Tensor::zeros(type(node.inputs[0]).dtype, {});
  least.set_element(0, ops::attr_float(node.attrs, "epsilon", 1e-5));
  const ir::ValueId epsilon = patch_.add_constant("epsilon", least);
  ChannelForm made = *from;
  const ir::ValueId x = arranger_.arrange(made.lanes);
  const ir::ValueId mean = mean_of_groups(x, channels, groups), centred = add("sub", {x, mean});
  const ir::ValueId variance = mean_of_groups(add("mul", {centred, centred}), channels, groups);
  const ir::ValueId deviation = add("sqrt", {add("add", {variance, epsilon})});
  const ir::ValueId factor =
      affine.empty() ? add("reciprocal", {deviation}) : add("div", {affine[0], deviation});
  // Once more: what one kernel each computes for two readers is never stored.
  ir::ValueId result = add("mul", {add("sub", {x, mean}), factor});
  if (affine.size() > 1) result = add("add", {result, affine[1]});
  made.lanes = arranger_.whole(result, channels);
  set_form(node.outputs[0], std::move(made));
  return true;
}

}  // namespace tensormill::passes
