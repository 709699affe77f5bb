#include "compiler/ir/run_dims.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/loops.h"
#include "compiler/ir/patch.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

/// The segment of each node; those that bind are the last of theirs.
class Segments {
public:
  explicit Segments(const Graph& graph)
      : graph_(graph), of_value_(graph.values().size(), 0), loop_of_(outermost_loops(graph)) {
    for (size_t i = 0; i < loop_of_.size(); ++i) {
      if (loop_of_[i] != kAbsent) members_[loop_of_[i]].push_back(static_cast<NodeId>(i));
    }
  }

  std::vector<NodeId> order() {
    std::vector<size_t> of_node(graph_.nodes().size(), kOpen);
    // Nodes stand behind what they read; what binds their symbols may still stand behind them.
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < of_node.size(); ++i) {
        if (of_node[i] != kOpen) continue;
        const auto id = static_cast<NodeId>(i);
        const NodeId loop = loop_of(id);
        if (loop == kAbsent) {
          of_node[i] = visit({id});
        } else if (const std::vector<NodeId>& members = members_.at(loop); members.back() == id) {
          const size_t segment = visit(members);
          for (const NodeId member : members) of_node[static_cast<size_t>(member)] = segment;
        }
        moved = moved || of_node[i] != kOpen;
      }
    }
    std::vector<NodeId> order(of_node.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](NodeId id) {
      return std::pair(of_node[static_cast<size_t>(id)], has_effect(graph_.node(id)));
    };
    for (const NodeId id : order) {
      if (of_node[static_cast<size_t>(id)] == kOpen)
        throw Error(ErrorCode::kNotSupported,
                    "node " + graph_.node(id).op + " has extents that nothing binds");
    }
    std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return key(a) < key(b); });
    return order;
  }

private:
  static constexpr size_t kOpen = static_cast<size_t>(-1);

  NodeId loop_of(NodeId id) const { return loop_of_.empty() ? kAbsent : loop_of_[static_cast<size_t>(id)]; }

  /// The segment of nodes that are in one; kOpen while it is not known.
  size_t visit(const std::vector<NodeId>& nodes) {
    size_t found = 0;
    for (const NodeId id : nodes) found = std::max(found, needed_by(id));
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      if (has_effect(node) && nodes.size() > 1)
        throw Error(ErrorCode::kNotSupported, "a loop whose body decides about extents");
      // What an operand waits for waits as well.
      for (const ValueId output : node.outputs) of_value_[static_cast<size_t>(output)] = found;
      if (found != kOpen && has_effect(node)) bind(node, found + 1);
    }
    return found;
  }

  /// What the node's own loop makes it waits for in no other segment.
  size_t needed_by(NodeId id) const {
    const Node& node = graph_.node(id);
    const NodeId loop = loop_of(id);
    size_t found = 0;
    for (const ValueId input : node.inputs) {
      if (input == kAbsent) continue;
      const NodeId producer = graph_.value(input).producer;
      if (loop == kAbsent || producer == kAbsent || loop_of(producer) != loop)
        found = std::max(found, of_value_[static_cast<size_t>(input)]);
    }
    if (has_effect(node)) return found;
    found = std::max(found, of_types(graph_, node));
    return node.region == nullptr ? found : std::max(found, of_region(*node.region));
  }

  /// Of the extents of its results, and of its attributes.
  size_t of_types(const Graph& graph, const Node& node) const {
    size_t found = 0;
    for (const ValueId output : node.outputs) {
      for (const SymInt& extent : graph.value(output).type.shape) found = std::max(found, of_dim(extent));
    }
    for (const auto& [name, value] : node.attrs.all()) {
      if (const auto* one = std::get_if<SymInt>(&value)) found = std::max(found, of_dim(*one));
      if (const auto* list = std::get_if<SymShape>(&value)) {
        for (const SymInt& each : *list) found = std::max(found, of_dim(each));
      }
    }
    return found;
  }

  size_t of_region(const Graph& region) const {
    size_t found = 0;
    for (const Node& node : region.nodes()) found = std::max(found, of_types(region, node));
    return found;
  }

  void bind(const Node& node, size_t segment) {
    for (const SymInt& extent : node.attrs.sym_ints_of("extents")) {
      const te::Dim dim = extent.expr();
      if (const std::string* symbol = dim.as_symbol()) bound_.emplace(*symbol, segment);
    }
    for (const ValueId output : node.outputs) of_value_[static_cast<size_t>(output)] = segment;
  }

  size_t of_dim(const SymInt& extent) const {
    if (extent.is_constant()) return 0;
    size_t found = 0;
    for (const std::string& symbol : extent.expr().symbols()) {
      if (!graph_.symbols()->is_of_run(te::Dim::symbol(symbol))) continue;
      const auto bound = bound_.find(symbol);
      found = bound == bound_.end() ? kOpen : std::max(found, bound->second);
    }
    return found;
  }

  const Graph& graph_;
  std::vector<size_t> of_value_;
  const std::vector<NodeId> loop_of_;              ///< by node: outermost_loops
  std::map<NodeId, std::vector<NodeId>> members_;  ///< by loop, in the graph's order
  std::map<std::string, size_t> bound_;            ///< by symbol: the first segment that has it
};

}  // namespace

Graph in_segments(const Graph& graph) {
  return run_symbols(graph).empty() ? graph : reordered(graph, Segments(graph).order());
}

std::vector<std::string> run_symbols(const Graph& graph) {
  std::vector<std::string> names;
  if (graph.symbols() == nullptr || graph.symbols()->of_run().empty()) return names;
  for (const Node& node : graph.nodes()) {
    if (!has_effect(node)) continue;
    for (const SymInt& extent : node.attrs.sym_ints_of("extents")) {
      const te::Dim dim = extent.expr();
      const std::string* symbol = dim.as_symbol();
      TM_CHECK(symbol != nullptr && graph.symbols()->find_of_run(*symbol) != nullptr,
               "what a run binds is no symbol of a run");
      names.push_back(*symbol);
    }
  }
  return names;
}

}  // namespace tensormill::ir
