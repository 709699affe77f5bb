// merge(softmax(split(Q) split(K)^T * scale + mask) split(V)) = attention(Q, K, V, mask), where split makes
// [N,heads,S,width] of [N,S,heads*width] by a reshape and a transpose, and merge undoes it. Q, K and V that
// are parts of one tensor, cut along its columns, are read from it. Narrow floats may be computed as float32.
#include <cmath>

#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

using Perm = std::vector<int64_t>;

/// Columns [offset, offset + heads*width) of a [N,S,..] tensor, head by head.
struct HeadSource {
  ir::ValueId value = ir::kAbsent;
  int64_t offset = 0, heads = 0, width = 0;
};

struct Scores {
  const ir::Node* product = nullptr;
  double scale = 1;
  ir::ValueId mask = ir::kAbsent;
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

  static bool transposes(const ir::Node& product, const std::string& which) {
    return product.attrs.has(which) && product.attrs.int_of(which) != 0;
  }

  /// What a cast makes wider, or `value` where none does.
  ir::ValueId narrow_of(ir::ValueId value) const {
    const ir::Node* cast = match(graph_, value, "cast");
    if (cast == nullptr) return value;
    const DType from = type(cast->inputs[0]).dtype;
    return is_float(from) && dtype_bytes(from) < dtype_bytes(type(value).dtype) ? cast->inputs[0] : value;
  }

  std::optional<HeadSource> match_heads(ir::ValueId value, const Perm& perm) const {
    const ir::Node* transpose = match(graph_, narrow_of(value), "transpose");
    if (transpose == nullptr || permutation_of(graph_, *transpose) != perm) return std::nullopt;
    const ir::Node* reshape = match(graph_, transpose->inputs[0], "reshape");
    if (reshape == nullptr) return std::nullopt;
    const ir::SymShape &from = type(reshape->inputs[0]).shape, &to = type(reshape->outputs[0]).shape;
    if (from.size() != 3 || to.size() != 4 || !are_equal(from[0], to[0]) || !are_equal(from[1], to[1]) ||
        !to[2].is_constant() || !to[3].is_constant())
      return std::nullopt;
    HeadSource source{reshape->inputs[0], 0, to[2], to[3]};
    const ir::Node* split = match(graph_, source.value, "split");
    if (split != nullptr && (split->attrs.int_of("axis") == 2 || split->attrs.int_of("axis") == -1)) {
      const ir::SymShape sizes = split->attrs.sym_ints_of("sizes");
      if (!sizes.is_constant()) return std::nullopt;
      const int slot = graph_.value(source.value).slot;
      for (int i = 0; i < slot; ++i) source.offset += sizes[static_cast<size_t>(i)];
      source.value = split->inputs[0];
    }
    return source;
  }

  /// scores = product [* or / scalar] [+ mask], each step read once.
  std::optional<Scores> match_scores(ir::ValueId value) const {
    Scores scores;
    const auto step = [&](std::string_view op) -> const ir::Node* {
      return reads_[static_cast<size_t>(value)] == 1 ? match(graph_, value, op) : nullptr;
    };
    if (const ir::Node* add = step("add")) {
      const size_t side = match_product(add->inputs[0]) ? 0 : 1;
      if (!have_same_type(graph_, add->inputs[side], value)) return std::nullopt;
      scores.mask = add->inputs[1 - side];
      value = add->inputs[side];
    }
    for (const std::string_view op : {"mul", "div"}) {
      const ir::Node* node = step(op);
      const std::optional<double> scalar =
          node != nullptr ? scalar_of(graph_, node->inputs[1]) : std::nullopt;
      if (!scalar) continue;
      scores.scale = op == "mul" ? *scalar : 1 / *scalar;
      // A quotient by what has no reciprocal in float32 is no product.
      if (op == "div" && !std::isnormal(static_cast<float>(scores.scale))) return std::nullopt;
      value = node->inputs[0];
      break;
    }
    scores.product = step("matmul");
    if (scores.product == nullptr) return std::nullopt;
    return scores;
  }

  /// Whether a product stands behind at most one scaling.
  bool match_product(ir::ValueId value) const {
    if (match(graph_, value, "matmul") != nullptr) return true;
    const ir::Node* node = producer_of(graph_, value);
    return node != nullptr && (node->op == "mul" || node->op == "div") &&
           scalar_of(graph_, node->inputs[1]) && match(graph_, node->inputs[0], "matmul") != nullptr;
  }

  void visit(const ir::Node& softmax) {
    const ir::SymShape& shape = type(softmax.outputs[0]).shape;
    if (shape.size() != 4) return;
    const int64_t axis = softmax.attrs.has("axis") ? softmax.attrs.int_of("axis") : -1;
    const std::optional<Scores> scores = match_scores(softmax.inputs[0]);
    const ir::Node* mix = only_reader(softmax.outputs[0], "matmul");
    if ((axis != 3 && axis != -1) || !scores || mix == nullptr || mix->inputs[0] != softmax.outputs[0] ||
        transposes(*mix, "transpose_a") || transposes(*mix, "transpose_b") ||
        transposes(*scores->product, "transpose_a"))
      return;
    // Narrow floats are computed as wide ones, and the result is narrow again.
    const ir::Node* narrowed = only_reader(mix->outputs[0], "cast");
    const ir::ValueId mixed = narrowed != nullptr ? narrowed->outputs[0] : mix->outputs[0];
    const ir::Node* swap = only_reader(mixed, "transpose");
    if (swap == nullptr || permutation_of(graph_, *swap) != Perm{0, 2, 1, 3}) return;
    const ir::Node* merge = only_reader(swap->outputs[0], "reshape");
    const bool flipped = transposes(*scores->product, "transpose_b");
    const std::optional<HeadSource> q = match_heads(scores->product->inputs[0], {0, 2, 1, 3});
    const std::optional<HeadSource> k =
        match_heads(scores->product->inputs[1], flipped ? Perm{0, 2, 1, 3} : Perm{0, 2, 3, 1});
    const std::optional<HeadSource> v = match_heads(mix->inputs[1], {0, 2, 1, 3});
    if (merge == nullptr || !q || !k || !v) return;
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
    if (scores.mask != ir::kAbsent) {
      const ir::ValueId narrow = narrow_of(scores.mask);
      inputs.push_back(type(narrow).dtype == type(inputs[0]).dtype ? narrow : scores.mask);
    }
    const ir::Attrs attrs{{"heads", sources[0].heads},
                          {"width", sources[0].width},
                          {"scale", scores.scale},
                          {"offsets", offsets}};
    std::vector<std::string> origins = merge_origins(scores.product->origins, softmax.origins);
    origins = merge_origins(std::move(origins), merge.origins);
    patch_.replace(merge.outputs[0],
                   patch_.add_node("attention", std::move(inputs), attrs, std::move(origins))[0]);
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
