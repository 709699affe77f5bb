#include "compiler/passes/layouts/layout_rewriter.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/op_def.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/te_util.h"

namespace tensormill::passes {

ir::Graph LayoutRewriter::run() {
  for (const ir::Node& node : graph_.nodes()) visit(node);
  for (const ir::ValueId output : graph_.outputs()) make_plain(output);
  return patch_.apply();
}

void LayoutRewriter::visit(const ir::Node& node) {
  bool reads_forms = false;
  for (const ir::ValueId input : node.inputs) reads_forms = reads_forms || form(input) != nullptr;
  if (!reads_forms && node.op != "conv" && node.op != "conv_integer") return;
  arranger_.set_origins(node.origins);
  if (!is_fixed(node) && rewrite(node)) return;
  for (const ir::ValueId input : node.inputs) make_plain(input);
}

bool LayoutRewriter::is_fixed(const ir::Node& node) const {
  if (ops::is_channels_last(node.attrs)) return true;
  return desired_ && desired_->layout == MapLayout::kChannelsFirst && desired_->asks_for(node);
}

bool LayoutRewriter::rewrite(const ir::Node& node) {
  for (const ir::ValueId output : node.outputs) {
    if (ops::is_empty(type(output).shape)) return false;
  }
  const std::string& op = node.op;
  if (op == "layer_norm" || op == "instance_norm") return rewrite_norm(node);
  const bool reads_groups = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId input) {
    return form(input) != nullptr && form(input)->groups > 0;
  });
  if (reads_groups) return op == "reshape" && rewrite_groups(node);
  if (op == "conv") return rewrite_conv(node);
  if (op == "conv_integer") return rewrite_conv_integer(node);
  if (op == "max_pool" || op == "avg_pool") return rewrite_pool(node);
  if (op == "reduce_mean" || op == "reduce_sum" || op == "reduce_max" || op == "reduce_min")
    return rewrite_reduction(node);
  if (op == "concat") return rewrite_concat(node);
  if (op == "split") return rewrite_split(node);
  if (op == "slice") return rewrite_slice(node);
  if (op == "pad") return rewrite_pad(node);
  if (op == "depth_to_space") return rewrite_depth_to_space(node);
  if (op == "tile") return rewrite_tile(node);
  if (op == "gather") return rewrite_gather(node);
  if (op == "reshape") return rewrite_groups(node) || rewrite_reshape(node);
  if (op == "transpose") return rewrite_transpose(node);
  return op != "fused" && graph_.ops().get(op).pattern == ir::Pattern::kElementwise &&
         rewrite_elementwise(node);
}

const ChannelForm* LayoutRewriter::form(ir::ValueId value) const {
  const auto found = forms_.find(value);
  return found == forms_.end() ? nullptr : &found->second;
}

void LayoutRewriter::make_plain(ir::ValueId value) {
  const ChannelForm* from = form(value);
  if (from == nullptr || plain_[value]) return;
  plain_[value] = true;
  const std::vector<std::string>& origins = producer_of(graph_, value)->origins;
  const ir::ValueId tensor = arranger_.arrange(from->lanes);
  const ir::SymShape& blocked = patch_.value(tensor).type.shape;
  const ir::SymShape& wanted = type(value).shape;
  const int64_t channels = static_cast<int64_t>(from->lanes.size());
  ir::ValueId plain = tensor;
  // Where the pixels are one and the lanes full, the bytes stand in the plain order already.
  const bool is_pixel = std::all_of(blocked.begin() + 2, blocked.end() - 1, ops::is_one);
  if (!is_pixel || channels % block() != 0) {
    plain = patch_.add_node("from_blocked", {tensor}, {{"channels", channels}}, origins)[0];
  }
  patch_.replace(value, reshaped(plain, wanted, origins));
}

ir::ValueId LayoutRewriter::reshaped(ir::ValueId value, const ir::SymShape& shape,
                                     const std::vector<std::string>& origins) {
  if (are_equal(patch_.value(value).type.shape, shape)) return value;
  return patch_.add_node("reshape", {value}, {{"shape", shape}}, origins)[0];
}

ChannelForm LayoutRewriter::image_form(ir::ValueId value, const std::vector<std::string>& origins) {
  if (has_image(value)) return *form(value);
  make_plain(value);
  const ir::SymShape& shape = type(value).shape;
  const ir::ValueId tensor = patch_.add_node("to_blocked", {value}, {{"block", block()}}, origins)[0];
  ChannelForm made = {
      {shape[1]}, {shape.begin() + 2, shape.end()}, arranger_.whole(tensor, shape[1]), shape.size() - 2};
  set_form(value, made);
  plain_[value] = true;
  return made;
}

void LayoutRewriter::set_image(ir::ValueId value, ir::ValueId tensor, const std::vector<int64_t>& place) {
  const ir::SymShape& shape = type(value).shape;
  const std::vector<Lane> whole = arranger_.whole(tensor, static_cast<int64_t>(place.size()));
  const size_t rank = patch_.value(tensor).type.shape.size() - 3;
  ChannelForm made = {{shape[1]}, {shape.begin() + 2, shape.end()}, {}, rank};
  for (const int64_t lane : place) made.lanes.push_back(whole[static_cast<size_t>(lane)]);
  set_form(value, std::move(made));
}

std::vector<int64_t> LayoutRewriter::in_order(int64_t count) {
  std::vector<int64_t> place(static_cast<size_t>(count));
  std::iota(place.begin(), place.end(), int64_t{0});
  return place;
}

const Tensor* LayoutRewriter::constant(ir::ValueId value) const {
  if (value == ir::kAbsent || !graph_.value(value).constant) return nullptr;
  return &*graph_.value(value).constant;
}

}  // namespace tensormill::passes
