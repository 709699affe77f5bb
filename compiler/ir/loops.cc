#include "compiler/ir/loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/branches.h"
#include "compiler/ir/run_dims.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

std::string label_of(const Node& node) {
  return node.op + (node.origins.empty() ? "" : " \"" + node.origins.front() + "\"");
}

/// Loops by the nodes of their begins.
class LoopFinder {
public:
  explicit LoopFinder(const Graph& graph) : graph_(graph) {
    // What binds a symbol may stand behind what has it in its type: as often as a loop is found to have more.
    for (std::map<std::string, std::set<NodeId>> before;;) {
      inside_.assign(graph.nodes().size(), {});
      begins_.clear();
      outer_.clear();
      for (size_t i = 0; i < graph_.nodes().size(); ++i) visit(static_cast<NodeId>(i));
      note_binds();
      if (of_symbol_ == before) break;
      before = of_symbol_;
    }
  }

  std::vector<NodeId> run() {
    TM_CHECK(outer_.size() == begins_.size(), "a loop has no end");
    for (const ValueId output : graph_.outputs()) {
      const NodeId producer = graph_.value(output).producer;
      TM_CHECK(producer == kAbsent || inside_[at(producer)].empty(),
               "output " + graph_.value(output).name + " is in the body of a loop");
    }
    std::vector<NodeId> around;
    for (size_t i = 0; i < inside_.size(); ++i) around.push_back(place_of(static_cast<NodeId>(i)));
    return around;
  }

  const std::set<NodeId>& inside(NodeId id) const { return inside_[at(id)]; }

private:
  static size_t at(NodeId id) { return static_cast<size_t>(id); }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    std::set<NodeId>& own = inside_[at(id)];
    for (const ValueId input : node.inputs) {
      const NodeId producer = input == kAbsent ? kAbsent : graph_.value(input).producer;
      if (producer == kAbsent) continue;
      own.insert(inside_[at(producer)].begin(), inside_[at(producer)].end());
    }
    if (!of_symbol_.empty() && has_effect(node)) {
      for (const std::string& symbol : range_symbols(graph_, node)) add_symbol(symbol, own);
    } else if (!of_symbol_.empty()) {
      for_each_extent(graph_, node, [&](const SymInt& extent) { add_symbols(extent, own); });
    }
    if (node.op == kLoopBegin) {
      const bool is_new = begins_.emplace(node.attrs.int_of("loop"), id).second;
      TM_CHECK(is_new, label_of(node) + " has the number of another loop");
      own.insert(id);
    } else if (node.op == kLoopEnd) {
      const auto begin = begins_.find(node.attrs.int_of("loop"));
      TM_CHECK(begin != begins_.end() && own.erase(begin->second) != 0, label_of(node) + " has no begin");
      outer_[begin->second] = own;
    }
  }

  void add_symbols(const SymInt& extent, std::set<NodeId>& loops) const {
    if (extent.is_constant()) return;
    for (const std::string& symbol : extent.expr().symbols()) add_symbol(symbol, loops);
  }

  void add_symbol(const std::string& symbol, std::set<NodeId>& loops) const {
    const auto found = of_symbol_.find(symbol);
    if (found != of_symbol_.end()) loops.insert(found->second.begin(), found->second.end());
  }

  /// The loops whose iterations bind the symbols.
  void note_binds() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!has_effect(graph_.nodes()[i]) || inside_[i].empty()) continue;
      for (const std::string& symbol : bound_symbols(graph_.nodes()[i])) of_symbol_[symbol] = inside_[i];
    }
  }

  /// A loop is in all those in which its end is, even where its begin reads nothing of them.
  NodeId place_of(NodeId id) const {
    const std::set<NodeId>& loops = graph_.node(id).op == kLoopBegin ? outer_.at(id) : inside_[at(id)];
    const auto deeper = [&](NodeId a, NodeId b) { return outer_.at(a).size() < outer_.at(b).size(); };
    const auto found = std::max_element(loops.begin(), loops.end(), deeper);
    return found == loops.end() ? kAbsent : *found;
  }

  const Graph& graph_;
  std::vector<std::set<NodeId>> inside_;      ///< by node: all loops that its results are in
  std::map<int64_t, NodeId> begins_;          ///< by the loop's number
  std::map<NodeId, std::set<NodeId>> outer_;  ///< by loop: those around it
  std::map<std::string, std::set<NodeId>> of_symbol_;
};

/// Appends the nodes of one body; `members` by loop, in the graph's order.
void append(const Graph& graph, const std::map<NodeId, std::vector<NodeId>>& members,
            const std::map<int64_t, NodeId>& begins, NodeId loop, std::vector<NodeId>& order) {
  const auto own = members.find(loop);
  if (own == members.end()) return;
  for (const NodeId id : own->second) {
    const Node& node = graph.node(id);
    if (node.op == kLoopBegin) continue;
    if (node.op == kLoopEnd) {
      const NodeId begin = begins.at(node.attrs.int_of("loop"));
      order.push_back(begin);
      append(graph, members, begins, begin, order);
    }
    order.push_back(id);
  }
}

}  // namespace

std::vector<NodeId> loops_around(const Graph& graph) {
  const bool has_loops = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                     [](const Node& node) { return node.op == kLoopBegin; });
  return has_loops ? LoopFinder(graph).run() : std::vector<NodeId>();
}

std::map<NodeId, std::set<NodeId>> loops_of_binds(const Graph& graph) {
  std::map<NodeId, std::set<NodeId>> loops;
  const bool has_binds = std::any_of(graph.nodes().begin(), graph.nodes().end(), &has_effect);
  if (!has_binds) return loops;
  const LoopFinder finder(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (has_effect(graph.nodes()[i])) loops.emplace(id, finder.inside(id));
  }
  return loops;
}

std::vector<NodeId> loop_order(const Graph& graph) {
  const std::vector<NodeId> around = loops_around(graph);
  std::vector<NodeId> order;
  std::map<NodeId, std::vector<NodeId>> members;
  std::map<int64_t, NodeId> begins;
  for (const NodeId id : branch_order(graph)) {
    members[around.empty() ? kAbsent : around[static_cast<size_t>(id)]].push_back(id);
    if (graph.node(id).op == kLoopBegin) begins[graph.node(id).attrs.int_of("loop")] = id;
  }
  append(graph, members, begins, kAbsent, order);
  return order;
}

}  // namespace tensormill::ir
