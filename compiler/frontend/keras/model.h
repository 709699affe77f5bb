/// What a Keras file says, as plain structs: layers with their configuration, how each is called, and their
/// weights as views. Keras 3 archives (.keras), HDF5 files of Keras 1 to 3 (.h5) and layers models of
/// TensorFlow.js have the same form here. Thread-safety: values; views live as long as the
/// file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/wire/archive_files.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/shape.h"

namespace tensormill::frontend::keras {

/// An output of a layer's call: which layer, which of its calls, which output of that.
struct TensorRef {
  std::string layer;
  int64_t call = 0;
  int64_t output = 0;
  bool operator==(const TensorRef&) const = default;
};

/// One call of a layer. A layer that is called more than once shares its weights.
struct Call {
  std::vector<TensorRef> inputs;    ///< in the order of the arguments; lists are flattened
  Json arguments = Json::object();  ///< those that are no tensors, by name: {"training": false}
  Json positional =
      Json::array();  ///< all of them as they were given; a tensor is {kTensorMark: place in inputs}
  Json named = Json::object();
};
inline constexpr const char* kTensorMark = "$tensor";

/// A weight that is none: the words that a layer was adapted to, a line each, as bytes.
inline constexpr const char* kVocabularyFile = "vocabulary.txt";

struct Weight {
  std::string path;  ///< "vars/0", "cell/vars/1", or the name in another file: "dense/kernel:0"
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string_view data;
};

struct Network;

struct Layer {
  std::string class_name;  ///< "Conv2D"
  std::string module;      ///< "keras.layers"; "" in older files
  std::string name;
  /// Set for a class that is not Keras' own: what it was registered as.
  std::string registered_name;
  Json config = Json::object();
  std::vector<Call> calls;
  bool has_call_objects = false;  ///< calls are written as Keras 3 writes them
  std::vector<Weight> weights;
  std::shared_ptr<const Network> network;  ///< of a model that is used as a layer
  bool is_operation = false;               ///< an operator of keras.ops that stands where layers do
};

/// A Functional model, or a Sequential one, whose layers are called one after another.
struct Network {
  std::string class_name, name;
  std::vector<Layer> layers;
  std::vector<TensorRef> inputs, outputs;
  std::vector<std::string> output_names;  ///< where they are a dictionary: its keys
  const Layer* find(std::string_view layer) const;
};

struct Model {
  Network network;
  Json config;  ///< what the network was read of
  std::string keras_version;
  std::string backend;
  bool numbers_weights = false;  ///< their paths are "vars/0", not names
  /// TensorFlow.js computes as Keras 2 does.
  bool has_old_rules() const {
    return (!keras_version.empty() && keras_version[0] < '3') || keras_version.starts_with("tfjs");
  }
  std::vector<std::shared_ptr<const void>> kept;  ///< what views show that does not lie in the file
};

/// The dims that a layer's configuration gives for its input: null is free. Null where it gives none.
const Json* given_shape(const Layer& layer);

/// A .keras archive, whose bytes are a mapping that outlives the model. Throws Error(kInvalidModel) naming
/// the member and the layer.
Model read_archive(std::string_view bytes);
/// An .h5 file. The same.
Model read_hdf5(std::string_view bytes);
/// A layers model of TensorFlow.js: model.json and its files of weights, which outlive the model. The same.
Model read_layers_model(const wire::ModelFiles& files);
/// A model's JSON configuration without weights: {"class_name","config"}. The same.
Network read_network(const Json& json);
/// One layer's: {"class_name","config"}, as layers have it that hold another. The same.
Layer read_layer(const Json& json);
/// The groups of an archive in which the layers' weights lie, of the layers in their order: "layers/dense_1".
std::vector<std::string> weight_groups(const Network& network);

/// What can never be imported, by layer: Lambda layers, whose program is Python bytecode, which is not looked
/// at, and classes that are not Keras' own.
std::vector<ErrorDetail> refused_layers(const Network& network);

FileFacts facts_of(const Model& model, std::string_view format);

}  // namespace tensormill::frontend::keras
