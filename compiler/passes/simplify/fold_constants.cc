#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/pass.h"
#include "runtime/base/error.h"

namespace tensormill::passes {

namespace {

/// A folded constant may not make the model much larger than it was (an Expand of a scalar to a gigabyte).
constexpr int64_t kFreeBytes = int64_t{1} << 20;

bool within_budget(const ir::Graph& graph, const ir::Node& node) {
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
  for (ir::ValueId input : node.inputs) {
    if (input != ir::kAbsent)
      in_bytes += num_bytes(graph.value(input).type.shape, graph.value(input).type.dtype);
  }
  for (ir::ValueId output : node.outputs) {
    out_bytes += num_bytes(graph.value(output).type.shape, graph.value(output).type.dtype);
  }
  return out_bytes <= std::max(kFreeBytes, 2 * in_bytes);
}

/// Whether it makes the same at all extents. What is trimmed has fewer elements than its type says, which the
/// step itself tells the run.
bool is_of_numbers(const ir::Graph& graph, const ir::Node& node) {
  return node.op != "trim" && node.attrs.is_constant() &&
         std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](ir::ValueId output) { return graph.value(output).type.shape.is_constant(); });
}

/// The node's outputs, or nothing when it refuses its data: then it fails when it runs, as the model says.
std::vector<Tensor> evaluate(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<const Tensor*>& inputs) {
  std::vector<Tensor> results;
  for (ir::ValueId output : node.outputs) {
    const ir::ValueType& type = graph.value(output).type;
    results.push_back(Tensor::zeros(type.dtype, type.shape));
  }
  ir::ReferenceContext context{node.attrs, inputs, {}};
  for (Tensor& result : results) context.outputs.push_back(&result);
  try {
    graph.ops().get(node.op).reference(context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
    return {};
  }
  return results;
}

}  // namespace

ir::Graph fold_constants(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "fold_constants");
  // Constants that this pass made, by the value they stand for, so that chains fold in one go.
  std::vector<ir::ValueId> folded(graph.values().size(), ir::kAbsent);
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == "fused" || node.inputs.empty()) continue;
    std::vector<const Tensor*> inputs;
    bool constant = true;
    for (ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent) {
        inputs.push_back(nullptr);
        continue;
      }
      const ir::ValueId made = folded[static_cast<size_t>(input)];
      const ir::Value& value = patch.value(made == ir::kAbsent ? input : made);
      // What follows from extents of later runs is no constant.
      const bool is_symbolic = !value.constant && value.known.is_symbolic();
      inputs.push_back(is_symbolic ? nullptr : value.tensor());
      constant = constant && inputs.back() != nullptr;
    }
    if (!constant || !is_of_numbers(graph, node) || !within_budget(graph, node)) continue;
    const std::vector<Tensor> results = evaluate(graph, node, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      const ir::ValueId output = node.outputs[i];
      const ir::ValueId made = patch.add_constant(graph.value(output).name + ".folded", results[i]);
      folded[static_cast<size_t>(output)] = made;
      patch.replace(output, made);
    }
  }
  return patch.apply();
}

}  // namespace tensormill::passes
