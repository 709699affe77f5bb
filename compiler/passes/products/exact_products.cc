// Sums of integer products whose magnitudes add up to 2^24 at most are exact in float32, in any order: every
// partial sum is an integer that float32 holds. Products of 8-bit values, widened to int32 less their zero
// points as quantized models have them, are then computed by the kernels of float32, whose vectors multiply
// and add in one instruction. Where a whole depth may add up to more, it is cut into parts that do not, and
// the parts are added in int32. Where the depth is free, no bound holds.
#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/values/constant_value.h"
#include "compiler/passes/values/value_facts.h"

namespace tensormill::passes {

namespace {

constexpr int64_t kMostParts = 16;

class ExactProducts {
public:
  explicit ExactProducts(const ir::Graph& graph) : graph_(graph), patch_(graph, "exact_products") {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op != "matmul") continue;
      if (type(node.outputs[0]).dtype == DType::kInt32) visit(node);
    }
    return patch_.apply();
  }

private:
  const ir::ValueType& type(ir::ValueId id) const { return graph_.value(id).type; }

  void visit(const ir::Node& node) {
    const ir::SymShape &left = type(node.inputs[0]).shape, &right = type(node.inputs[1]).shape;
    if (left.empty() || right.empty()) return;
    const std::optional<Interval> x = interval_of(graph_, node.inputs[0]);
    const std::optional<Interval> y = interval_of(graph_, node.inputs[1]);
    if (!x || !y) return;
    const ir::SymInt& length =
        left[left.size() - (ops::attr_bool(node.attrs, "transpose_a", false) && left.size() > 1 ? 2 : 1)];
    if (!length.is_constant()) return;
    const int64_t depth = length;
    const std::optional<Tensor> matrix =
        right.size() == 2 && !ops::attr_bool(node.attrs, "transpose_a", false)
            ? constant_by(graph_, node.inputs[1], {"cast", "sub"})
            : std::nullopt;
    if (matrix) {
      const bool transposed = ops::attr_bool(node.attrs, "transpose_b", false);
      for (int64_t parts = 1; parts <= std::min(kMostParts, depth); ++parts) {
        if (largest_sum(*matrix, transposed, parts) * x->magnitude() > kExactInFloat) continue;
        patch_.replace(node.outputs[0], sum_of_parts(node, *matrix, transposed, parts));
        return;
      }
    } else if (x->magnitude() * y->magnitude() * static_cast<double>(depth) <= kExactInFloat) {
      patch_.replace(node.outputs[0], product(node, widened(node.inputs[0]), widened(node.inputs[1])));
    }
  }

  /// The largest sum of magnitudes of one column of the matrix within one of the parts of its depth.
  static double largest_sum(const Tensor& matrix, bool transposed, int64_t parts) {
    const int64_t depth = matrix.shape()[transposed ? 1 : 0], columns = matrix.shape()[transposed ? 0 : 1];
    double largest = 0;
    for (int64_t part = 0; part < parts; ++part) {
      std::vector<double> sums(static_cast<size_t>(columns));
      for (int64_t k = part * depth / parts; k < (part + 1) * depth / parts; ++k) {
        for (int64_t j = 0; j < columns; ++j) {
          sums[static_cast<size_t>(j)] +=
              std::abs(matrix.element_as_double(transposed ? j * depth + k : k * columns + j));
        }
      }
      for (const double sum : sums) largest = std::max(largest, sum);
    }
    return largest;
  }

  /// Rows [first, first + count) of the matrix as float32.
  static Tensor floats(const Tensor& matrix, bool transposed, int64_t first, int64_t count) {
    const int64_t columns = matrix.shape()[transposed ? 0 : 1], depth = matrix.shape()[transposed ? 1 : 0];
    Tensor result =
        Tensor::zeros(DType::kFloat32, transposed ? Shape{columns, count} : Shape{count, columns});
    const std::span<float> to = result.values<float>();
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t from = transposed ? j * depth + first + k : (first + k) * columns + j;
        to[static_cast<size_t>(transposed ? j * count + k : k * columns + j)] =
            static_cast<float>(matrix.element_as_double(from));
      }
    }
    return result;
  }

  /// The value as float32, made once.
  ir::ValueId widened(ir::ValueId value) {
    const auto [found, is_new] = widened_.emplace(value, ir::kAbsent);
    if (is_new) {
      const ir::Node* node = producer_of(graph_, value);
      found->second = patch_.add_node("cast", {value}, {{"to", DType::kFloat32}},
                                      node != nullptr ? node->origins : std::vector<std::string>())[0];
    }
    return found->second;
  }

  /// The product of float32 values as int32.
  ir::ValueId product(const ir::Node& node, ir::ValueId x, ir::ValueId y) {
    const ir::ValueId sums = patch_.add_node("matmul", {x, y}, node.attrs, node.origins)[0];
    return patch_.add_node("cast", {sums}, {{"to", DType::kInt32}}, node.origins)[0];
  }

  ir::ValueId sum_of_parts(const ir::Node& node, const Tensor& matrix, bool transposed, int64_t parts) {
    const ir::ValueId x = widened(node.inputs[0]);
    const ir::SymShape& shape = type(node.inputs[0]).shape;
    const int64_t depth = shape.back();
    ir::ValueId sum = ir::kAbsent;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = part * depth / parts, count = (part + 1) * depth / parts - first;
      ir::ValueId rows = x;
      if (parts > 1) {
        ir::SymShape starts(shape.size(), 0), extents = shape;
        starts.back() = first;
        extents.back() = count;
        rows = patch_.add_node("slice", {x}, {{"starts", starts}, {"extents", extents}}, node.origins)[0];
      }
      const std::string name =
          graph_.value(node.inputs[1]).name + ".exact" + (first == 0 ? "" : "." + std::to_string(first));
      const ir::ValueId exact =
          product(node, rows, patch_.add_constant(name, floats(matrix, transposed, first, count)));
      sum = part == 0 ? exact : patch_.add_node("add", {exact, sum}, {}, node.origins)[0];
    }
    return sum;
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
  std::map<ir::ValueId, ir::ValueId> widened_;
};

}  // namespace

ir::Graph exact_products(const ir::Graph& graph, const PassContext& /*context*/) {
  return ExactProducts(graph).run();
}

}  // namespace tensormill::passes
