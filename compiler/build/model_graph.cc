#include "compiler/build/model_graph.h"

#include <set>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::build {

const Tensor& checked_value(const std::string& name, const ir::ValueType& type, const Tensor& given) {
  // Strings of a value have the width of their longest.
  const auto shown = [](DType dtype, const Shape& shape) { return shown_shape(dtype, shape); };
  if (given.dtype() != type.dtype || shown(given.dtype(), given.shape()) != shown(type.dtype, type.shape))
    throw Error(ErrorCode::kInvalidArgument, "the value of input \"" + name + "\" is " +
                                                 ir::to_string(ir::ValueType{given.dtype(), given.shape()}) +
                                                 ", expected " + ir::to_string(type));
  return given;
}

ir::ValueId add_input(ir::Graph& graph, const GraphRequest& request, size_t index, const std::string& name,
                      DType dtype) {
  const ir::ValueType type{dtype, request.input_shapes[index]};
  num_bytes(type.shape.hints(), type.dtype);
  if (const auto fixed = request.fixed_inputs.find(name); fixed != request.fixed_inputs.end())
    return graph.add_constant(name, checked_value(name, type, fixed->second));
  const ir::ValueId input = graph.add_input(name, type);
  const auto run = request.run_inputs.find(name);
  if (run == request.run_inputs.end()) return input;
  return graph.add_constant(graph.unique_name(name), checked_value(name, type, run->second));
}

void set_outputs(ir::Graph& graph, const GraphRequest& request, const std::vector<std::string>& names,
                 const std::function<ir::ValueId(size_t)>& value_of) {
  std::vector<ir::ValueId> outputs;
  std::set<ir::ValueId> taken;
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  for (const std::string& name : request.outputs.empty() ? names : request.outputs) {
    const auto known = places.find(name);
    if (known == places.end())
      throw Error(ErrorCode::kInvalidArgument,
                  "outputs name \"" + name + "\", which is no output of the model");
    ir::ValueId value = value_of(known->second);
    const bool is_own = graph.value(value).producer != ir::kAbsent && taken.insert(value).second;
    if (!is_own) {
      // Narrow types and strings are moved as they are: a view in their own shape.
      const ir::ValueType type = graph.value(value).type;
      const bool is_view = is_narrow(type.dtype) || type.dtype == kString;
      const ir::Attrs attrs = is_view ? ir::Attrs{{"shape", type.shape}} : ir::Attrs{};
      value = graph.add_node(is_view ? "reshape" : "identity", {value}, attrs, {name},
                             {graph.unique_name(name + "#output")})[0];
    }
    // An output of an input's name is told apart.
    if (graph.value(value).name != name)
      graph.rename_value(value, graph.find_value(name) ? graph.unique_name(name + ":0") : name);
    outputs.push_back(value);
  }
  graph.set_outputs(std::move(outputs));
}

}  // namespace tensormill::build
