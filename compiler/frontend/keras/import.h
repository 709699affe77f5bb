/// From a Keras model to the graph IR: its layers converted call by call (layers.def). Maps whose channels
/// stand last are computed with the channels first (build/channels_last.h). Errors: kInvalidModel for a layer
/// that does not fit its inputs or weights, naming it; kOperatorNotImplemented with all layers that are not
/// supported in its details. Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

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

/// The layers that are not implemented or can never be imported: a row a class and reason, with how often it
/// stands in the model and where first. Empty when none.
std::vector<ErrorDetail> unsupported_layers(const Model& model);

struct ImportRequest {
  std::vector<ir::SymShape> input_shapes;           ///< one an input
  std::map<std::string, Tensor> fixed_inputs = {};  ///< by name: constants, no inputs of the graph
  /// Values that inputs have in the one run that the graph is made for; the inputs stay.
  std::map<std::string, Tensor> run_inputs = {};
  std::shared_ptr<ir::SymbolTable> symbols = nullptr;
  bool is_one_form = false;               ///< the graph is to be of one form for all extents of its inputs
  std::vector<std::string> outputs = {};  ///< empty: all
};
/// Throws as above, and Error(kInvalidArgument) for an output that the model does not have. Constants are
/// views of what `model` keeps.
ir::Graph import_graph(std::shared_ptr<const LoadedModel> model, const ImportRequest& request,
                       const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::keras
