#include <algorithm>
#include <set>

#include "compiler/frontend/pytorch/model.h"

namespace tensormill::frontend::pytorch {

namespace {

void count_nodes(const Graph& graph, FileFacts& facts) {
  for (const Node& node : graph.nodes) {
    // "torch.ops.aten.add.Tensor" is aten.add.Tensor to its users.
    const std::string prefix = "torch.ops.";
    ++facts.ops[node.target.starts_with(prefix) ? node.target.substr(prefix.size()) : node.target];
    for (const NamedArgument& input : node.inputs)
      if (input.argument.graph) count_nodes(*input.argument.graph, facts);
  }
}

FileValue value_of(const Graph& graph, const std::string& name) {
  FileValue value;
  value.name = name;
  const auto found = graph.tensors.find(name);
  if (found == graph.tensors.end()) {
    value.type = "number";
    return value;
  }
  value.type = scalar_name(found->second.dtype);
  for (const SymDim& dim : found->second.sizes) value.shape.push_back(to_string(dim));
  return value;
}

std::string range_text(const SymbolRange& range) {
  return (range.min ? std::to_string(*range.min) : "any") + " to " +
         (range.max ? std::to_string(*range.max) : "any");
}

}  // namespace

FileFacts facts_of(const Program& program) {
  FileFacts facts;
  facts.format = "pt2";
  facts.version = "schema " + std::to_string(program.schema_major) + "." +
                  std::to_string(program.schema_minor) +
                  (program.torch_version.empty() ? "" : ", torch " + program.torch_version);
  for (const InputSpec& input : program.inputs)
    if (input.kind == "user_input") facts.inputs.push_back(value_of(program.graph, input.name));
  for (const OutputSpec& output : program.outputs)
    if (output.kind == "user_output") facts.outputs.push_back(value_of(program.graph, output.name));
  count_nodes(program.graph, facts);
  for (const InputSpec& input : program.inputs) {
    const StoredTensor* tensor = program.stored(input);
    if (tensor == nullptr) continue;
    facts.add_weight(count_elements(tensor->sizes), scalar_bytes(tensor->dtype));
  }
  for (const auto& [symbol, range] : program.ranges)
    facts.notes.emplace_back("symbol " + symbol, range_text(range));
  return facts;
}

}  // namespace tensormill::frontend::pytorch
