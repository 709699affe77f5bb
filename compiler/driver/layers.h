/// Layers: the convolutions that have more than one algorithm. A layer's key is the key of the kernel that
/// computes it directly, so equal geometry with equal operators behind it is one layer in every model.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace tensormill::driver {

/// "direct", "F(2,3)" or "F(4,3)", by the tile of minimal filtering, 0 for the direct form.
std::string algorithm_name(int64_t tile);
std::optional<int64_t> algorithm_tile(std::string_view name);

/// By a layer's key: which algorithm takes the place of which choice of the analytic rule, by their names. A
/// choice that stands for itself was measured and is the best.
using LayerAlgorithms = std::map<std::string, std::map<std::string, std::string>>;

/// A node of an optimized graph that computes a layer, with what is fused behind it.
struct LayerNode {
  ir::NodeId node = ir::kAbsent;
  int64_t layer = 0;  ///< its number in passes::AlgorithmOptions
  std::string algorithm;
  std::string chosen_by;  ///< "rule" or "records"
};
/// In node order; nothing where the pipeline ran without AlgorithmOptions::mark.
std::vector<LayerNode> layer_nodes(const ir::Graph& optimized);

/// The graph as choose_algorithms gets it, and the pipeline from there on. Without choose_algorithms in the
/// pipeline (its level, `disabled`) there are no layers.
class LayerProbe {
public:
  LayerProbe(const ir::Graph& imported, passes::PipelineOptions pipeline);
  /// The optimized graph, layers marked, with this algorithm everywhere or as `options` say.
  ir::Graph optimized(passes::AlgorithmOptions options) const;
  /// As the analytic rule has it, and with each algorithm everywhere; one graph where there are no layers.
  std::vector<ir::Graph> all_graphs() const;
  /// The key of each layer; "" of free extents.
  const std::vector<std::string>& keys() const { return keys_; }
  /// What `algorithms` say of these layers.
  passes::AlgorithmOptions options_for(const LayerAlgorithms& algorithms) const;

private:
  std::optional<ir::Graph> start_;
  ir::Graph direct_;  ///< optimized, layers marked
  passes::PipelineOptions pipeline_;
  std::vector<std::string> keys_;
};

}  // namespace tensormill::driver
