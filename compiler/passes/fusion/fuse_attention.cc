// merge(softmax(split(Q) split(K)^T * scale + masks) split(V)) = attention(Q, K, V, masks), where split makes
// [N,heads,S,width] of columns of [N,S,..] by moves (head_source.h), and merge makes [N,S,heads*width] of it.
// Narrow floats may be computed as float32.
#include <cmath>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/fusion/head_source.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

using Perm = std::vector<int64_t>;

/// What is added to scores.
struct Mask {
  ir::ValueId value = ir::kAbsent;
  bool is_of_windows = false;  ///< it has one more axis before, of one element
};

struct Scores {
  const ir::Node* product = nullptr;
  double scale = 1;
  std::vector<Mask> masks;
};

class AttentionFuser {
public:
  explicit AttentionFuser(const ir::Graph& graph)
      : graph_(graph), patch_(graph, "fuse_attention"), uses_(graph.uses()), reads_(count_reads(graph)) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op == "softmax") visit(node);
    }
    return patch_.apply();
  }

private:
  const ir::ValueType& type(ir::ValueId id) const { return graph_.value(id).type; }

  /// The node that alone reads `value`, when it is `op`; else null.
  const ir::Node* only_reader(ir::ValueId value, std::string_view op) const {
    const std::vector<ir::NodeId>& readers = uses_[static_cast<size_t>(value)];
    if (reads_[static_cast<size_t>(value)] != 1 || readers.size() != 1) return nullptr;
    const ir::Node& node = graph_.node(readers[0]);
    return node.op == op ? &node : nullptr;
  }

  size_t most_masks() const { return static_cast<size_t>(graph_.ops().get("attention").max_inputs) - 3; }

  bool is_read_once(ir::ValueId value) const { return reads_[static_cast<size_t>(value)] == 1; }

  /// scores = product [* or / scalar] [+ mask ...], each step read once.
  std::optional<Scores> match_scores(ir::ValueId value, size_t masks = 0) const {
    double scale = 1;
    bool is_scaled = false;
    while (const std::optional<Times> times = match_times(graph_, value)) {
      if (!is_read_once(value)) return std::nullopt;
      is_scaled = true;
      scale *= times->by;
      value = times->x;
    }
    const ir::Node* node = producer_of(graph_, value);
    if (node == nullptr || !is_read_once(value) || masks > most_masks()) return std::nullopt;
    if (node->op == "matmul") return Scores{node, scale, {}};
    if (is_scaled) return std::nullopt;
    if (node->op == "reshape") return match_windows(*node, masks);
    if (node->op != "add") return std::nullopt;
    for (const size_t side : {0, 1}) {
      if (!have_same_type(graph_, node->inputs[side], value)) continue;
      std::optional<Scores> scores = match_scores(node->inputs[side], masks + 1);
      if (!scores) continue;
      scores->masks.push_back({node->inputs[1 - side]});
      return scores;
    }
    return std::nullopt;
  }

  /// A mask for each window of one image: it is added to the scores as [1,windows,heads,S,T].
  std::optional<Scores> match_windows(const ir::Node& reshape, size_t masks) const {
    const ir::Node* add = match(graph_, reshape.inputs[0], "add");
    const ir::SymShape& shape = type(reshape.outputs[0]).shape;
    ir::SymShape windows = {1};
    windows.insert(windows.end(), shape.begin(), shape.end());
    if (add == nullptr || !is_read_once(reshape.inputs[0]) ||
        !are_equal(type(reshape.inputs[0]).shape, windows))
      return std::nullopt;
    for (const size_t side : {0, 1}) {
      const ir::Node* inner = match(graph_, add->inputs[side], "reshape");
      if (inner == nullptr || !is_read_once(add->inputs[side]) ||
          !have_same_type(graph_, inner->inputs[0], reshape.outputs[0]) ||
          !have_same_type(graph_, add->inputs[side], add->outputs[0]))
        continue;
      std::optional<Scores> scores = match_scores(inner->inputs[0], masks + 1);
      if (!scores) continue;
      const ir::ValueId mask = add->inputs[1 - side];
      scores->masks.push_back({mask, type(mask).shape.size() == windows.size()});
      return scores;
    }
    return std::nullopt;
  }

  void visit(const ir::Node& softmax) {
    const ir::SymShape& shape = type(softmax.outputs[0]).shape;
    if (shape.size() != 4) return;
    const std::optional<Scores> scores = match_scores(softmax.inputs[0]);
    const ir::Node* mix = only_reader(softmax.outputs[0], "matmul");
    if (axis_of(softmax, -1, 4) != 3 || !scores || mix == nullptr || mix->inputs[0] != softmax.outputs[0] ||
        ops::attr_bool(mix->attrs, "transpose_a", false) ||
        ops::attr_bool(mix->attrs, "transpose_b", false) ||
        ops::attr_bool(scores->product->attrs, "transpose_a", false))
      return;
    // Narrow floats are computed as wide ones, and the result is narrow again.
    const ir::Node* narrowed = only_reader(mix->outputs[0], "cast");
    const ir::ValueId mixed = narrowed != nullptr ? narrowed->outputs[0] : mix->outputs[0];
    const ir::Node* swap = only_reader(mixed, "transpose");
    if (swap == nullptr || permutation_of(graph_, *swap) != Perm{0, 2, 1, 3}) return;
    const ir::Node* merge = only_reader(swap->outputs[0], "reshape");
    const bool flipped = ops::attr_bool(scores->product->attrs, "transpose_b", false);
    using enum HeadAxis;
    const HeadAxes rows = {kBatch, kHead, kRow, kColumn}, columns = {kBatch, kHead, kColumn, kRow};
    const std::optional<HeadSource> q = head_source(graph_, scores->product->inputs[0], rows);
    const std::optional<HeadSource> k =
        head_source(graph_, scores->product->inputs[1], flipped ? rows : columns);
    const std::optional<HeadSource> v = head_source(graph_, mix->inputs[1], rows);
    if (merge == nullptr || !q || !k || !v || v->scale != 1) return;
    const bool alike =
        q->heads == k->heads && q->heads == v->heads && q->width == k->width && q->width == v->width;
    const ir::SymShape merged = {shape[0], shape[2], q->heads * q->width};
    // The same keys and values for all rows of a batch broadcast: the products stay.
    const auto has_batch = [&](const HeadSource& source) {
      return are_equal(type(source.value).shape[0], shape[0]);
    };
    if (!has_batch(*q) || !has_batch(*k) || !has_batch(*v)) return;
    if (!alike || !are_equal(type(merge->outputs[0]).shape, merged)) return;
    const auto has_type = [&](const HeadSource& source) {
      return type(source.value).dtype == type(mixed).dtype;
    };
    if (!has_type(*q) || !has_type(*k) || !has_type(*v)) return;
    replace(softmax, *merge, *scores, {*q, *k, *v});
  }

  void replace(const ir::Node& softmax, const ir::Node& merge, const Scores& scores,
               const std::vector<HeadSource>& sources) {
    std::vector<ir::ValueId> inputs;
    std::vector<int64_t> offsets;
    for (const HeadSource& source : sources) {
      inputs.push_back(source.value);
      offsets.push_back(source.offset);
    }
    for (const Mask& mask : scores.masks) {
      const ir::ValueId narrow = narrow_of(graph_, mask.value);
      const bool is_narrow = type(narrow).dtype == type(inputs[0]).dtype;
      inputs.push_back(without_windows(is_narrow ? narrow : mask.value, mask.is_of_windows));
    }
    const ir::Attrs attrs{{"heads", sources[0].heads},
                          {"width", sources[0].width},
                          {"scale", scores.scale * sources[0].scale * sources[1].scale},
                          {"offsets", offsets}};
    std::vector<std::string> origins = merge_origins(scores.product->origins, softmax.origins);
    origins = merge_origins(std::move(origins), merge.origins);
    patch_.replace(merge.outputs[0],
                   patch_.add_node("attention", std::move(inputs), attrs, std::move(origins))[0]);
  }

  ir::ValueId without_windows(ir::ValueId mask, bool is_of_windows) {
    if (!is_of_windows) return mask;
    const ir::SymShape& shape = type(mask).shape;
    return patch_.add_node("reshape", {mask}, {{"shape", ir::SymShape(shape.begin() + 1, shape.end())}},
                           {})[0];
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
  std::vector<std::vector<ir::NodeId>> uses_;
  std::vector<int> reads_;
};

}  // namespace

ir::Graph fuse_attention(const ir::Graph& graph, const PassContext& /*context*/) {
  return AttentionFuser(graph).run();
}

}  // namespace tensormill::passes
