#include <algorithm>
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

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.num_bytes()};
}

/// Of constants of equal bytes the first one, for each constant. What differs in its type or in a few places
/// is told apart by these: most weights are never read whole.
std::map<ir::ValueId, ir::ValueId> first_of_equals(const ir::Graph& graph) {
  constexpr size_t kSample = 64;
  std::map<std::string, std::vector<ir::ValueId>> alike;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const std::optional<Tensor>& constant = graph.values()[i].constant;
    if (!constant) continue;
    const std::string_view bytes = bytes_of(*constant);
    std::string key = ir::to_string(graph.values()[i].type);
    for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - std::min(bytes.size(), kSample)})
      key += bytes.substr(at, kSample);
    alike[key].push_back(static_cast<ir::ValueId>(i));
  }
  std::map<ir::ValueId, ir::ValueId> first;
  for (const auto& [key, values] : alike) {
    std::map<Digest, ir::ValueId> seen;
    for (const ir::ValueId value : values) {
      const bool is_alone = values.size() == 1;
      first[value] =
          is_alone ? value
                   : seen.emplace(Digest::of(bytes_of(*graph.value(value).constant)), value).first->second;
    }
  }
  return first;
}

}  // namespace

ir::Graph eliminate_common_subexpressions(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "eliminate_common_subexpressions");
  // Representative of each value.
  std::vector<ir::ValueId> same(graph.values().size());
  for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<ir::ValueId>(i);
  for (const auto& [value, first] : first_of_equals(graph)) same[static_cast<size_t>(value)] = first;
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
