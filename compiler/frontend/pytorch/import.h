/// From an exported program to the graph IR, node by node (aten_ops.def). Writes through views are followed
/// to what they are views of (views.h). Errors: kInvalidModel for a node that does not fit its operands,
/// naming it; kOperatorNotImplemented with all operators that are not supported in its details.
/// Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/pytorch/loaded_program.h"
#include "compiler/ir/graph.h"

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

/// The operators that are not implemented.
build::Missing missing_operators(const Program& program);

struct ImportRequest : build::GraphRequest {
  Ports ports;
};
/// Throws as above, and Error(kInvalidArgument) for an output that the module does not have.
ir::Graph import_graph(const LoadedProgram& program, const ImportRequest& request, const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::pytorch
