#include "compiler/driver/layers.h"

#include <algorithm>
#include <array>

#include "compiler/ir/run_dims.h"
#include "compiler/plan/kernel.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

constexpr std::string_view kPass = "choose_algorithms";
constexpr std::array<std::pair<int64_t, std::string_view>, 3> kNames = {
    {{0, "direct"}, {2, "F(2,3)"}, {4, "F(4,3)"}}};

const ir::Node* marked_node(const ir::Node& node) {
  if (node.attrs.has("layer")) return &node;
  if (node.region == nullptr) return nullptr;
  for (const ir::Node& inner : node.region->nodes()) {
    if (inner.attrs.has("layer")) return &inner;
  }
  return nullptr;
}

}  // namespace

std::string algorithm_name(int64_t tile) {
  for (const auto& [known, name] : kNames) {
    if (known == tile) return std::string(name);
  }
  throw InternalError("there is no filtering by tiles of " + std::to_string(tile));
}

std::optional<int64_t> algorithm_tile(std::string_view name) {
  for (const auto& [tile, known] : kNames) {
    if (known == name) return tile;
  }
  return std::nullopt;
}

std::vector<LayerNode> layer_nodes(const ir::Graph& optimized) {
  std::vector<LayerNode> nodes;
  for (size_t i = 0; i < optimized.nodes().size(); ++i) {
    const ir::Node* marked = marked_node(optimized.nodes()[i]);
    if (marked == nullptr) continue;
    const int64_t tile = marked->op == "conv_winograd" ? marked->attrs.int_of("tile") : 0;
    nodes.push_back({static_cast<ir::NodeId>(i), marked->attrs.int_of("layer"), algorithm_name(tile),
                     marked->attrs.string_of("chosen_by")});
  }
  return nodes;
}

LayerProbe::LayerProbe(const ir::Graph& imported, passes::PipelineOptions pipeline)
    : direct_(imported.ops()), pipeline_(std::move(pipeline)) {
  std::vector<std::string> ran;
  ir::Graph before = imported;
  passes::PipelineOptions direct = pipeline_;
  direct.context.algorithms = {true, 0, {}};
  const auto observe = [&](std::string_view pass, const ir::Graph& graph) {
    if (pass == kPass) start_ = std::move(before);
    if (!start_) before = graph;
  };
  direct_ = passes::run_pipeline(imported, direct, ran, observe);
  pipeline_.first = kPass;
  for (const LayerNode& node : layer_nodes(direct_)) {
    std::vector<ir::ValueId> inputs;
    const auto place = static_cast<size_t>(node.layer);
    keys_.resize(std::max(keys_.size(), place + 1));
    // Of free extents there are no records.
    if (!ir::has_constant_extents(direct_, direct_.node(node.node))) continue;
    keys_[place] = plan::kernel_of(direct_, direct_.node(node.node), inputs).key.hex();
  }
}

ir::Graph LayerProbe::optimized(passes::AlgorithmOptions options) const {
  TM_CHECK(start_.has_value(), "a pipeline without choose_algorithms has no layers");
  passes::PipelineOptions pipeline = pipeline_;
  pipeline.context.algorithms = std::move(options);
  pipeline.context.algorithms.mark = true;
  std::vector<std::string> ran;
  return passes::run_pipeline(*start_, pipeline, ran);
}

std::vector<ir::Graph> LayerProbe::all_graphs() const {
  std::vector<ir::Graph> graphs;
  if (!keys_.empty()) {
    graphs.push_back(optimized({}));
    for (const auto& [tile, name] : kNames) {
      if (tile != 0) graphs.push_back(optimized({true, tile, {}}));
    }
  }
  graphs.push_back(direct_);
  return graphs;
}

passes::AlgorithmOptions LayerProbe::options_for(const LayerAlgorithms& algorithms) const {
  passes::AlgorithmOptions options;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const auto found = algorithms.find(keys_[i]);
    if (found == algorithms.end()) continue;
    for (const auto& [rule, instead] : found->second) {
      const auto from = algorithm_tile(rule), to = algorithm_tile(instead);
      if (from && to) options.instead[static_cast<int64_t>(i)][*from] = *to;
    }
  }
  return options;
}

}  // namespace tensormill::driver
