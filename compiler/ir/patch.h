/// Patches: the only way in which a pass changes a graph. A patch collects new nodes (typed at once) and
/// replacements of values; applying it rebuilds the graph in topological order, drops what has become dead
/// when asked, re-verifies types and keeps names and origins. Thread-safety: belongs to one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

class Patch {
public:
  /// `rule` names the rewrite in messages and logs.
  Patch(const Graph& graph, std::string rule) : graph_(graph), rule_(std::move(rule)), work_(graph) {}
  /// New node after all others; inputs may be old or new values. An input that was replaced before this call
  /// is read as its replacement, so that a pass that visits nodes in order sees what it made of their inputs.
  std::vector<ValueId> add_node(const std::string& op, std::vector<ValueId> inputs, Attrs attrs = {},
                                std::vector<std::string> origins = {});
  std::vector<ValueId> add_fused(std::vector<ValueId> inputs, std::shared_ptr<const Graph> region,
                                 std::vector<std::string> origins);
  ValueId add_constant(const std::string& name, Tensor tensor);
  /// All readers of `from` (and graph outputs) read `to` instead. Types must be equal (TM_CHECK naming the
  /// rule). Nodes that were added by this patch keep reading `from`.
  void replace(ValueId from, ValueId to);
  const Value& value(ValueId id) const { return work_.value(id); }
  bool empty() const { return replacements_.empty(); }
  /// The new graph: live nodes only (reachable from the outputs), in a topological order that keeps the old
  /// order where it can; graph inputs all stay; values keep their names (a replaced graph output hands its
  /// name on).
  Graph apply() const;

private:
  ValueId current(ValueId id) const;

  const Graph& graph_;
  std::string rule_;
  Graph work_;
  std::vector<std::pair<ValueId, ValueId>> replacements_;
  std::map<ValueId, ValueId> replaced_;
};

/// The graph without nodes and constants that no output needs.
Graph remove_dead(const Graph& graph);

/// The graph with its nodes in another topological order, which names each once.
Graph reordered(const Graph& graph, const std::vector<NodeId>& order);

}  // namespace tensormill::ir
