// matmul(x, B) with a constant matrix B = matmul_packed(x, B in blocks of columns): the vectors that a kernel
// reads one after the other stand side by side, in one stream, whatever B's width or transposition. A
// constant bias that is added to the product alone goes into the operator.
//
// Where the rows of x are too long for all of them to stay in the L2 cache beside the panels, the product is
// cut along the depth into a sum of products, each of a part of x that stays (the blocks of depth of Goto and
// van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008, section 4.2).
#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

constexpr int64_t kShortestPart = 256;  // of the depth
constexpr int64_t kMostColumnParts = 4;
constexpr int64_t kPanelVectors = 4;  // that a kernel reads side by side

/// Rows [first, first + count) of [K, N] (or of [N, K] transposed) as [ceil(N / block), count, block], zeros
/// past N.
/// With `any_values` they may be in any order.
Tensor pack_columns(const Tensor& matrix, bool transposed, int64_t block, int64_t first, int64_t count,
                    bool any_values) {
  const int64_t depth = matrix.shape()[transposed ? 1 : 0], columns = matrix.shape()[transposed ? 0 : 1];
  const int64_t blocks = (columns + block - 1) / block;
  const Shape shape = {blocks, count, block};
  // As many elements of the matrix as that is.
  if (any_values && columns % block == 0) {
    const auto whole = std::make_shared<Tensor>(matrix);
    return Tensor(DType::kFloat32, shape, whole, whole->values<float>().data() + first * columns);
  }
  Tensor packed =
      columns % block == 0 ? Tensor(DType::kFloat32, shape) : Tensor::zeros(DType::kFloat32, shape);
  const std::span<const float> from = matrix.values<float>();
  const std::span<float> to = packed.values<float>();
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t source = transposed ? j * depth + first + k : (first + k) * columns + j;
      to[static_cast<size_t>((j / block * count + k) * block + j % block)] =
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
        l2_bytes_(context.facts.l2_bytes),
        any_values_(context.for_plan_alone),
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
           (x.type.shape.size() == 1 ||
            (x.type.shape.size() >= 2 && !ops::attr_bool(node.attrs, "transpose_a", false)));
  }

  ir::ValueId packed(ir::ValueId matrix, bool transposed, int64_t first, int64_t count) {
    const auto [found, is_new] =
        packed_.emplace(std::make_tuple(matrix, transposed, first, count), ir::kAbsent);
    if (is_new) {
      const ir::Value& value = graph_.value(matrix);
      const std::string part = first == 0 ? "" : "." + std::to_string(first);
      found->second =
          patch_.add_constant(value.name + ".packed" + part,
                              pack_columns(*value.constant, transposed, block_, first, count, any_values_));
    }
    return found->second;
  }

  /// How many products the depth is cut into: the fewest equal ones whose part of x takes a quarter of the L2
  /// cache at most, if that is at all possible. Of rows of any number as many as there are columns in a
  /// panel.
  int64_t parts(const ir::SymShape& shape) const {
    const int64_t depth = shape.back();
    ir::SymInt all = kPanelVectors * block_;
    if (shape.is_constant()) all = num_elements(ir::SymShape(shape.begin(), shape.end() - 1));
    const int64_t rows = all;
    for (int64_t count = 1; count <= kMostColumnParts && depth / count >= kShortestPart; ++count) {
      if (depth % count == 0 && rows * (depth / count) * 4 <= l2_bytes_ / 4) return count;
    }
    return 1;
  }

  /// The node that adds a constant of one element per column to the product and is its only reader, or null.
  const ir::Node* bias_add(const ir::Node& node, int64_t columns) const {
    const ir::ValueId product = node.outputs[0];
    const std::vector<ir::NodeId>& readers = uses_[static_cast<size_t>(product)];
    if (reads_[static_cast<size_t>(product)] != 1 || readers.size() != 1) return nullptr;
    const ir::Node& add = graph_.node(readers[0]);
    if (add.op != "add" || !have_same_type(graph_, add.outputs[0], product)) return nullptr;
    const ir::Value& bias = graph_.value(bias_of(add, product));
    if (!bias.constant) return nullptr;
    const Shape& shape = bias.constant->shape();
    const bool one_per_column = !shape.empty() && shape.back() == columns && num_elements(shape) == columns;
    return one_per_column ? &add : nullptr;
  }

  static ir::ValueId bias_of(const ir::Node& add, ir::ValueId product) {
    return add.inputs[add.inputs[0] == product ? 1 : 0];
  }

  void replace(const ir::Node& node) {
    const bool transposed = ops::attr_bool(node.attrs, "transpose_b", false);
    const int64_t columns = graph_.value(node.inputs[1]).type.shape[transposed ? 0 : 1];
    const ir::Node* add = bias_add(node, columns);
    std::vector<ir::ValueId> bias_row;
    if (add != nullptr) {
      const ir::Value& bias = graph_.value(bias_of(*add, node.outputs[0]));
      bias_row.push_back(bias.type.shape.size() == 1
                             ? bias_of(*add, node.outputs[0])
                             : patch_.add_constant(bias.name + ".row", bias.constant->reshaped({columns})));
    }
    const ir::Node& last = add != nullptr ? *add : node;
    const std::vector<std::string> origins =
        add != nullptr ? merge_origins(node.origins, add->origins) : node.origins;
    const int64_t count = parts(graph_.value(node.inputs[0]).type.shape);
    const int64_t depth = graph_.value(node.inputs[1]).type.shape[transposed ? 1 : 0] / count;
    ir::ValueId sum = ir::kAbsent;
    for (int64_t part = 0; part < count; ++part) {
      std::vector<ir::ValueId> inputs = {node.inputs[0],
                                         packed(node.inputs[1], transposed, part * depth, depth)};
      if (part + 1 == count) inputs.insert(inputs.end(), bias_row.begin(), bias_row.end());
      ir::Attrs attrs{{"columns", columns}};
      if (count > 1) attrs.set("first", part * depth);
      const ir::ValueId product =
          patch_.add_node("matmul_packed", std::move(inputs), std::move(attrs), origins)[0];
      // The product comes first: it is the one that takes the sum in.
      sum = part == 0 ? product : patch_.add_node("add", {product, sum}, {}, origins)[0];
    }
    patch_.replace(last.outputs[0], sum);
  }

  const ir::Graph& graph_;
  int64_t block_;
  int64_t l2_bytes_;
  bool any_values_;
  ir::Patch patch_;
  std::vector<std::vector<ir::NodeId>> uses_;
  std::vector<int> reads_;
  std::map<std::tuple<ir::ValueId, bool, int64_t, int64_t>, ir::ValueId> packed_;
};

}  // namespace

ir::Graph pack_matmul(const ir::Graph& graph, const PassContext& context) {
  return Packer(graph, context).run();
}

}  // namespace tensormill::passes
