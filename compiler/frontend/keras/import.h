/// From a Keras model to the graph IR: its layers converted call by call (layers.def). Maps whose channels
/// stand last are computed with the channels first (build/maps/channels_last.h). Errors: kInvalidModel for a
/// layer that does not fit its inputs or weights, naming it; kOperatorNotImplemented with all layers that are
/// not supported in its details. Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/keras/model.h"
#include "compiler/ir/graph.h"
#include "runtime/base/file.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::keras {

/// A model and the file that its views show.
struct LoadedModel {
  std::shared_ptr<const MappedFile> file;
  Model model;
};

/// An input of the model: a free dim of the batch is called "batch".
struct Port {
  std::string name;
  std::string type;  ///< "float32"; "string" has no tensors
  DimShape shape;
};
/// Throws Error(kNotSupported) for an input that says no shape.
std::vector<Port> input_ports(const Model& model);
/// Names are those of the layers, or of a dictionary of outputs; they are unique.
std::vector<std::string> output_names(const Model& model);

/// The layers that are not implemented or can never be imported.
build::Missing missing_layers(const Model& model);

/// Throws as above, and Error(kInvalidArgument) for an output that the model does not have. Constants are
/// views of what `model` keeps.
ir::Graph import_graph(std::shared_ptr<const LoadedModel> model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::keras
