#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

std::string describe(const Node& node) {
  return node.op + (node.origins.empty() ? "" : " \"" + node.origins.front() + "\"");
}

void verify_fused(const Graph& graph, const Node& node) {
  TM_CHECK(node.region != nullptr, describe(node) + " has no region");
  verify(*node.region);
  TM_CHECK(node.inputs.size() == node.region->inputs().size() &&
               node.outputs.size() == node.region->outputs().size(),
           describe(node) + " has other inputs or outputs than its region");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    TM_CHECK(graph.value(node.inputs[i]).type == node.region->value(node.region->inputs()[i]).type,
             describe(node) + ": input " + std::to_string(i) + " differs from the region's");
  }
}

std::vector<ValueType> output_types(const Graph& graph, const Node& node) {
  std::vector<ValueType> types;
  if (node.op == "fused") {
    for (ValueId output : node.region->outputs()) types.push_back(node.region->value(output).type);
    return types;
  }
  InferContext context{node.attrs, {}};
  for (ValueId input : node.inputs)
    context.inputs.push_back(input == kAbsent ? nullptr : &graph.value(input).type);
  try {
    return graph.ops().get(node.op).infer(context);
  } catch (const Error& error) {
    throw InternalError(describe(node) + " does not type-check: " + error.message());
  }
}

}  // namespace

void verify(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    for (ValueId input : node.inputs) {
      if (input == kAbsent) continue;
      TM_CHECK(input >= 0 && static_cast<size_t>(input) < graph.values().size(),
               describe(node) + " reads no value");
      TM_CHECK(graph.value(input).producer < static_cast<NodeId>(i),
               describe(node) + " reads " + graph.value(input).name + " before it is made");
    }
    if (node.op == "fused") verify_fused(graph, node);
    const std::vector<ValueType> types = output_types(graph, node);
    TM_CHECK(types.size() == node.outputs.size(),
             describe(node) + " has " + std::to_string(node.outputs.size()) + " outputs, its rule gives " +
                 std::to_string(types.size()));
    for (size_t k = 0; k < types.size(); ++k) {
      const Value& value = graph.value(node.outputs[k]);
      TM_CHECK(value.type == types[k], describe(node) + ": value " + value.name + " has type " +
                                           to_string(value.type) + ", its rule gives " + to_string(types[k]));
      TM_CHECK(value.producer == static_cast<NodeId>(i) && value.slot == static_cast<int>(k),
               describe(node) + " does not own " + value.name);
    }
  }
  for (ValueId output : graph.outputs()) {
    TM_CHECK(output >= 0 && static_cast<size_t>(output) < graph.values().size(),
             "a graph output is no value");
  }
}

}  // namespace tensormill::ir
