// matmul(x, B) with a constant matrix B = matmul_packed(x, B in blocks of columns): the vectors that a kernel
// reads one after the other stand side by side, in one stream, whatever B's width or transposition. A
// constant bias that is added to the product alone goes into the operator.
#include <map>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

bool attr_set(const ir::Node& node, const std::string& name) {
  return node.attrs.has(name) && node.attrs.int_of(name) != 0;
}

/// [K, N] (or [N, K] when transposed) as [ceil(N / block), K, block], zeros past N.
Tensor pack_columns(const Tensor& matrix, bool transposed, int64_t block) {
  const int64_t depth = matrix.shape()[transposed ? 1 : 0], columns = matrix.shape()[transposed ? 0 : 1];
  const int64_t blocks = (columns + block - 1) / block;
  Tensor packed = Tensor::zeros(DType::kFloat32, {blocks, depth, block});
  const std::span<const float> from = matrix.values<float>();
  const std::span<float> to = packed.values<float>();
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t source = transposed ? j * depth + k : k * columns + j;
      to[static_cast<size_t>((j / block * depth + k) * block + j % block)] =
          from[static_cast<size_t>(source)];
    }
  }
  return packed;
}

class Packer {
public:
  Packer(const ir::Graph& graph, const PassContext& context)
      : graph_(graph),
        block_(context.facts.lanes(32)),
        patch_(graph, "pack_matmul"),
        uses_(graph.uses()),
        reads_(count_reads(graph)) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op == "matmul" && applies(node)) replace(node);
    }
    return patch_.apply();
  }

private:
  bool applies(const ir::Node& node) const {
    const ir::Value& x = graph_.value(node.inputs[0]);
    const ir::Value& matrix = graph_.value(node.inputs[1]);
    return block_ > 1 && matrix.constant && matrix.type.dtype == DType::kFloat32 &&
           matrix.type.shape.size() == 2 && matrix.constant->num_elements() > 0 && !x.constant &&
           (x.type.shape.size() == 1 || (x.type.shape.size() >= 2 && !attr_set(node, "transpose_a")));
  }

  ir::ValueId packed(ir::ValueId matrix, bool transposed) {
    const auto [found, is_new] = packed_.emplace(std::make_pair(matrix, transposed), ir::kAbsent);
    if (is_new) {
      const ir::Value& value = graph_.value(matrix);
      found->second =
          patch_.add_constant(value.name + ".packed", pack_columns(*value.constant, transposed, block_));
    }
    return found->second;
  }

  /// The node that adds a constant of one element per column to the product and is its only reader, or null.
  const ir::Node* bias_add(const ir::Node& node, int64_t columns) const {
    const ir::ValueId product = node.outputs[0];
    const std::vector<ir::NodeId>& readers = uses_[static_cast<size_t>(product)];
    if (reads_[static_cast<size_t>(product)] != 1 || readers.size() != 1) return nullptr;
    const ir::Node& add = graph_.node(readers[0]);
    if (add.op != "add" || graph_.value(add.outputs[0]).type != graph_.value(product).type) return nullptr;
    const ir::Value& bias = graph_.value(bias_of(add, product));
    const Shape& shape = bias.type.shape;
    const bool one_per_column =
        bias.constant && !shape.empty() && shape.back() == columns && num_elements(shape) == columns;
    return one_per_column ? &add : nullptr;
  }

  static ir::ValueId bias_of(const ir::Node& add, ir::ValueId product) {
    return add.inputs[add.inputs[0] == product ? 1 : 0];
  }

  void replace(const ir::Node& node) {
    const bool transposed = attr_set(node, "transpose_b");
    const int64_t columns = graph_.value(node.inputs[1]).type.shape[transposed ? 0 : 1];
    std::vector<ir::ValueId> inputs = {node.inputs[0], packed(node.inputs[1], transposed)};
    const ir::Node* add = bias_add(node, columns);
    if (add != nullptr) {
      const ir::Value& bias = graph_.value(bias_of(*add, node.outputs[0]));
      inputs.push_back(bias.type.shape.size() == 1
                           ? bias_of(*add, node.outputs[0])
                           : patch_.add_constant(bias.name + ".row", bias.constant->reshaped({columns})));
    }
    const ir::Node& last = add != nullptr ? *add : node;
    const std::vector<std::string> origins =
        add != nullptr ? merge_origins(node.origins, add->origins) : node.origins;
    patch_.replace(last.outputs[0],
                   patch_.add_node("matmul_packed", inputs, {{"columns", columns}}, origins)[0]);
  }

  const ir::Graph& graph_;
  int64_t block_;
  ir::Patch patch_;
  std::vector<std::vector<ir::NodeId>> uses_;
  std::vector<int> reads_;
  std::map<std::pair<ir::ValueId, bool>, ir::ValueId> packed_;
};

}  // namespace

ir::Graph pack_matmul(const ir::Graph& graph, const PassContext& context) {
  return Packer(graph, context).run();
}

}  // namespace tensormill::passes
