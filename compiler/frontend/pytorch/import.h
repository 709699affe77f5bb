/// From an exported program to the graph IR, node by node (aten_ops.def). Writes through views are followed
/// to what they are views of (views.h). Errors: kInvalidModel for a node that does not fit its operands,
/// naming it; kOperatorNotImplemented with all operators that are not supported in its details.
/// Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/frontend/pytorch/loaded_program.h"
#include "compiler/ir/graph.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

/// A tensor that goes in or out.
struct Port {
  std::string name;   ///< unique among its kind
  std::string value;  ///< in the program's graph
};
struct Ports {
  std::vector<Port> inputs, outputs;
};
/// What the module takes and returns. Throws Error(kNotSupported) for inputs that are no tensors, and for a
/// module that keeps a state between its runs.
Ports ports_of(const Program& program);

/// The operators that are not implemented: a row each, with how often it stands in the program and where
/// first. Empty when none.
std::vector<ErrorDetail> unsupported_operators(const Program& program);

struct ImportRequest {
  Ports ports;
  std::vector<ir::SymShape> input_shapes;           ///< one an input
  std::map<std::string, Tensor> fixed_inputs = {};  ///< by name: constants, no inputs of the graph
  /// Values that inputs have in the one run that the graph is made for; the inputs stay.
  std::map<std::string, Tensor> run_inputs = {};
  std::shared_ptr<ir::SymbolTable> symbols = nullptr;
  /// The graph is to be of one form for all extents of its inputs.
  bool is_one_form = false;
  std::vector<std::string> outputs = {};  ///< of the ports; empty: all
};
/// Throws as above, and Error(kInvalidArgument) for an output that the module does not have.
ir::Graph import_graph(const LoadedProgram& program, const ImportRequest& request, const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::pytorch
