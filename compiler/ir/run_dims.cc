#include "compiler/ir/run_dims.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/ir/loops.h"
#include "compiler/ir/patch.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

void visit_types(const Graph& graph, const Node& node, const std::function<void(const SymInt&)>& visit) {
  for (const ValueId output : node.outputs) {
    for (const SymInt& extent : graph.value(output).type.shape) visit(extent);
  }
  for (const auto& [name, value] : node.attrs.all()) {
    if (const auto* one = std::get_if<SymInt>(&value)) visit(*one);
    if (const auto* list = std::get_if<SymShape>(&value)) {
      for (const SymInt& each : *list) visit(each);
    }
  }
}

/// Orders the nodes of a graph. A level is what is in no loop, or the body of one; its items are its nodes
/// and the loops in it, each as a whole, by the node of its begin. An item's segment is one of its level's.
class Segments {
public:
  explicit Segments(const Graph& graph)
      : graph_(graph), around_(loops_around(graph)), segment_(graph.nodes().size(), kOpen) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const Node& node = graph.node(id);
      if (node.op == kLoopBegin) begins_[node.attrs.int_of("loop")] = id;
      if (node.op == kLoopEnd) end_of_[begins_.at(node.attrs.int_of("loop"))] = id;
    }
    for (size_t i = 0; i < graph.nodes().size(); ++i) add(static_cast<NodeId>(i));
  }

  std::vector<NodeId> order() {
    find_segments();
    std::vector<NodeId> order(segment_.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<Place>> places;
    for (const NodeId id : order) places.push_back(places_of(id));
    std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) {
      return places[static_cast<size_t>(a)] < places[static_cast<size_t>(b)];
    });
    return order;
  }

private:
  static constexpr size_t kOpen = static_cast<size_t>(-1);

  /// Where an item stands in its level.
  struct Place {
    size_t segment = 0;
    bool binds = false;
    NodeId at = 0;  ///< in the graph's order; a loop stands where its end does
    auto operator<=>(const Place&) const = default;
  };

  /// Of nodes that are neither end of a loop.
  NodeId loop_around(NodeId id) const { return around_.empty() ? kAbsent : around_[static_cast<size_t>(id)]; }

  /// The loop that it is in, or of which it is an end.
  NodeId own_loop(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op == kLoopBegin) return id;
    return node.op == kLoopEnd ? begins_.at(node.attrs.int_of("loop")) : loop_around(id);
  }

  bool is_end(NodeId id) const { return graph_.node(id).op == kLoopBegin || graph_.node(id).op == kLoopEnd; }

  /// The level's item that the node is, or is in; kAbsent for one that is in none of the level's.
  NodeId item_of(NodeId id, NodeId level) const {
    if (!is_end(id) && loop_around(id) == level) return id;
    NodeId loop = own_loop(id);
    while (loop != kAbsent && loop_around(loop) != level) loop = loop_around(loop);
    return loop;
  }

  /// To the items of all levels around it.
  void add(NodeId id) {
    if (!is_end(id)) {
      members_[id] = {id};
      items_.push_back({id, loop_around(id)});
    }
    for (NodeId loop = own_loop(id); loop != kAbsent; loop = loop_around(loop)) {
      members_[loop].push_back(id);
      if (end_of_.at(loop) == id) items_.push_back({loop, loop_around(loop)});
    }
    if (!has_effect(graph_.node(id))) return;
    for (const std::string& symbol : bound_symbols(graph_.node(id))) binder_[symbol] = id;
  }

  /// Nodes stand behind what they read; what binds their symbols may still stand behind them.
  void find_segments() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [item, level] : items_) {
        size_t& segment = segment_[static_cast<size_t>(item)];
        if (segment != kOpen) continue;
        size_t found = 0;
        for (const NodeId member : members_.at(item)) found = std::max(found, needed_by(member, item, level));
        segment = found;
        moved = moved || found != kOpen;
      }
    }
    for (const auto& [item, level] : items_) {
      if (segment_[static_cast<size_t>(item)] == kOpen)
        throw Error(ErrorCode::kNotSupported,
                    "node " + graph_.node(item).op + " has extents that nothing binds");
    }
  }

  /// In which segment of the level what the node makes is there.
  size_t known_behind(NodeId producer, NodeId item, NodeId level) const {
    const NodeId own = item_of(producer, level);
    // What is in no item of the level is there before it, and an item waits for nothing of its own.
    if (own == kAbsent || own == item) return 0;
    const size_t segment = segment_[static_cast<size_t>(own)];
    return segment == kOpen || !has_effect(graph_.node(own)) ? segment : segment + 1;
  }

  size_t needed_by(NodeId id, NodeId item, NodeId level) const {
    const Node& node = graph_.node(id);
    size_t found = 0;
    for (const ValueId input : node.inputs) {
      const NodeId producer = input == kAbsent ? kAbsent : graph_.value(input).producer;
      if (producer != kAbsent) found = std::max(found, known_behind(producer, item, level));
    }
    if (has_effect(node)) return std::max(found, ranges_known_in(id, item, level));
    for_each_extent(graph_, node, [&](const SymInt& extent) {
      if (extent.is_constant()) return;
      for (const std::string& symbol : extent.expr().symbols()) {
        if (!graph_.symbols()->is_run_time(te::Dim::symbol(symbol))) continue;
        const auto binder = binder_.find(symbol);
        found = binder == binder_.end() ? kOpen : std::max(found, known_behind(binder->second, item, level));
      }
    });
    return found;
  }

  /// From which segment on the ranges can be checked of what the node binds: what they name may be bound in
  /// the same one, but for the body of a loop, which stands before what its segment binds.
  size_t ranges_known_in(NodeId id, NodeId item, NodeId level) const {
    size_t found = 0;
    for (const std::string& symbol : range_symbols(graph_, graph_.node(id))) {
      const auto binder = binder_.find(symbol);
      const NodeId own = binder == binder_.end() ? kAbsent : item_of(binder->second, level);
      if (own == kAbsent || own == item) continue;
      const size_t known =
          item == id ? segment_[static_cast<size_t>(own)] : known_behind(binder->second, item, level);
      found = std::max(found, known);
    }
    return found;
  }

  /// In the levels around it, the outermost first.
  std::vector<Place> places_of(NodeId id) const {
    std::vector<Place> places;
    if (graph_.node(id).op == kLoopBegin) {
      places.push_back({0, false, -1});
    } else {
      places.push_back({graph_.node(id).op == kLoopEnd ? kOpen : segment_[static_cast<size_t>(id)],
                        has_effect(graph_.node(id)), id});
    }
    for (NodeId loop = own_loop(id); loop != kAbsent; loop = loop_around(loop))
      places.push_back({segment_[static_cast<size_t>(loop)], false, end_of_.at(loop)});
    std::reverse(places.begin(), places.end());
    return places;
  }

  const Graph& graph_;
  const std::vector<NodeId> around_;  ///< by node: loops_around
  std::vector<size_t> segment_;       ///< by item
  std::map<int64_t, NodeId> begins_;
  std::map<NodeId, NodeId> end_of_;  ///< by loop
  std::map<NodeId, std::vector<NodeId>> members_;
  std::vector<std::pair<NodeId, NodeId>> items_;  ///< with their levels, in the graph's order
  std::map<std::string, NodeId> binder_;          ///< by symbol
};

}  // namespace

std::vector<std::string> bound_symbols(const Node& node) {
  std::vector<std::string> symbols;
  for (const SymInt& extent : node.attrs.sym_ints_of("extents")) {
    const te::Dim dim = extent.expr();
    if (const std::string* symbol = dim.as_symbol()) symbols.push_back(*symbol);
  }
  return symbols;
}

std::vector<std::string> range_symbols(const Graph& graph, const Node& node) {
  const std::vector<std::string> bound = bound_symbols(node);
  std::vector<std::string> others;
  for (const std::string& symbol : bound) {
    const RunSymbol* found = graph.symbols()->find_run_time_symbol(symbol);
    if (found == nullptr || !found->high) continue;
    for (const std::string& each : found->high->symbols()) {
      if (graph.symbols()->find_run_time_symbol(each) != nullptr &&
          std::find(bound.begin(), bound.end(), each) == bound.end())
        others.push_back(each);
    }
  }
  return others;
}

void for_each_extent(const Graph& graph, const Node& node, const std::function<void(const SymInt&)>& visit) {
  visit_types(graph, node, visit);
  if (node.region == nullptr) return;
  for (const Node& inner : node.region->nodes()) visit_types(*node.region, inner, visit);
}

bool has_constant_extents(const Graph& graph, const Node& node) {
  bool are_constant = true;
  for_each_extent(graph, node,
                  [&](const SymInt& extent) { are_constant = are_constant && extent.is_constant(); });
  return are_constant && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
           return input == kAbsent || graph.value(input).type.shape.is_constant();
         });
}

bool has_constant_extents(const Graph& graph) {
  return std::all_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return has_constant_extents(graph, node); });
}

Graph in_segments(const Graph& graph) {
  return run_symbols(graph).empty() ? graph : reordered(graph, Segments(graph).order());
}

std::vector<std::string> run_symbols(const Graph& graph) {
  std::vector<std::string> names;
  if (graph.symbols() == nullptr || graph.symbols()->run_time_symbols().empty()) return names;
  for (const Node& node : graph.nodes()) {
    if (!has_effect(node)) continue;
    for (const SymInt& extent : node.attrs.sym_ints_of("extents")) {
      const te::Dim dim = extent.expr();
      const std::string* symbol = dim.as_symbol();
      TM_CHECK(symbol != nullptr && graph.symbols()->find_run_time_symbol(*symbol) != nullptr,
               "what a run binds is no symbol of a run");
      names.push_back(*symbol);
    }
  }
  return names;
}

}  // namespace tensormill::ir
