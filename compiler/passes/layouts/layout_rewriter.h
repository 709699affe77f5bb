/// What alter_layout is made of: one walk over the graph that keeps, for each plain value, where its channels
/// stand in blocked tensors, and makes plain tensors again only where a node wants them.
/// Thread-safety: belongs to one thread.
#pragma once

#include <map>
#include <optional>

#include "compiler/passes/layouts/channel_form.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/passes/match.h"

namespace tensormill::passes {

class LayoutRewriter {
public:
  /// `desired`: what is computed in a layout that was requested stays in it.
  LayoutRewriter(const ir::Graph& graph, int64_t block, const std::optional<DesiredLayout>& desired)
      : graph_(graph), desired_(desired), patch_(graph, "alter_layout"), arranger_(patch_, block) {}
  ir::Graph run();

private:
  // ---- layout_rewriter.cc
  void visit(const ir::Node& node);
  /// Whether it must not read or make blocks of channels.
  bool is_fixed(const ir::Node& node) const;
  /// Makes the node's results out of blocked tensors, or returns false: it wants plain ones.
  bool rewrite(const ir::Node& node);
  const ChannelForm* form(ir::ValueId value) const;
  void set_form(ir::ValueId value, ChannelForm form) { forms_[value] = std::move(form); }
  /// Readers of a value that has a form find a plain tensor.
  void make_plain(ir::ValueId value);
  /// The form of an [N,C,spatial...] value, made from the plain tensor when there is none.
  ChannelForm image_form(ir::ValueId value, const std::vector<std::string>& origins);
  /// The result `value` of the model is `tensor`, channel c in lane place[c].
  void set_image(ir::ValueId value, ir::ValueId tensor, const std::vector<int64_t>& place);

  const ir::ValueType& type(ir::ValueId value) const { return graph_.value(value).type; }
  const Tensor* constant(ir::ValueId value) const;
  bool has_image(ir::ValueId value) const { return form(value) != nullptr && form(value)->is_image(); }
  /// Whether a value of so many dimensions may be an image: batch, channels, one to three spatial ones.
  static bool is_image_rank(size_t dims) { return dims >= 3 && dims <= 5; }
  ir::ValueId reshaped(ir::ValueId value, const ir::SymShape& shape, const std::vector<std::string>& origins);
  /// Places of channels that stand one after the other.
  static std::vector<int64_t> in_order(int64_t count);
  int64_t block() const { return arranger_.block(); }

  // ---- layout_conv.cc
  bool rewrite_conv(const ir::Node& node);
  bool is_convolution_of_constants(const ir::Node& node) const;
  ir::ValueId packed_bias(const ir::Node& node, const std::vector<int64_t>& place, int64_t blocks);
  /// Whether a convolution of one group is faster on a plain tensor that is made of the blocked one.
  bool fills_few_lanes(const ir::Node& node) const;
  void rewrite_first(const ir::Node& node);
  void rewrite_depthwise(const ir::Node& node);
  /// With `joined` groups of the convolution computed as one.
  void rewrite_dense(const ir::Node& node, int64_t joined);
  /// How many groups of a convolution are computed as one, their weights zero where an output does not read
  /// an input, so that they are whole blocks of channels; 0 where that is too many. Moving channels into
  /// blocks of their own would cost more than a few products by zero.
  int64_t groups_to_join(int64_t inputs, int64_t outputs, int64_t groups) const;
  // ---- layout_conv_integer.cc
  bool rewrite_conv_integer(const ir::Node& node);
  ir::ValueId integer_bias(const ir::Node& node);

  // ---- layout_compute.cc
  bool rewrite_elementwise(const ir::Node& node);
  bool rewrite_pool(const ir::Node& node);
  bool rewrite_reduction(const ir::Node& node);
  /// An operand of an elementwise node with a result of `dims` dimensions as a blocked tensor whose channel c
  /// stands in lane place[c], or of one channel for all; pad lanes of constants hold `pad`.
  ir::ValueId operand(const ir::Node& node, ir::ValueId input, size_t dims, const std::vector<int64_t>& place,
                      double pad);
  /// Whether an operand of an elementwise node with a result of shape `out` has its channels, or one for all.
  bool has_known_channels(ir::ValueId input, const ir::SymShape& out) const;
  /// What pad lanes of the node's per-channel constants must hold to keep the result's at zero, if anything
  /// does.
  std::optional<double> zero_keeping_pad(const ir::Node& node, int64_t channels) const;
  /// `value` with zeros in its pad lanes.
  ir::ValueId masked(ir::ValueId value, int64_t channels, const std::vector<std::string>& origins);

  // ---- layout_norm.cc
  /// An image as groups of its channels, [N,groups,rest], and back.
  bool rewrite_groups(const ir::Node& node);
  /// A normalization of each channel of an image, or of groups of channels.
  bool rewrite_norm(const ir::Node& node);
  /// The mean of each group of the channels of a blocked tensor, at one pixel of each of its channels.
  ir::ValueId mean_of_groups(ir::ValueId x, int64_t channels, int64_t groups);
  /// A constant of one value a group as one pixel of each channel in blocks; kAbsent where it is no constant.
  ir::ValueId of_channels(ir::ValueId value, size_t rank, int64_t channels);

  // ---- layout_moves.cc
  bool rewrite_concat(const ir::Node& node);
  bool rewrite_split(const ir::Node& node);
  bool rewrite_slice(const ir::Node& node);
  bool rewrite_pad(const ir::Node& node);
  bool rewrite_depth_to_space(const ir::Node& node);
  /// Whether what is dropped of each phase of `channels` is zero, as a convolution before it says.
  bool phases_end_in_zeros(const ir::Node& node, int64_t channels) const;
  bool rewrite_gather_pixels(const ir::Node& node);
  bool rewrite_tile(const ir::Node& node);
  bool rewrite_gather(const ir::Node& node);
  bool rewrite_reshape(const ir::Node& node);
  bool rewrite_transpose(const ir::Node& node);

  const ir::Graph& graph_;
  const std::optional<DesiredLayout>& desired_;
  ir::Patch patch_;
  LaneArranger arranger_;
  std::map<ir::ValueId, ChannelForm> forms_;
  std::map<ir::ValueId, bool> plain_;                        ///< values that make_plain has replaced
  std::map<std::pair<int64_t, size_t>, ir::ValueId> masks_;  ///< by channels and dimensions
};

}  // namespace tensormill::passes
