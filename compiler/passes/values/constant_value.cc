#include "compiler/passes/values/constant_value.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/match.h"
#include "runtime/base/error.h"

namespace tensormill::passes {

namespace {

constexpr int kMostLinks = 8;

std::optional<Tensor> follow(const ir::Graph& graph, ir::ValueId id,
                             const std::vector<std::string_view>& operators, int steps) {
  if (id == ir::kAbsent) return std::nullopt;
  const ir::Value& value = graph.value(id);
  if (value.constant) return *value.constant;
  const ir::Node* node = producer_of(graph, id);
  if (node == nullptr || steps == 0 || node->outputs.size() != 1 ||
      std::count(operators.begin(), operators.end(), node->op) == 0)
    return std::nullopt;
  std::vector<Tensor> inputs;
  for (const ir::ValueId input : node->inputs) {
    std::optional<Tensor> tensor = follow(graph, input, operators, steps - 1);
    if (!tensor) return std::nullopt;
    inputs.push_back(std::move(*tensor));
  }
  Tensor result = Tensor::zeros(value.type.dtype, value.type.shape);
  ir::ReferenceContext context{node->attrs, {}, {&result}};
  for (const Tensor& input : inputs) context.inputs.push_back(&input);
  try {
    graph.ops().get(node->op).reference(context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
    return std::nullopt;
  }
  return result;
}

}  // namespace

std::optional<Tensor> constant_by(const ir::Graph& graph, ir::ValueId id,
                                  const std::vector<std::string_view>& operators) {
  return follow(graph, id, operators, kMostLinks);
}

}  // namespace tensormill::passes
