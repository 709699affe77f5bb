// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), times a scale, plus a bias, as exporters write it, =
// layer_norm(x, scale, bias) where the means are over the last axes.
#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

struct Normalization {
  ir::ValueId x = ir::kAbsent;
  int64_t axis = 0;
  double epsilon = 0;
};

class LayerNormFuser {
public:
  explicit LayerNormFuser(const ir::Graph& graph)
      : graph_(graph), patch_(graph, "fuse_layer_norm"), uses_(graph.uses()), reads_(count_reads(graph)) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (const std::optional<Normalization> found = match_quotient(node)) replace(node, *found);
    }
    return patch_.apply();
  }

private:
  const ir::ValueType& type(ir::ValueId id) const { return graph_.value(id).type; }

  /// The first of the last axes over which `node` takes the mean, keeping them with extent 1.
  std::optional<int64_t> trailing_mean(const ir::Node* node) const {
    if (node == nullptr) return std::nullopt;
    const ir::SymShape &from = type(node->inputs[0]).shape, &to = type(node->outputs[0]).shape;
    if (from.size() != to.size() || !node->attrs.has("axes")) return std::nullopt;
    const int64_t rank = static_cast<int64_t>(from.size());
    std::vector<char> reduced(from.size(), 0);
    for (int64_t axis : node->attrs.ints_of("axes"))
      reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = 1;
    int64_t first = rank;
    while (first > 0 && reduced[static_cast<size_t>(first - 1)]) --first;
    for (int64_t d = 0; d < first; ++d) {
      if (reduced[static_cast<size_t>(d)]) return std::nullopt;
    }
    return first < rank ? std::optional<int64_t>(first) : std::nullopt;
  }

  /// x and the axis when `centered` = x - mean(x).
  std::optional<Normalization> match_centered(ir::ValueId centered) const {
    const ir::Node* sub = match(graph_, centered, "sub");
    if (sub == nullptr) return std::nullopt;
    const ir::Node* mean = match(graph_, sub->inputs[1], "reduce_mean");
    const std::optional<int64_t> axis = trailing_mean(mean);
    if (!axis || mean->inputs[0] != sub->inputs[0] || !have_same_type(graph_, centered, sub->inputs[0]))
      return std::nullopt;
    return Normalization{sub->inputs[0], *axis, 0};
  }

  /// epsilon when `root` = sqrt(mean(centered^2) + epsilon) over the same axes.
  std::optional<double> match_deviation(ir::ValueId root, ir::ValueId centered, int64_t axis) const {
    const ir::Node* sqrt = match(graph_, root, "sqrt");
    const ir::Node* add = sqrt != nullptr ? match(graph_, sqrt->inputs[0], "add") : nullptr;
    for (size_t i = 0; add != nullptr && i < 2; ++i) {
      const ir::Node* mean = match(graph_, add->inputs[i], "reduce_mean");
      const std::optional<double> epsilon = scalar_of(graph_, add->inputs[1 - i]);
      if (!epsilon || trailing_mean(mean) != axis) continue;
      const ir::Node* square = match(graph_, mean->inputs[0], "mul");
      if (square != nullptr && square->inputs[0] == centered && square->inputs[1] == centered) return epsilon;
    }
    return std::nullopt;
  }

  std::optional<Normalization> match_quotient(const ir::Node& node) const {
    if (node.op != "div" && node.op != "mul") return std::nullopt;
    for (size_t i = 0; i < (node.op == "div" ? 1u : 2u); ++i) {
      std::optional<Normalization> found = match_centered(node.inputs[i]);
      if (!found) continue;
      ir::ValueId root = node.inputs[1 - i];
      if (node.op == "mul") {
        const ir::Node* inverse = match(graph_, root, "reciprocal");
        if (inverse == nullptr) continue;
        root = inverse->inputs[0];
      }
      const std::optional<double> epsilon = match_deviation(root, node.inputs[i], found->axis);
      if (!epsilon || !have_same_type(graph_, node.outputs[0], found->x)) continue;
      found->epsilon = *epsilon;
      return found;
    }
    return std::nullopt;
  }

  /// The only reader of `value` when it is `op` with another operand of the normalized shape; sets `operand`.
  const ir::Node* affine_step(ir::ValueId value, const std::string& op, int64_t axis,
                              ir::ValueId& operand) const {
    if (reads_[static_cast<size_t>(value)] != 1 || uses_[static_cast<size_t>(value)].size() != 1)
      return nullptr;
    const ir::Node& node = graph_.node(uses_[static_cast<size_t>(value)][0]);
    if (node.op != op || !have_same_type(graph_, node.outputs[0], value)) return nullptr;
    const ir::ValueId other = node.inputs[node.inputs[0] == value ? 1 : 0];
    const ir::SymShape& shape = type(value).shape;
    const ir::SymShape normalized(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
    if (!are_equal(type(other).shape, normalized)) return nullptr;
    operand = other;
    return &node;
  }

  void replace(const ir::Node& quotient, const Normalization& found) {
    const ir::Node* last = &quotient;
    std::vector<std::string> origins = quotient.origins;
    std::vector<ir::ValueId> inputs = {found.x, ir::kAbsent, ir::kAbsent};
    for (size_t i = 1; i <= 2; ++i) {
      const ir::Node* next = affine_step(last->outputs[0], i == 1 ? "mul" : "add", found.axis, inputs[i]);
      if (next == nullptr) continue;
      last = next;
      origins = merge_origins(std::move(origins), next->origins);
    }
    const ir::Attrs attrs{{"axis", found.axis}, {"epsilon", found.epsilon}};
    patch_.replace(last->outputs[0], patch_.add_node("layer_norm", std::move(inputs), attrs, origins)[0]);
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
  std::vector<std::vector<ir::NodeId>> uses_;
  std::vector<int> reads_;
};

}  // namespace

ir::Graph fuse_layer_norm(const ir::Graph& graph, const PassContext& /*context*/) {
  return LayerNormFuser(graph).run();
}

}  // namespace tensormill::passes
