#include <algorithm>

#include "compiler/frontend/keras/model.h"
#include "compiler/frontend/wire/tfjs_weights.h"

namespace tensormill::frontend::keras {

namespace {

/// Whether a network has a layer of that name, at any depth.
bool has_layer(const Network& network, std::string_view name) {
  return std::any_of(network.layers.begin(), network.layers.end(), [&](const Layer& layer) {
    return layer.name == name || (layer.network && has_layer(*layer.network, name));
  });
}

/// The layer, or the model among the layers, whose weight is called "dense/kernel", "block/dense/kernel" or
/// "bidirectional/forward_lstm/kernel". Null where there is none.
Layer* owner_of(Network& network, std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    const std::string_view name = path.substr(0, slash);
    for (Layer& layer : network.layers) {
      if (layer.name == name) return &layer;
    }
    for (Layer& layer : network.layers) {
      if (layer.network && has_layer(*layer.network, name)) return &layer;
    }
    path.remove_prefix(slash + 1);
  }
  return nullptr;
}

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Model read_layers_model(const wire::ModelFiles& files) {
  const auto bytes = files(wire::kTfjsFile);
  if (!bytes) throw Error(ErrorCode::kInvalidModel, "there is no file model.json");
  const Json json = wire::read_tfjs_json(*bytes);
  const Json& topology = wire::tfjs_member(json, "modelTopology", &Json::is_object);
  Model model;
  // Converted models have the configuration in a member, others are it.
  model.config = topology.contains("model_config")
                     ? topology.at("model_config")
                     : Json{{"class_name", topology.value("class_name", Json())},
                            {"config", topology.value("config", Json())}};
  model.network = read_network(model.config);
  model.keras_version = text_of(topology, "keras_version");
  model.backend = text_of(topology, "backend");
  const auto weights = std::make_shared<const wire::TfjsWeights>(files, json);
  model.kept.push_back(weights);
  for (const wire::TfjsWeight& weight : weights->all()) {
    Layer* layer = owner_of(model.network, weight.name);
    if (layer == nullptr)
      throw Error(ErrorCode::kInvalidModel,
                  "weight \"" + weight.name.substr(0, 200) + "\" is of no layer of the model");
    layer->weights.push_back({weight.name, weight.dtype, weight.shape, weight.bytes});
  }
  return model;
}

}  // namespace tensormill::frontend::keras
