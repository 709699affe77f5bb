/// From a .tflite file to the graph IR: an entry point of the file, converted operator by operator
/// (import_ops.def). Maps whose channels stand last are computed with the channels first
/// (build/maps/channels_last.h). Quantized tensors are integers in the graph, dequantized where an operator
/// computes with real numbers and quantized behind it. Errors: kInvalidModel for an operator that does not
/// fit its operands, naming it; kOperatorNotImplemented with all operators that are not supported in its
/// details. Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/tflite/flex.h"
#include "compiler/frontend/tflite/loaded_model.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::tflite {

struct Port {
  std::string name;
  int32_t tensor = 0;
};
/// What can be called in a file: a signature, or the main subgraph.
struct EntryPoint {
  std::string key;  ///< of the signature; "": none
  uint32_t subgraph = 0;
  std::vector<Port> inputs, outputs;  ///< in the order of the subgraph
};
/// The signature of that name; for "" the first one of the main subgraph, or that subgraph by its tensors'
/// names where there is none. Names are unique. Throws Error(kInvalidArgument) listing the signatures that
/// there are.
EntryPoint entry_point(const Model& model, std::string_view key);

/// The operators that are not implemented, with their versions.
build::Missing missing_operators(const Model& model, const EntryPoint& entry, const FlexOperators& flex);

struct ImportRequest : build::GraphRequest {
  EntryPoint entry;
  /// Quantized numbers are rounded as the reference kernels do (exact_ops.def); what computes with them and
  /// has no such form is not supported.
  bool is_exact = false;
  FlexOperators flex = {};  ///< who adds operators of TensorFlow; none: they are not supported
};
/// Throws as above, and Error(kInvalidArgument) for an output that the entry does not have.
ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::tflite
