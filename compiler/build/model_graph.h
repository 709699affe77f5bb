/// How a graph that a frontend makes of a model begins and ends: inputs, whose values may be given, and
/// outputs by their names. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::build {

/// What is asked of the graph, whatever the model's format.
struct GraphRequest {
  std::vector<ir::SymShape> input_shapes;      ///< one an input of the model, of strings with their width
  std::map<std::string, Tensor> fixed_inputs;  ///< by name: constants, no inputs of the graph
  /// Values that inputs have in the one run that the graph is made for; the inputs stay.
  std::map<std::string, Tensor> run_inputs;
  std::shared_ptr<ir::SymbolTable> symbols;
  std::vector<std::string> outputs;  ///< empty: all of the model
};

/// `given`, which is to be the value of the input `name` of this type. Throws Error(kInvalidArgument) where
/// it is not.
const Tensor& checked_value(const std::string& name, const ir::ValueType& type, const Tensor& given);
/// Adds the request's input `index`: what stands for it in the graph. Throws as checked_value, and
/// Error(kTooLarge) for more bytes than there are.
ir::ValueId add_input(ir::Graph& graph, const GraphRequest& request, size_t index, const std::string& name,
                      DType dtype);
/// Sets the outputs that are asked for, of the model's `names`, each by its name; `value_of` makes the one of
/// an index. Throws Error(kInvalidArgument) for a name that is none of them.
void set_outputs(ir::Graph& graph, const GraphRequest& request, const std::vector<std::string>& names,
                 const std::function<ir::ValueId(size_t)>& value_of);

}  // namespace tensormill::build
