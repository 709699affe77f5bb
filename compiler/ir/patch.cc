#include "compiler/ir/patch.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/loops.h"
#include "compiler/ir/run_dims.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

std::vector<ValueId> Patch::add_node(const std::string& op, std::vector<ValueId> inputs, Attrs attrs,
                                     std::vector<std::string> origins) {
  for (ValueId& input : inputs) input = current(input);
  return work_.add_node(op, std::move(inputs), std::move(attrs), std::move(origins));
}

std::vector<ValueId> Patch::add_fused(std::vector<ValueId> inputs, std::shared_ptr<const Graph> region,
                                      std::vector<std::string> origins) {
  for (ValueId& input : inputs) input = current(input);
  return work_.add_fused(std::move(inputs), std::move(region), std::move(origins));
}

ValueId Patch::add_constant(const std::string& name, Tensor tensor) {
  return work_.add_constant(name, std::move(tensor));
}

ValueId Patch::current(ValueId id) const {
  // Chains are as long as a value was replaced again and again; the newest replacement of a value is last.
  for (auto found = replaced_.find(id); found != replaced_.end(); found = replaced_.find(id))
    id = found->second;
  return id;
}

void Patch::replace(ValueId from, ValueId to) {
  TM_CHECK(from >= 0 && static_cast<size_t>(from) < graph_.values().size(),
           rule_ + " replaces a value of its own");
  const Value& old_value = work_.value(from);
  const Value& new_value = work_.value(to);
  TM_CHECK(old_value.type == new_value.type, rule_ + ": value " + old_value.name + " has type " +
                                                 to_string(old_value.type) + ", its replacement has " +
                                                 to_string(new_value.type));
  replaced_[from] = to;
  replacements_.emplace_back(from, to);
}

namespace {

/// Rebuilds `source` with readers redirected, visiting only what the outputs need.
class Rebuild {
public:
  Rebuild(const Graph& source, size_t old_nodes, const std::vector<std::pair<ValueId, ValueId>>& replacements)
      : source_(source),
        old_nodes_(old_nodes),
        result_(source.ops()),
        mapped_(source.values().size(), kAbsent),
        active_(source.nodes().size(), false) {
    for (const auto& [from, to] : replacements) target_[from] = to;
  }

  Graph run() {
    // Old nodes first in their old order keeps the order stable; each pulls in what it needs.
    const std::vector<bool> live = live_nodes();
    std::vector<NodeId> order;
    for (size_t i = 0; i < live.size(); ++i) {
      if (live[i]) order.push_back(static_cast<NodeId>(i));
    }
    return run(order);
  }

  Graph run(const std::vector<NodeId>& order) {
    result_.set_name(source_.name());
    result_.set_symbols(source_.symbols());
    for (ValueId input : source_.inputs()) {
      mapped_[static_cast<size_t>(input)] =
          result_.add_input(source_.value(input).name, source_.value(input).type);
    }
    for (const NodeId id : order) emit(id);
    std::vector<ValueId> outputs;
    for (ValueId output : source_.outputs()) outputs.push_back(map(resolve(output, false)));
    hand_on_names(outputs);
    result_.set_outputs(std::move(outputs));
    return std::move(result_);
  }

private:
  /// The value that stands for `id`. A reader that the patch added sees replaced values themselves.
  ValueId resolve(ValueId id, bool reader_is_new) const {
    if (reader_is_new) return id;
    size_t steps = 0;
    for (auto found = target_.find(id); found != target_.end(); found = target_.find(id)) {
      id = found->second;
      TM_CHECK(++steps <= target_.size(), "replacements form a cycle");
    }
    return id;
  }

  bool is_new(NodeId node) const { return static_cast<size_t>(node) >= old_nodes_; }

  std::vector<bool> live_nodes() const {
    std::vector<bool> live(source_.nodes().size(), false);
    std::vector<NodeId> work;
    const auto need = [&](ValueId value) {
      const NodeId producer = source_.value(value).producer;
      if (producer != kAbsent && !live[static_cast<size_t>(producer)]) {
        live[static_cast<size_t>(producer)] = true;
        work.push_back(producer);
      }
    };
    for (ValueId output : source_.outputs()) need(resolve(output, false));
    std::map<NodeId, std::set<NodeId>> binds = loops_of_binds(source_);
    const std::map<NodeId, NodeId> ends = binds.empty() ? std::map<NodeId, NodeId>() : loop_ends();
    const auto is_live = [&](NodeId loop) {
      const auto end = ends.find(loop);
      return end != ends.end() && live[static_cast<size_t>(end->second)];
    };
    const auto follow = [&] {
      while (!work.empty()) {
        const NodeId node = work.back();
        work.pop_back();
        for (ValueId input : source_.node(node).inputs) {
          if (input != kAbsent) need(resolve(input, is_new(node)));
        }
      }
    };
    for (bool moved = true; moved;) {
      follow();
      moved = std::erase_if(binds, [&](const auto& bind) {
                // In the body of a loop that is not there nothing is bound.
                const bool runs = std::all_of(bind.second.begin(), bind.second.end(), is_live);
                if (runs) need(source_.node(bind.first).outputs.front());
                return runs;
              }) != 0;
    }
    return live;
  }

  /// By the node of the loop's begin.
  std::map<NodeId, NodeId> loop_ends() const {
    std::map<int64_t, NodeId> begins;
    std::map<NodeId, NodeId> ends;
    for (size_t i = 0; i < source_.nodes().size(); ++i) {
      const Node& node = source_.nodes()[i];
      if (node.op == kLoopBegin) begins[node.attrs.int_of("loop")] = static_cast<NodeId>(i);
      if (node.op != kLoopEnd) continue;
      const auto begin = begins.find(node.attrs.int_of("loop"));
      if (begin != begins.end()) ends[begin->second] = static_cast<NodeId>(i);
    }
    return ends;
  }

  void emit(NodeId root) {
    // Explicit stack: long chains of patched nodes must not exhaust the call stack.
    std::vector<NodeId> stack{root};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      const Node& node = source_.node(id);
      if (mapped_[static_cast<size_t>(node.outputs.front())] != kAbsent) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (ValueId input : node.inputs) {
        if (input == kAbsent) continue;
        const ValueId actual = resolve(input, is_new(id));
        const NodeId producer = source_.value(actual).producer;
        if (producer != kAbsent && mapped_[static_cast<size_t>(actual)] == kAbsent) {
          TM_CHECK(!active_[static_cast<size_t>(producer)],
                   "a patch made a cycle through node " + source_.node(producer).op);
          stack.push_back(producer);
          ready = false;
        }
      }
      active_[static_cast<size_t>(id)] = !ready;
      if (!ready) continue;
      stack.pop_back();
      append(id);
    }
  }

  void append(NodeId id) {
    const Node& node = source_.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs)
      inputs.push_back(input == kAbsent ? kAbsent : map(resolve(input, is_new(id))));
    std::vector<std::string> names;
    for (ValueId output : node.outputs) names.push_back(source_.value(output).name);
    const std::vector<ValueId> outputs =
        node.op == "fused"
            ? result_.add_fused(std::move(inputs), node.region, node.origins, std::move(names))
            : result_.add_node(node.op, std::move(inputs), node.attrs, node.origins, std::move(names));
    for (size_t i = 0; i < outputs.size(); ++i) mapped_[static_cast<size_t>(node.outputs[i])] = outputs[i];
  }

  ValueId map(ValueId id) {
    ValueId& mapped = mapped_[static_cast<size_t>(id)];
    if (mapped == kAbsent) {
      const Value& value = source_.value(id);
      TM_CHECK(value.constant.has_value(), "value " + value.name + " is used before it is made");
      mapped = result_.add_constant(value.name, *value.constant);
    }
    return mapped;
  }

  /// A replaced value's name goes to its replacement when that is a made one: profiles and --outputs speak
  /// the model's names. Graph outputs are addressed by position, so that an output may also be an input or a
  /// constant.
  void hand_on_names(const std::vector<ValueId>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& wanted = source_.value(source_.outputs()[i]).name;
      const Value& value = result_.value(outputs[i]);
      if (value.name == wanted || result_.find_value(wanted) || value.producer == kAbsent) continue;
      result_.rename_value(outputs[i], wanted);
    }
  }

  const Graph& source_;
  size_t old_nodes_;
  Graph result_;
  std::vector<ValueId> mapped_;
  std::vector<bool> active_;
  std::map<ValueId, ValueId> target_;
};

}  // namespace

Graph Patch::apply() const { return Rebuild(work_, graph_.nodes().size(), replacements_).run(); }

Graph remove_dead(const Graph& graph) { return Rebuild(graph, graph.nodes().size(), {}).run(); }

Graph reordered(const Graph& graph, const std::vector<NodeId>& order) {
  TM_CHECK(order.size() == graph.nodes().size(), "an order names each node once");
  return Rebuild(graph, graph.nodes().size(), {}).run(order);
}

}  // namespace tensormill::ir
