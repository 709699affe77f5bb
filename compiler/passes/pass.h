/// The graph pass pipeline: passes.def is the ordered list; a pass is a pure function from graph to graph
/// that changes it through patches. The verifier runs after each pass. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/target/target.h"

namespace tensormill::passes {

/// Where choose_algorithms leaves its analytic rule. Its layers are the convolutions that it has a choice
/// for, numbered in the order of the graph that it gets; an algorithm is the tile of minimal filtering, 0 the
/// direct form.
struct AlgorithmOptions {
  /// Nodes of layers get the attributes "layer" (the number) and "chosen_by" ("rule" or "records").
  bool mark = false;
  /// All layers by this one where it is accurate, whatever their weights take.
  std::optional<int64_t> everywhere = {};
  /// By layer: what takes the place of which of the rule's choices.
  std::map<int64_t, std::map<int64_t, int64_t>> instead = {};
};

/// What a pass may look at besides the graph. Layouts, packing and algorithms follow from the target's facts
/// where nothing else is said.
struct PassContext {
  target::CpuFacts facts;
  int opt_level = 3;
  AlgorithmOptions algorithms = {};
  /// The graph is for a generic plan: extents may be expressions, and nothing is chosen by what they are at
  /// one shape.
  bool is_generic = false;
  /// Nothing but the plan of the result is looked at: weights in another order may have any values.
  bool for_plan_alone = false;
  /// The desired layout of maps, if any: bound to the graph (bind_desired_layout).
  std::optional<DesiredLayout> layout = {};
  /// Receives what convert_layout applied it to; null: nothing does.
  LayoutLog* layout_log = nullptr;
};

struct PassInfo {
  std::string_view name;
  int opt_level;  ///< runs from this level on
  ir::Graph (*run)(const ir::Graph& graph, const PassContext& context);
  std::string_view doc;
};
/// Whether the node's extents may be expressions: of a generic plan's nodes only those whose extents are not
/// all numbers.
bool is_generic(const PassContext& context, const ir::Graph& graph, const ir::Node& node);

/// All rows of passes.def in the pipeline's order.
const std::vector<PassInfo>& all_passes();

#define TM_PASS(function, level, doc) ir::Graph function(const ir::Graph& graph, const PassContext& context);
#include "compiler/passes/passes.def"
#undef TM_PASS

struct PipelineOptions {
  PassContext context;
  std::set<std::string> disabled = {};
  std::string first = {};  ///< rows before this one are left out
};
/// Sees the graph after each pass that ran.
using PassObserver = std::function<void(std::string_view pass, const ir::Graph& graph)>;

/// Runs the rows of the level that are not disabled; names of those that ran are appended to `ran`. Throws
/// Error(kInvalidArgument) for an unknown name in `disabled` or `first`, InternalError when a pass breaks the
/// graph.
ir::Graph run_pipeline(ir::Graph graph, const PipelineOptions& options, std::vector<std::string>& ran,
                       const PassObserver& observer = {});

}  // namespace tensormill::passes
