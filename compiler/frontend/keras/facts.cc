#include <set>

#include "compiler/frontend/keras/model.h"

namespace tensormill::frontend::keras {

namespace {

FileValue value_of(const Network& network, const TensorRef& ref, bool is_input) {
  FileValue value;
  value.name = ref.layer + (ref.output == 0 ? std::string() : ":" + std::to_string(ref.output));
  value.type = "float32";
  value.has_rank = false;
  const Layer* layer = network.find(ref.layer);
  if (layer == nullptr || !layer->config.is_object()) return value;
  if (layer->config.contains("dtype") && layer->config.at("dtype").is_string())
    value.type = layer->config.at("dtype").get<std::string>();
  const Json* shape = is_input ? given_shape(*layer) : nullptr;
  if (shape == nullptr) return value;
  value.has_rank = true;
  for (const Json& dim : *shape) value.shape.push_back(dim.is_number_integer() ? dim.dump() : "?");
  return value;
}

void count(const Network& network, FileFacts& facts) {
  for (const Layer& layer : network.layers) {
    if (layer.network) {
      count(*layer.network, facts);
    } else {
      ++facts.ops[layer.class_name];
    }
    for (const Weight& weight : layer.weights) {
      if (weight.path == kVocabularyFile) continue;
      facts.parameters += num_elements(weight.shape);
      facts.weight_bytes += static_cast<int64_t>(weight.data.size());
    }
  }
}

}  // namespace

FileFacts facts_of(const Model& model, std::string_view format) {
  FileFacts facts;
  facts.format = format;
  facts.version = "Keras " + (model.keras_version.empty() ? "of an unknown version" : model.keras_version) +
                  ", " + model.network.class_name + " of " + std::to_string(model.network.layers.size()) +
                  " layers";
  for (const TensorRef& input : model.network.inputs)
    facts.inputs.push_back(value_of(model.network, input, true));
  for (const TensorRef& output : model.network.outputs)
    facts.outputs.push_back(value_of(model.network, output, false));
  count(model.network, facts);
  for (const ErrorDetail& refused : refused_layers(model.network))
    facts.notes.emplace_back("refused: " + refused.pointer, refused.detail);
  return facts;
}

}  // namespace tensormill::frontend::keras
