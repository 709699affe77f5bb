/// From TensorFlow's graphs to the graph IR: a signature of a SavedModel, or the placeholders and results of
/// a frozen graph, converted node by node (tf_ops.def). What the results do not need is not looked at;
/// functions are put where they are called. Maps whose channels stand last are computed with the channels
/// first (build/maps/channels_last.h). Errors: kInvalidModel for a node that does not fit its operands,
/// naming it; kOperatorNotImplemented with all operators that are not supported in its details.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/tensorflow/loaded_model.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::tensorflow {

struct Port {
  std::string name;
  std::string tensor;  ///< "node:1" of the graph
  DataType dtype = DataType::kInvalid;
  TensorShape shape;  ///< has_rank is false where nothing says it
};
/// What can be called: a signature, or a whole graph.
struct EntryPoint {
  std::string key;  ///< of the signature; "": none
  std::vector<Port> inputs, outputs;
};

/// A frozen graph as a model without variables, whose placeholders are the inputs, and whose results are what
/// nothing reads.
EntryPoint graph_entry(const Graph& graph);
/// The signature of that name; for "" serving_default, or else the first one. Throws Error(kInvalidArgument)
/// listing those that there are, Error(kNotSupported) for a model without any.
EntryPoint entry_point(const SavedModel& model, const std::string& key);
/// The names of signatures that can be requested.
std::vector<std::string> signature_names(const SavedModel& model);

/// The operators that are not implemented, among what the results need.
build::Missing missing_operators(const SavedModel& model, const EntryPoint& entry);

struct ImportRequest : build::GraphRequest {
  EntryPoint entry;
};
/// Throws as above, and Error(kInvalidArgument) for an output that the model does not have.
ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::tensorflow
