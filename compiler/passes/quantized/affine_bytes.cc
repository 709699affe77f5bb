// What is elementwise of one byte and gives a byte, with constants that may differ by channel, becomes one
// product, one sum and one rounding where those give the same bytes: a dequantized value that is scaled,
// shifted and limited, and quantized again, without its divisions. All results, 256 a channel, are compared
// (rounded_affine.h).
//
// A byte that such a chain alone reads is not made: the chain reads what would have become it.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/quantized/byte_chains.h"
#include "compiler/passes/quantized/rounded_affine.h"

namespace tensormill::passes {

namespace {

constexpr int64_t kMostChannels = 4096;
/// In steps that are computed in a cycle or so for a vector.
constexpr int64_t kDivision = 4;
/// The product, the sum, the rounding and the conversion to the byte.
constexpr int64_t kSteps = 4;

/// Rounded values before they became a byte.
struct Rounded {
  ir::ValueId value = ir::kAbsent;  ///< float32
  RoundedAffine affine;
};

class AffineBytes {
public:
  explicit AffineBytes(const ir::Graph& graph)
      : graph_(graph),
        patch_(graph, "affine_bytes"),
        chains_(graph, kMostChannels),
        reads_(count_reads(graph)) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) visit(node);
    return patch_.apply();
  }

private:
  void visit(const ir::Node& node) {
    const ByteFunction* made = chains_.visit(node);
    if (made == nullptr || made->root == ir::kAbsent) return;
    const ir::ValueId output = node.outputs[0];
    if (!is_byte(graph_.value(output).type.dtype)) return;
    replace(output, *made);
    chains_.begin_at(output);
  }

  void replace(ir::ValueId output, const ByteFunction& function) {
    const ir::ValueType &type = graph_.value(output).type, &root = graph_.value(function.root).type;
    // Extents that are equal may be written differently, and then readers have it as it was.
    if (!function.unrounded || !ir::same(type.shape, root.shape)) return;
    const std::set<ir::NodeId> nodes = chains_.nodes_between(output, function.root);
    const int64_t saved = work_saved(nodes);
    if (saved <= kSteps) return;
    const std::optional<RoundedAffine> affine = rounded_affine(function, root.dtype);
    if (!affine) return;
    const bool clips_low = affine->exceeds_low() && affine->low > least_of(type.dtype);
    const bool clips_high = affine->exceeds_high() && affine->high < least_of(type.dtype) + 255;
    const Rounded* given = given_for(function.root);
    const int64_t added = kSteps + (affine->offset != 0 ? 1 : 0) + clips_low + clips_high +
                          (given == nullptr ? 1 : given->affine.exceeds_low() + given->affine.exceeds_high());
    if (saved <= added) return;
    const std::vector<std::string> origins = chains_.origins_of(nodes);
    const ir::ValueId q = given == nullptr ? add("cast", {function.root}, {{"to", DType::kFloat32}}, origins)
                                           : clipped(given->value, given->affine, given->affine.exceeds_low(),
                                                     given->affine.exceeds_high(), origins);
    const ir::ValueId rounded = rounded_of(output, q, function, *affine, origins);
    const ir::ValueId limited = clipped(rounded, *affine, clips_low, clips_high, origins);
    patch_.replace(output, add("cast", {limited}, {{"to", type.dtype}}, origins));
    rounded_.emplace(output, Rounded{rounded, *affine});
  }

  /// What is not computed any more: the steps whose results only others of them read.
  int64_t work_saved(const std::set<ir::NodeId>& nodes) const {
    std::map<ir::ValueId, int> reads;
    int64_t saved = 0;
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      const ir::Node& node = graph_.node(*id);
      const ir::ValueId output = node.outputs[0];
      if (id != nodes.rbegin() && reads[output] != reads_[static_cast<size_t>(output)]) continue;
      saved += node.op == "div" ? kDivision : 1;
      for (const ir::ValueId input : node.inputs) {
        if (input != ir::kAbsent) ++reads[input];
      }
    }
    return saved;
  }

  /// What becomes the byte `root`, where nothing else reads that.
  const Rounded* given_for(ir::ValueId root) const {
    const auto found = rounded_.find(root);
    return found == rounded_.end() || reads_[static_cast<size_t>(root)] != 1 ? nullptr : &found->second;
  }

  ir::ValueId rounded_of(ir::ValueId output, ir::ValueId q, const ByteFunction& function,
                         const RoundedAffine& affine, const std::vector<std::string>& origins) {
    const std::string& name = graph_.value(output).name;
    const auto along = [&](const char* what, const std::vector<float>& values) {
      Shape shape;
      if (function.channels > 1) {
        shape.assign(graph_.value(output).type.shape.size(), 1);
        shape[shape.size() - 1 - function.axis] = function.channels;
      }
      return patch_.add_constant(name + what, Tensor::from<float>(shape, values));
    };
    const ir::ValueId product = add("mul", {q, along(".scale", affine.scale)}, {}, origins);
    const ir::ValueId sum = add("add", {product, along(".shift", affine.shift)}, {}, origins);
    const ir::ValueId rounded = add("round", {sum}, {}, origins);
    if (affine.offset == 0) return rounded;
    Tensor offset(DType::kFloat32, {});
    offset.set_element(0, affine.offset);
    return add("add", {rounded, patch_.add_constant(name + ".offset", offset)}, {}, origins);
  }

  ir::ValueId clipped(ir::ValueId value, const RoundedAffine& affine, bool low, bool high,
                      const std::vector<std::string>& origins) {
    if (!low && !high) return value;
    ir::Attrs attrs;
    if (low) attrs.set("min", affine.low);
    if (high) attrs.set("max", affine.high);
    return add("clip", {value}, attrs, origins);
  }

  ir::ValueId add(const char* op, std::vector<ir::ValueId> inputs, ir::Attrs attrs,
                  const std::vector<std::string>& origins) {
    return patch_.add_node(op, std::move(inputs), std::move(attrs), origins)[0];
  }

  static double least_of(DType byte) { return byte == DType::kInt8 ? -128 : 0; }

  const ir::Graph& graph_;
  ir::Patch patch_;
  ByteChains chains_;
  std::vector<int> reads_;
  std::map<ir::ValueId, Rounded> rounded_;  ///< by the byte of the graph
};

}  // namespace

ir::Graph affine_bytes(const ir::Graph& graph, const PassContext& /*context*/) {
  return AffineBytes(graph).run();
}

}  // namespace tensormill::passes
