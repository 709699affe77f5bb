#include "compiler/frontend/onnx/model/file_graph.h"

#include <map>
#include <set>

#include "compiler/frontend/onnx/model/check_model.h"
#include "compiler/frontend/onnx/model/functions.h"
#include "compiler/frontend/onnx/model/tensor_data.h"

namespace tensormill::frontend::onnx {

namespace {

/// Of an element type that no tensor here has, by the file's name of it.
std::string type_of(int32_t element, const DimShape& shape) {
  const std::optional<DType> dtype = dtype_of(element);
  std::vector<std::string> dims;
  for (const Dim& dim : shape) {
    const int64_t* extent = std::get_if<int64_t>(&dim);
    dims.push_back(extent == nullptr ? std::get<std::string>(dim)
                   : *extent < 0     ? std::string("?")
                                     : std::to_string(*extent));
  }
  return shown_type(dtype ? dtype_name(*dtype) : data_type_name(element), dims);
}

/// Which functions a node's subgraphs and the functions that it calls lead to. checked_model has refused
/// functions that call themselves.
class CalledFunctions {
public:
  explicit CalledFunctions(const ModelProto& model) : model_(model) {}

  std::set<std::string> of(const NodeProto& node) {
    std::set<std::string> names;
    if (const FunctionProto* called = find_function(model_.functions, node)) {
      names.insert(called->name);
      names.merge(std::set<std::string>(within(*called)));
    }
    for (const AttributeProto& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) names.merge(of(*inner));
    return names;
  }

private:
  std::set<std::string> of(const GraphProto& graph) {
    std::set<std::string> names;
    for (const NodeProto& node : graph.nodes) names.merge(of(node));
    return names;
  }

  const std::set<std::string>& within(const FunctionProto& function) {
    const auto known = known_.find(&function);
    if (known != known_.end()) return known->second;
    return known_.emplace(&function, of(function.body)).first->second;
  }

  const ModelProto& model_;
  std::map<const FunctionProto*, std::set<std::string>> known_;
};

}  // namespace

FileGraph file_graph(const ModelSource& source) {
  const ModelProto model = checked_model(source);
  const GraphProto& graph = model.graph;
  FileGraph shown(graph.name);
  std::set<std::string_view> initializers;
  for (const TensorProto& tensor : graph.initializers) {
    initializers.insert(tensor.name);
    shown.add_value(tensor.name, type_of(tensor.data_type, {tensor.dims.begin(), tensor.dims.end()}), true);
  }
  for (const ValueInfoProto& input : graph.inputs)
    if (!initializers.contains(input.name))
      shown.add_input(input.name, type_of(input.elem_type, input.shape));
  for (const ValueInfoProto& output : graph.outputs)
    shown.add_output(output.name, type_of(output.elem_type, output.shape));
  CalledFunctions functions(model);
  for (size_t i = 0; i < graph.nodes.size() && !shown.is_full(); ++i) {
    const NodeProto& node = graph.nodes[i];
    FileNode made{.op = node.op_type,
                  .label = node_label(node, i),
                  .path = {},
                  .within = {node_label(node, i) + "/"},
                  .inputs = node.inputs,
                  .outputs = node.outputs};
    for (const std::string& name : functions.of(node)) made.within.push_back(name + "/");
    shown.add_node(std::move(made));
  }
  return shown;
}

}  // namespace tensormill::frontend::onnx
