// x * 1/2 * (1 + erf(x / sqrt(2))), multiplied in any order, = gelu(x) (Hendrycks and Gimpel, "Gaussian Error
// Linear Units", 2016, section 2).
#include <cmath>

#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

constexpr double kRoot2 = 1.4142135623730951;

bool is_near(double value, double expected) { return std::fabs(value - expected) <= 1e-6 * expected; }

/// A product's factors: what is no scalar constant, and the product of the scalars.
struct Product {
  std::vector<ir::ValueId> factors;
  double scale = 1;
};

class GeluMatcher {
public:
  explicit GeluMatcher(const ir::Graph& graph) : graph_(graph), reads_(count_reads(graph)) {}

  /// x when `node` computes gelu(x), else kAbsent.
  ir::ValueId match_gelu(const ir::Node& node) const {
    Product product;
    if (!collect(node, 0, product) || product.factors.size() != 2 || !is_near(product.scale, 0.5))
      return ir::kAbsent;
    for (size_t i = 0; i < 2; ++i) {
      const ir::ValueId x = product.factors[i];
      if (is_erf_plus_one(product.factors[1 - i], x) &&
          graph_.value(x).type == graph_.value(node.outputs[0]).type) {
        return x;
      }
    }
    return ir::kAbsent;
  }

private:
  /// Factors of a tree of mul nodes; inner nodes must have no other reader.
  bool collect(const ir::Node& node, int depth, Product& product) const {
    for (ir::ValueId input : node.inputs) {
      const ir::Node* inner = match(graph_, input, "mul");
      if (const std::optional<double> scalar = scalar_of(graph_, input)) {
        product.scale *= *scalar;
      } else if (inner != nullptr && depth < 2 && reads_[static_cast<size_t>(input)] == 1) {
        if (!collect(*inner, depth + 1, product)) return false;
      } else {
        product.factors.push_back(input);
      }
    }
    return product.factors.size() <= 2;
  }

  bool is_erf_plus_one(ir::ValueId value, ir::ValueId x) const {
    const ir::Node* add = match(graph_, value, "add");
    if (add == nullptr || reads_[static_cast<size_t>(value)] != 1) return false;
    for (size_t i = 0; i < 2; ++i) {
      const ir::Node* erf = match(graph_, add->inputs[i], "erf");
      if (erf != nullptr && scalar_of(graph_, add->inputs[1 - i]) == 1.0 &&
          reads_[static_cast<size_t>(add->inputs[i])] == 1) {
        return is_scaled(erf->inputs[0], x);
      }
    }
    return false;
  }

  /// value = x / sqrt(2)
  bool is_scaled(ir::ValueId value, ir::ValueId x) const {
    if (const ir::Node* div = match(graph_, value, "div")) {
      const std::optional<double> scalar = scalar_of(graph_, div->inputs[1]);
      return div->inputs[0] == x && scalar && is_near(*scalar, kRoot2);
    }
    const ir::Node* mul = match(graph_, value, "mul");
    for (size_t i = 0; mul != nullptr && i < 2; ++i) {
      const std::optional<double> scalar = scalar_of(graph_, mul->inputs[1 - i]);
      if (mul->inputs[i] == x && scalar && is_near(*scalar, 1 / kRoot2)) return true;
    }
    return false;
  }

  const ir::Graph& graph_;
  std::vector<int> reads_;
};

}  // namespace

ir::Graph fuse_gelu(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "fuse_gelu");
  const GeluMatcher matcher(graph);
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "mul") continue;
    const ir::ValueId x = matcher.match_gelu(node);
    if (x == ir::kAbsent) continue;
    patch.replace(node.outputs[0],
                  patch.add_node("gelu", {x}, {{"approximate", std::string("none")}}, node.origins)[0]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
