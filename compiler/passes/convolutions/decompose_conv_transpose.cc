// A transposed convolution of stride s is s convolutions in each dimension, one for each place (phase) that a
// pixel of the result can have between two of the input's: with o + pad = s*q + p, only the taps t = p + s*j
// meet pixels of the input, those at q - j. Side by side, as channels of one convolution with
// ceil(kernel / s) taps, they need no test of which taps meet; depth_to_space puts the pixels in their
// places. Source: Shi et al., Is the deconvolution layer the same as a convolutional layer?, 2016, section 2.
#include <algorithm>

#include "compiler/ir/patch.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/ops/windows/window.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

/// Weights may become so many times as many: a kernel smaller than its stride has zeros in all other phases.
constexpr int64_t kMaxGrowth = 16;
/// So many phases may be convolutions of their own: those of a grouped one, which then keep their blocks of
/// channels, and where products with zeros would take kMaxWaste times as long.
constexpr int64_t kMaxConvolutions = 16;
constexpr double kMaxWaste = 1.25;

class Decomposition {
public:
  /// `lanes` of a block of channels, 1 where channels are not blocked.
  Decomposition(const ir::Graph& graph, const ir::Node& node, int64_t lanes)
      : node_(node),
        x_(graph.value(node.inputs[0]).type.shape),
        out_(graph.value(node.outputs[0]).type.shape),
        weights_(*graph.value(node.inputs[1]).constant),
        bias_(node.inputs.size() > 2 && node.inputs[2] != ir::kAbsent ? &*graph.value(node.inputs[2]).constant
                                                                      : nullptr),
        window_(ops::read_window(node.attrs, ops::spatial_of(weights_.shape()))),
        groups_(ops::attr_int(node.attrs, "group", 1)),
        channels_(out_[1]) {
    for (size_t d = 0; d < window_.rank(); ++d) {
      const int64_t stride = window_.strides[d], pad = window_.pads_begin[d];
      taps_.push_back((window_.reach(d) + stride - 1) / stride);
      // Whole blocks that the pads cut off are not computed.
      skipped_.push_back(std::min(pad / stride, taps_[d] - 1));
      const ir::SymInt blocks = max(ceildiv(out_[d + 2] + pad, stride), x_[d + 2]);
      const ir::SymInt after = blocks - x_[d + 2];
      crops_begin_.push_back(pad - skipped_[d] * stride);
      const ir::SymInt cropped = (blocks - skipped_[d]) * stride - crops_begin_[d] - out_[d + 2];
      is_told_ = is_told_ && after.is_constant() && cropped.is_constant();
      pads_end_.push_back(after.hint());
      crops_end_.push_back(cropped.hint());
      phases_ *= stride;
    }
    const double useful = static_cast<double>(num_elements(window_.kernel));
    const double waste = static_cast<double>(num_elements(taps_) * phases_) / useful;
    is_split_ = phases_ <= kMaxConvolutions && (groups_ != 1 || waste > kMaxWaste);
    // Channels in full blocks of lanes stay there; few channels are moved one by one.
    const bool blocked = weights_.dtype() == DType::kFloat32 && window_.rank() == 2 && groups_ == 1;
    if (blocked && channels_ * 2 >= lanes) channels_ = (channels_ + lanes - 1) / lanes * lanes;
  }

  /// Pads and crops are numbers, and the weights not too many.
  bool pays() const {
    if (!is_told_) return false;
    const int64_t old_size = weights_.num_elements();
    return num_elements(taps_) * phases_ * (channels_ / groups_) * x_[1] <= kMaxGrowth * old_size;
  }

  void apply(const ir::Graph& graph, ir::Patch& patch) const {
    const std::string& name = graph.value(node_.inputs[1]).name;
    const int64_t each = is_split_ ? 1 : phases_;
    std::vector<ir::ValueId> parts;
    for (int64_t first = 0; first < phases_; first += each) {
      const Shape taps = is_split_ ? taps_of(first) : taps_;
      std::vector<ir::ValueId> inputs = {
          node_.inputs[0], patch.add_constant(name + ".phases", phase_weights(first, each, taps))};
      if (bias_ != nullptr) inputs.push_back(patch.add_constant(name + ".phases_bias", phase_bias(each)));
      parts.push_back(patch.add_node("conv", std::move(inputs), conv_attrs(taps), node_.origins)[0]);
      if (groups_ != 1 && each != 1) parts.back() = phases_first(patch, parts.back());
    }
    const ir::ValueId all = parts.size() == 1 ? parts[0]
                                              : patch.add_node("concat", std::move(parts),
                                                               {{"axis", int64_t{1}}}, node_.origins)[0];
    ir::Attrs attrs{{"blocks", window_.strides}};
    std::vector<int64_t> crops = crops_begin_;
    crops.insert(crops.end(), crops_end_.begin(), crops_end_.end());
    attrs.set("crops", crops);
    if (channels_ != out_[1]) attrs.set("channels", int64_t{out_[1]});
    patch.replace(node_.outputs[0], patch.add_node("depth_to_space", {all}, attrs, node_.origins)[0]);
  }

private:
  /// Taps that one phase needs.
  Shape taps_of(int64_t phase) const {
    Shape taps(taps_.size());
    for (size_t d = taps.size(); d-- > 0;) {
      const int64_t stride = window_.strides[d], place = phase % stride;
      taps[d] = std::max((window_.reach(d) - place + stride - 1) / stride, skipped_[d] + 1);
      phase /= stride;
    }
    return taps;
  }

  /// A grouped convolution has each group's phases side by side.
  ir::ValueId phases_first(ir::Patch& patch, ir::ValueId all) const {
    const ir::SymShape shape = patch.value(all).type.shape;
    ir::SymShape split = {shape[0], groups_, phases_, channels_ / groups_};
    std::vector<int64_t> order = {0, 2, 1, 3};
    for (size_t d = 2; d < shape.size(); ++d) {
      order.push_back(static_cast<int64_t>(split.size()));
      split.push_back(shape[d]);
    }
    const ir::ValueId parts = patch.add_node("reshape", {all}, {{"shape", split}}, node_.origins)[0];
    const ir::ValueId moved = patch.add_node("transpose", {parts}, {{"perm", order}}, node_.origins)[0];
    return patch.add_node("reshape", {moved}, {{"shape", shape}}, node_.origins)[0];
  }

  ir::Attrs conv_attrs(const Shape& taps) const {
    std::vector<int64_t> pads;
    for (size_t d = 0; d < window_.rank(); ++d) pads.push_back(taps[d] - 1 - skipped_[d]);
    pads.insert(pads.end(), pads_end_.begin(), pads_end_.end());
    ir::Attrs attrs{{"pads", pads}};
    if (groups_ != 1) attrs.set("group", groups_);
    return attrs;
  }

  /// One output channel of a convolution of `count` phases from `first` on, group by group.
  struct Row {
    int64_t phase, channel;
  };
  Row row_of(int64_t row, int64_t first, int64_t count) const {
    const int64_t each = channels_ / groups_, group = row / (count * each), rest = row % (count * each);
    return {first + rest / each, group * each + rest % each};
  }

  /// Weights [count*channels, C/group, taps...] of `count` phases from `first` on.
  Tensor phase_weights(int64_t first, int64_t count, const Shape& taps) const {
    Shape shape = {count * channels_, int64_t{x_[1]} / groups_};
    shape.insert(shape.end(), taps.begin(), taps.end());
    Tensor result = Tensor::zeros(weights_.dtype(), shape);
    const Shape strides = row_major_strides(weights_.shape());
    const int64_t outputs = int64_t{out_[1]} / groups_;
    ops::for_each_index(shape, [&](int64_t to, const Shape& at) {
      auto [phase, channel] = row_of(at[0], first, count);
      if (channel >= out_[1]) return;
      int64_t from = (channel / outputs * shape[1] + at[1]) * strides[0] + channel % outputs * strides[1];
      for (size_t d = window_.rank(); d-- > 0;) {
        const int64_t place = phase % window_.strides[d];
        phase /= window_.strides[d];
        const int64_t tap = place + window_.strides[d] * (taps[d] - 1 - at[d + 2]);
        if (tap >= window_.reach(d) || tap % window_.dilations[d] != 0) return;
        from += tap / window_.dilations[d] * strides[d + 2];
      }
      ops::copy_element(weights_, from, result, to);
    });
    return result;
  }

  Tensor phase_bias(int64_t count) const {
    Tensor result = Tensor::zeros(bias_->dtype(), {count * channels_});
    for (int64_t i = 0; i < count * channels_; ++i) {
      const int64_t channel = row_of(i, 0, count).channel;
      if (channel < out_[1]) ops::copy_element(*bias_, channel, result, i);
    }
    return result;
  }

  const ir::Node& node_;
  const ir::SymShape x_, out_;
  const Tensor& weights_;
  const Tensor* bias_;
  const ops::Window window_;
  const int64_t groups_;
  int64_t channels_;  ///< of each phase
  int64_t phases_ = 1;
  bool is_told_ = true;
  bool is_split_ = false;                                                     ///< one convolution a phase
  std::vector<int64_t> taps_, skipped_, pads_end_, crops_begin_, crops_end_;  ///< by spatial dimension
};

bool has_constants(const ir::Graph& graph, const ir::Node& node) {
  const auto is_constant = [&](size_t i) { return graph.value(node.inputs[i]).constant.has_value(); };
  return is_constant(1) && graph.value(node.inputs[1]).constant->num_elements() > 0 &&
         (node.inputs.size() < 3 || node.inputs[2] == ir::kAbsent || is_constant(2));
}

}  // namespace

ir::Graph decompose_conv_transpose(const ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, "decompose_conv_transpose");
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "conv_transpose" || ops::is_channels_last(node.attrs) || !has_constants(graph, node))
      continue;
    const Decomposition decomposition(graph, node,
                                      is_generic(context, graph, node) ? 1 : context.facts.lanes(32));
    if (decomposition.pays()) decomposition.apply(graph, patch);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
