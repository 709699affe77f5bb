#include "compiler/ir/branches.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/ir/loops.h"

namespace tensormill::ir {

namespace {

size_t at(int32_t id) { return static_cast<size_t>(id); }

bool is_choose(const Node& node) { return node.op == kChoose; }

bool has_choose(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_choose);
}

BranchChain with_side(BranchChain chain, const Node& choose, bool when) {
  chain.push_back({choose.inputs[0], when});
  return chain;
}

bool begins_with(const BranchChain& chain, const BranchChain& first) {
  return chain.size() >= first.size() && std::equal(first.begin(), first.end(), chain.begin());
}

/// Goes from the last node to the first, so that all uses of a value are known.
class ChainFinder {
public:
  explicit ChainFinder(const Graph& graph)
      : graph_(graph),
        loops_(loops_around(graph)),
        of_values_(graph.values().size()),
        chains_(graph.nodes().size()) {}

  std::vector<BranchChain> run() {
    for (const ValueId output : graph_.outputs()) of_values_[at(output)] = BranchChain();
    std::vector<NodeId> unused;
    for (auto id = static_cast<NodeId>(chains_.size()); id-- > 0;) {
      const Node& node = graph_.node(id);
      std::optional<BranchChain> chain;
      for (const ValueId output : node.outputs) meet(chain, of_values_[at(output)]);
      if (!chain) unused.push_back(id);
      chains_[at(id)] = within_loop(id, chain.value_or(BranchChain()));
      if (chain) note_uses(node, chains_[at(id)]);
    }
    // Nothing reads them: they run where their operands are there.
    for (const NodeId id : std::vector<NodeId>(unused.rbegin(), unused.rend())) follow_operands(id);
    return std::move(chains_);
  }

private:
  static void meet(std::optional<BranchChain>& chain, const std::optional<BranchChain>& other) {
    if (!other) return;
    if (!chain) {
      chain = other;
      return;
    }
    const auto [own, its] = std::mismatch(chain->begin(), chain->end(), other->begin(), other->end());
    static_cast<void>(its);
    chain->erase(own, chain->end());
  }

  void note_uses(const Node& node, const BranchChain& chain) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kAbsent) continue;
      const bool is_operand = is_choose(node) && i > 0;
      meet(of_values_[at(node.inputs[i])], is_operand ? with_side(chain, node, i == 1) : chain);
    }
  }

  NodeId loop_of(NodeId id) const { return id == kAbsent || loops_.empty() ? kAbsent : loops_[at(id)]; }

  bool is_in_loop(NodeId id, NodeId loop) const {
    if (loop == kAbsent) return true;
    for (NodeId own = loop_of(id); own != kAbsent; own = loop_of(own)) {
      if (own == loop) return true;
    }
    return false;
  }

  BranchChain within_loop(NodeId id, BranchChain chain) const {
    const auto is_beyond = [&](const BranchSide& side) {
      return !is_in_loop(id, loop_of(graph_.value(side.condition).producer));
    };
    chain.erase(std::find_if(chain.begin(), chain.end(), is_beyond), chain.end());
    return chain;
  }

  void follow_operands(NodeId id) {
    for (const ValueId input : graph_.node(id).inputs) {
      const NodeId producer = input == kAbsent ? kAbsent : graph_.value(input).producer;
      if (producer != kAbsent && chains_[at(producer)].size() > chains_[at(id)].size())
        chains_[at(id)] = chains_[at(producer)];
    }
  }

  const Graph& graph_;
  const std::vector<NodeId> loops_;
  std::vector<std::optional<BranchChain>> of_values_;  ///< what the uses so far have in common
  std::vector<BranchChain> chains_;
};

class Ordering {
public:
  explicit Ordering(const Graph& graph)
      : graph_(graph), chains_(branches_around(graph)), is_done_(graph.nodes().size()) {}

  std::vector<NodeId> run() {
    std::vector<NodeId> all;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) all.push_back(static_cast<NodeId>(i));
    emit(all, {});
    for (const NodeId id : all) add(id);
    return std::move(order_);
  }

private:
  void add(NodeId id) {
    if (is_done_[at(id)]) return;
    is_done_[at(id)] = true;
    order_.push_back(id);
  }

  /// Of the nodes, which are in the graph's order, those of the chain, and before each choose what it reads.
  void emit(const std::vector<NodeId>& nodes, const BranchChain& chain) {
    for (const NodeId id : nodes) {
      if (is_done_[at(id)] || chains_[at(id)] != chain) continue;
      const Node& node = graph_.node(id);
      for (const bool when : {true, false}) {
        if (!is_choose(node)) continue;
        const BranchChain side = with_side(chain, node, when);
        emit(needed(node.inputs[when ? 1 : 2], side), side);
      }
      add(id);
    }
  }

  /// What the value is computed from that runs in the chain, or in sides inside of it.
  std::vector<NodeId> needed(ValueId value, const BranchChain& chain) const {
    std::set<NodeId> found;
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const NodeId producer = open.back() == kAbsent ? kAbsent : graph_.value(open.back()).producer;
      open.pop_back();
      if (producer == kAbsent || is_done_[at(producer)] || !begins_with(chains_[at(producer)], chain) ||
          !found.insert(producer).second)
        continue;
      const std::vector<ValueId>& inputs = graph_.node(producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return {found.begin(), found.end()};
  }

  const Graph& graph_;
  const std::vector<BranchChain> chains_;
  std::vector<bool> is_done_;
  std::vector<NodeId> order_;
};

}  // namespace

std::vector<BranchChain> branches_around(const Graph& graph) {
  return has_choose(graph) ? ChainFinder(graph).run() : std::vector<BranchChain>();
}

std::vector<NodeId> branch_order(const Graph& graph) {
  if (has_choose(graph)) return Ordering(graph).run();
  std::vector<NodeId> order;
  for (size_t i = 0; i < graph.nodes().size(); ++i) order.push_back(static_cast<NodeId>(i));
  return order;
}

}  // namespace tensormill::ir
