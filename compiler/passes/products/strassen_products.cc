// Products by constants, pointwise convolutions on blocks among them, become Strassen's where an analytic
// model of the CPU says that seven products of halves and the sums around them are faster than one product,
// where the factors (7/4 of the weights) fit a budget over all layers, and where f32 stays accurate on the
// product's own weights. Rows of one item of a batch are paired alone: what a row holds never touches another
// item.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/ops/products/strassen.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/products/strassen_error.h"

namespace tensormill::passes {

namespace {

/// Costs in cycles, as measured on an AVX-512 core (bench/README.md, Strassen): the sums of the left factors
/// for a row and a block of the depth, of both halves; storing products of a row and a block of columns and
/// summing them up; and what either waits where its results do not stay in half of the L2 cache.
constexpr double kLeftSums = 16, kResultSums = 30, kBeyondL2 = 55;
/// A product as it stands takes so many times the cycles of its multiply-adds.
constexpr double kDirect = 1.12;
/// It must be this much faster than the product.
constexpr double kNeededGain = 0.96;
/// Weights of all kernels together over those of the model.
constexpr double kMostWeights = 1.8;
constexpr double kMostError = 1e-5;
constexpr double kFactors = static_cast<double>(ops::kStrassenProducts) / ops::kStrassenBlocks;
constexpr int64_t kMostGroup = 4;

/// A product of `rows` rows of each item by weights in panels [columns/b, depth, b].
struct ConstantProduct {
  ir::NodeId node = ir::kAbsent;
  bool is_blocked = false;
  int64_t batch = 0, rows = 0, depth = 0, columns = 0, block = 0;
  double bytes() const { return 4 * static_cast<double>(depth * columns); }
};

/// A register tile of rows x vectors, and the cycles of all tiles of rows x blocks a step of the depth.
struct ProductTile {
  int64_t rows = 1, group = 1;
  double cycles = std::numeric_limits<double>::infinity();
};

/// The tile with the fewest cycles: its multiply-adds or the latency of a sum, and shares of its loads and of
/// what comes from the L2 cache, as the schedules weigh them (schedule/templates/register_tile.cc).
ProductTile best_tile(int64_t rows, int64_t blocks, const target::CpuFacts& facts) {
  constexpr double kLatency = 4, kLoadShare = 0.2, kL2Bytes = 256;
  ProductTile best;
  for (int64_t group = 1; group <= std::min(blocks, kMostGroup); ++group) {
    if (blocks % group != 0) continue;
    const int64_t most = (facts.vector_registers - 1 - group) / group;
    for (int64_t height = 1; height <= std::min(most, rows); ++height) {
      const double products = static_cast<double>(height * group),
                   loads = static_cast<double>(height + group);
      const double bytes = static_cast<double>(group * facts.vector_bits / 8 + height * 4);
      const double step = std::max({products / facts.products_per_cycle, loads / 2, kLatency}) +
                          loads * kLoadShare + bytes / kL2Bytes;
      const double tiles = static_cast<double>((rows + height - 1) / height * (blocks / group));
      if (tiles * step < best.cycles) best = {height, group, tiles * step};
    }
  }
  return best;
}

struct Halving {
  ConstantProduct product;
  ProductTile tile;
  int64_t half = 0;  ///< rows of the first half, whole tiles
  double saved = 0;  ///< cycles
};

/// Cycles of the sums before and behind the products of one item.
double cycles_of_sums(const ConstantProduct& product, int64_t half, const target::CpuFacts& facts) {
  const double rows = static_cast<double>(product.batch * product.rows);
  const double depth = static_cast<double>(product.depth), columns = static_cast<double>(product.columns);
  const auto waiting = [&](double elements) {
    return 8 * elements > static_cast<double>(facts.l2_bytes) ? kBeyondL2 : 0;
  };
  const double of_left = (kLeftSums + waiting(kFactors * rows * depth)) * depth;
  const double of_results = (kResultSums + waiting(rows * columns)) * columns;
  return static_cast<double>(half) * (of_left + of_results) / static_cast<double>(2 * product.block);
}

/// How the product is cut, if that is faster.
std::optional<Halving> halving_of(const ConstantProduct& product, const target::CpuFacts& facts) {
  const int64_t blocks = product.columns / product.block, half = (product.rows + 1) / 2;
  Halving choice{product, best_tile(half, blocks / 2, facts)};
  choice.half = (half + choice.tile.rows - 1) / choice.tile.rows * choice.tile.rows;
  const double batch = static_cast<double>(product.batch), depth = static_cast<double>(product.depth);
  const double direct =
      kDirect * batch * depth * static_cast<double>(product.rows * blocks) / facts.products_per_cycle;
  const double products = static_cast<double>(ops::kStrassenProducts) * depth / 2 * choice.tile.cycles;
  const double halves = batch * (products + cycles_of_sums(product, choice.half, facts));
  choice.saved = direct - halves;
  const bool is_fast = halves <= kNeededGain * direct;
  // The factors are fetched beside the arithmetic of a run, which takes twice as long at least.
  const bool is_fetched = 2 * kFactors * product.bytes() <= halves * facts.streamed_bytes;
  const double tiles = batch * static_cast<double>(choice.half / choice.tile.rows);
  if (!is_fast || !is_fetched || tiles < 2 * facts.num_cores) return std::nullopt;
  return choice;
}

/// Whether what feeds a pointwise convolution may be computed with it (fuse_operators): a depthwise one
/// or channel moves, of weights that stay in the cache beside.
bool may_be_fed(const ir::Graph& graph, const ir::Node& node, const ConstantProduct& product,
                const target::CpuFacts& facts) {
  const ir::Node* feed = producer_of(graph, node.inputs[0]);
  while (feed != nullptr && graph.ops().get(feed->op).pattern == ir::Pattern::kElementwise)
    feed = producer_of(graph, feed->inputs[0]);
  return feed != nullptr && (feed->op == "conv_depthwise" || feed->op == "gather_channels") &&
         product.bytes() <= static_cast<double>(facts.l2_bytes) / 4;
}

std::optional<ConstantProduct> product_of_node(const ir::Graph& graph, ir::NodeId id,
                                               const target::CpuFacts& facts) {
  const ir::Node& node = graph.node(id);
  const bool is_blocked = node.op == "conv_blocked";
  if (!is_blocked && node.op != "matmul_packed") return std::nullopt;
  const ir::ValueType &x = graph.value(node.inputs[0]).type, &out = graph.value(node.outputs[0]).type;
  const std::optional<Tensor>& weights = graph.value(node.inputs[1]).constant;
  const size_t rank = x.shape.size();
  if (!weights || weights->dtype() != DType::kFloat32 || !x.shape.is_constant() ||
      num_elements(out.shape) == 0 || weights->num_elements() == 0 ||
      ops::attr_int(node.attrs, "words", 0) != 0 || ops::attr_int(node.attrs, "exact", 0) != 0 ||
      rank < (is_blocked ? 4 : 3))
    return std::nullopt;
  const Shape from = x.shape, w = weights->shape();
  ConstantProduct product{id, is_blocked, from[0], 0, 0, 0, w.back()};
  product.rows = num_elements(Shape(from.begin() + (is_blocked ? 2 : 1), from.end() - 1));
  product.depth = is_blocked ? from[1] * from.back() : w[1];
  product.columns = w[0] * product.block;
  if (is_blocked) {
    const bool is_pointwise = weights->num_elements() == product.depth * product.columns &&
                              all_equal(node, "strides", 1) && all_equal(node, "pads", 0) &&
                              ops::attr_int(node.attrs, "group", 1) == 1 && from.back() == product.block;
    if (!is_pointwise || may_be_fed(graph, node, product, facts)) return std::nullopt;
  } else if (node.attrs.int_of("columns") != product.columns) {
    return std::nullopt;
  }
  if (product.block != facts.lanes(32) || product.depth % (2 * product.block) != 0 ||
      product.columns % (2 * product.block) != 0)
    return std::nullopt;
  return product;
}

/// Columns of the weights before the pad lanes at their end, which are zero and give exactly zero;
/// nothing where another column is zero: what it gives stays so, too.
std::optional<int64_t> columns_of(const Tensor& panels, const ConstantProduct& product) {
  const float* weights = panels.values<float>().data();
  int64_t columns = 0;
  for (int64_t j = 0; j < product.columns; ++j) {
    const float* column = weights + j / product.block * product.depth * product.block + j % product.block;
    int64_t k = 0;
    while (k < product.depth && column[k * product.block] == 0) ++k;
    if (k < product.depth && columns++ != j) return std::nullopt;
  }
  const bool is_padded = columns > product.columns - product.block;
  return columns == product.columns || (product.is_blocked && is_padded) ? std::optional(columns)
                                                                         : std::nullopt;
}

/// Bytes that kernels' constants may take more than now.
double bytes_to_spend(const ir::Graph& graph) {
  double bytes = 0, more = 0;
  for (const ir::Value& value : graph.values()) {
    if (value.constant) bytes += static_cast<double>(value.constant->num_bytes());
  }
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "conv_winograd") continue;
    const int64_t points = node.attrs.int_of("tile") + 2;
    const std::optional<Tensor>& factors = graph.value(node.inputs[1]).constant;
    if (factors)
      more += static_cast<double>(factors->num_bytes()) * (1 - 9 / static_cast<double>(points * points));
  }
  return (kMostWeights - 1) * (bytes - more) - more;
}

class Halver {
public:
  explicit Halver(const ir::Graph& graph)
      : graph_(graph), patch_(graph, "strassen_products"), budget_(bytes_to_spend(graph)) {}

  /// Makes the factors of a product that is to be halved, unless that is not accurate or they do not fit
  /// the budget.
  void add(const Halving& halving) {
    const ConstantProduct& product = halving.product;
    const ir::ValueId weights = graph_.node(product.node).inputs[1];
    const ir::ValueId factors = factors_of(product, weights, halving.tile.group * product.block);
    if (factors != ir::kAbsent) halved_.emplace(product.node, std::make_pair(halving, factors));
  }

  /// In the order of the graph: a product reads what those before it became.
  ir::Graph apply() {
    for (const auto& [id, made] : halved_) {
      const auto& [halving, factors] = made;
      const ir::Node& node = graph_.node(id);
      std::vector<ir::ValueId> inputs = node.inputs;
      inputs[1] = factors;
      ir::Attrs attrs{{"half", halving.half}};
      const int64_t columns = *columns_of(*graph_.value(node.inputs[1]).constant, halving.product);
      if (columns != halving.product.columns) attrs.set("columns", columns);
      if (!halving.product.is_blocked) {
        attrs.set("block", halving.product.block);
        if (node.attrs.has("first")) attrs.set("first", node.attrs.int_of("first"));
      }
      patch_.replace(node.outputs[0], patch_.add_node("product_strassen", inputs, attrs, node.origins)[0]);
    }
    return patch_.apply();
  }

private:
  /// Products by the same weights read the same factors.
  ir::ValueId factors_of(const ConstantProduct& product, ir::ValueId weights, int64_t width) {
    const auto [found, is_new] = factors_.emplace(std::make_pair(weights, width), ir::kAbsent);
    const double more = (kFactors - 1) * product.bytes();
    const ir::Value& value = graph_.value(weights);
    if (!is_new || more > budget_ || !columns_of(*value.constant, product)) return found->second;
    Tensor factors = ops::strassen_weights(*value.constant, product.depth, product.block, width);
    if (!(strassen_error(*value.constant, factors, product.depth, product.block) <= kMostError))
      return ir::kAbsent;
    budget_ -= more;
    found->second = patch_.add_constant(value.name + ".halves", std::move(factors));
    return found->second;
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
  double budget_;  ///< bytes
  std::map<std::pair<ir::ValueId, int64_t>, ir::ValueId> factors_;
  std::map<ir::NodeId, std::pair<Halving, ir::ValueId>> halved_;
};

}  // namespace

ir::Graph strassen_products(const ir::Graph& graph, const PassContext& context) {
  std::vector<Halving> halvings;
  for (size_t i = 0; context.facts.fma && i < graph.nodes().size(); ++i) {
    const std::optional<ConstantProduct> product =
        product_of_node(graph, static_cast<ir::NodeId>(i), context.facts);
    const std::optional<Halving> halving = product ? halving_of(*product, context.facts) : std::nullopt;
    if (halving) halvings.push_back(*halving);
  }
  // The best use of the budget: by cycles saved for each byte.
  std::stable_sort(halvings.begin(), halvings.end(), [](const Halving& a, const Halving& b) {
    return a.saved * b.product.bytes() > b.saved * a.product.bytes();
  });
  Halver halver(graph);
  for (const Halving& halving : halvings) halver.add(halving);
  return halver.apply();
}

}  // namespace tensormill::passes
