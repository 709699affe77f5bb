#include <map>
#include <tuple>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

struct Key {
  std::string op;
  ir::Attrs attrs;
  std::vector<ir::ValueId> inputs;
  bool operator<(const Key& other) const {
    return std::tie(op, inputs, attrs.all()) < std::tie(other.op, other.inputs, other.attrs.all());
  }
};

}  // namespace

ir::Graph eliminate_common_subexpressions(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "eliminate_common_subexpressions");
  // Representative of each value; constants of equal bytes are one.
  std::vector<ir::ValueId> same(graph.values().size());
  std::map<std::string, ir::ValueId> constants;
  for (size_t i = 0; i < same.size(); ++i) {
    same[i] = static_cast<ir::ValueId>(i);
    const std::optional<Tensor>& constant = graph.values()[i].constant;
    if (!constant) continue;
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(constant->data()),
                                           constant->num_bytes());
    const std::string key = ir::to_string(graph.values()[i].type) + Digest::of(bytes).hex();
    same[i] = constants.emplace(key, same[i]).first->second;
  }
  std::map<Key, const ir::Node*> seen;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == "fused") continue;
    // Expressions have no order but that of their text.
    Key key = node.attrs.is_constant() ? Key{node.op, node.attrs, {}}
                                       : Key{node.op + " " + ir::to_string(node.attrs), {}, {}};
    for (ir::ValueId input : node.inputs) {
      key.inputs.push_back(input == ir::kAbsent ? input : same[static_cast<size_t>(input)]);
    }
    if (graph.ops().get(node.op).commutative && key.inputs.size() == 2 && key.inputs[1] < key.inputs[0]) {
      std::swap(key.inputs[0], key.inputs[1]);
    }
    const auto [found, is_new] = seen.emplace(std::move(key), &node);
    if (is_new) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      same[static_cast<size_t>(node.outputs[i])] = found->second->outputs[i];
      patch.replace(node.outputs[i], found->second->outputs[i]);
    }
  }
  return patch.apply();
}

}  // namespace tensormill::passes
