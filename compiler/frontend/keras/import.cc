#include "compiler/frontend/keras/import.h"

#include <algorithm>
#include <set>

#include "compiler/build/format_import.h"
#include "compiler/frontend/keras/file_graph.h"
#include "compiler/frontend/keras/layer_context.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::keras {

namespace {

constexpr size_t kMostDepth = 32;

build::NodePlace place_of(const std::string& class_name, const std::string& label) {
  return {"layer " + class_name, label, "", "", "layer \"" + label + "\" (" + class_name + ")"};
}

/// What is no class that is known, and what can never be imported.
void note_missing(const Network& network, const std::string& around, build::Missing& missing) {
  std::set<std::string> refused;
  for (const ErrorDetail& each : refused_layers(network)) {
    if (each.pointer.find('/') != std::string::npos && network.find(each.pointer) == nullptr) continue;
    const Layer* layer = network.find(each.pointer);
    const std::string class_name = layer == nullptr ? "" : layer->class_name;
    const bool is_named = each.detail.starts_with(class_name + ": ");
    missing.add(place_of(class_name, around + each.pointer),
                each.detail.substr(is_named ? class_name.size() + 2 : 0));
    refused.insert(each.pointer);
  }
  for (const Layer& layer : network.layers) {
    if (refused.count(layer.name) != 0) continue;
    if (layer.network) {
      note_missing(*layer.network, around + layer.name + "/", missing);
    } else if (layer.class_name != "InputLayer" && find_row(layer) == nullptr) {
      missing.add(place_of((layer.is_operation ? "keras.ops " : "") + layer.class_name, around + layer.name),
                  "");
    }
  }
}

/// What the calls of a network have made, while it is converted.
class NetworkCalls {
public:
  explicit NetworkCalls(const Network& network) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      by_name_.emplace(network.layers[i].name, i);
      results_.emplace_back(std::max<size_t>(network.layers[i].calls.size(), 1));
    }
  }

  /// The outputs of a call, which stay empty while it has not been converted.
  std::vector<Value>& results(const TensorRef& ref) {
    const size_t layer = by_name_.at(ref.layer);
    return results_[layer].at(static_cast<size_t>(ref.call));
  }

private:
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<std::vector<std::vector<Value>>> results_;
};

class GraphImport final : public build::FormatImport {
public:
  GraphImport(std::shared_ptr<const LoadedModel> loaded, const build::GraphRequest& request,
              const ir::OpRegistry& ops)
      : FormatImport(ops, request,
                     {loaded->model.network.name, build::names_of(input_ports(loaded->model)),
                      output_names(loaded->model)},
                     missing_layers(loaded->model),
                     {"layer",
                      size_t{1} << 17,
                      ", those of models as often as these are called",
                      {"layer ", "model "}}),
        model_(loaded->model),
        state_{std::move(loaded), graph_, reserved_} {
    state_.call = [this](const LayerCall& call) { return call_inner(call); };
  }

private:
  bool convert_all() override {
    outputs_ = convert(model_.network, std::nullopt, add_inputs(), "");
    return outputs_.has_value();
  }

  V output(size_t index) override { return (*outputs_)[index].data; }

  std::vector<Value> add_inputs() {
    std::vector<Value> values;
    const std::vector<Port> ports = input_ports(model_);
    for (size_t i = 0; i < ports.size(); ++i) {
      const Port& port = ports[i];
      const std::optional<DType> dtype = dtype_from_long_name(port.type);
      if (!dtype)
        throw Error(ErrorCode::kNotSupported,
                    "input \"" + port.name + "\" has elements of type " + port.type);
      values.push_back({add_input(i, *dtype), ir::kAbsent});
    }
    return values;
  }

  /// The outputs of a network; nothing where a layer is not supported, which is noted. `weights`: of a model
  /// in a file that names all weights of it in one list.
  std::optional<std::vector<Value>> convert(const Network& network, const std::optional<Weights>& weights,
                                            const std::vector<Value>& inputs, const std::string& around) {
    if (inputs.size() != network.inputs.size())
      throw Error(ErrorCode::kInvalidModel, "model \"" + network.name + "\" is called with " +
                                                std::to_string(inputs.size()) + " tensors, expected " +
                                                std::to_string(network.inputs.size()));
    NetworkCalls calls(network);
    for (size_t i = 0; i < inputs.size(); ++i) calls.results(network.inputs[i]) = {inputs[i]};
    const std::vector<std::string> groups = weight_groups(network);
    for (const auto& [index, call] : call_order(network)) {
      const Layer& layer = network.layers[index];
      std::optional<Weights> own;
      if (weights && layer.weights.empty()) own = weights->part(groups[index], layer.name);
      convert_call(calls, layer, call, own, around);
    }
    std::vector<Value> outputs;
    for (const TensorRef& ref : network.outputs) {
      const std::vector<Value>& results = calls.results(ref);
      if (results.empty() && !missing_.empty()) return std::nullopt;
      outputs.push_back(output_of(results, ref, "model \"" + network.name + "\""));
    }
    return outputs;
  }

  static Value output_of(const std::vector<Value>& results, const TensorRef& ref, const std::string& of) {
    if (static_cast<size_t>(ref.output) >= results.size())
      throw Error(ErrorCode::kInvalidModel, of + " takes output " + std::to_string(ref.output) + " of \"" +
                                                ref.layer + "\", which has " +
                                                std::to_string(results.size()));
    return results[static_cast<size_t>(ref.output)];
  }

  void convert_call(NetworkCalls& calls, const Layer& layer, size_t index,
                    const std::optional<Weights>& weights, const std::string& around) {
    const Call& call = layer.calls[index];
    std::vector<Value> inputs;
    for (const TensorRef& ref : call.inputs) {
      const std::vector<Value>& results = calls.results(ref);
      // What stands behind a layer that could not be converted has no inputs.
      if (results.empty() && !missing_.empty()) return;
      inputs.push_back(output_of(results, ref, "layer \"" + around + layer.name + "\""));
    }
    const LayerCall made{layer,
                         around + layer.name,
                         weights ? *weights : Weights(layer.weights, model_.numbers_weights),
                         std::move(inputs),
                         call.positional,
                         call.named};
    if (auto outputs = convert_layer(made))
      calls.results({layer.name, static_cast<int64_t>(index), 0}) = *std::move(outputs);
  }

  std::optional<std::vector<Value>> convert_layer(const LayerCall& call) {
    const Layer& layer = call.layer;
    if (layer.network) return convert_network(call);
    std::vector<Value> outputs;
    const bool is_done = try_convert(
        call.label, [&] { return place_of(layer.class_name, call.label); },
        [&] {
          const LayerRow* row = find_row(layer);
          if (row == nullptr) throw UnsupportedForm{"", ""};
          LayerContext context(state_, call);
          row->convert(context);
          refuse_unread(context);
          outputs = context.outputs();
          if (row->mask == MaskRule::kPassed && !call.inputs.empty()) {
            for (Value& output : outputs) output.mask = call.inputs.front().mask;
          }
        });
    return is_done ? std::optional(std::move(outputs)) : std::nullopt;
  }

  static void refuse_unread(const LayerContext& context) {
    if (const auto option = context.config().unread())
      throw UnsupportedForm{"option " + *option, "it is not known"};
    if (const auto argument = context.unread_argument())
      throw UnsupportedForm{"argument " + *argument, "it is not implemented"};
  }

  std::optional<std::vector<Value>> convert_network(const LayerCall& call) {
    count_node(call.label);
    if (depth_ == kMostDepth)
      throw Error(ErrorCode::kInvalidModel,
                  "models lie more than " + std::to_string(kMostDepth) + " deep in each other");
    if (call.named.is_object() && call.named.contains("training") && call.named.at("training") == true &&
        !call.layer.has_call_objects) {
      missing_.add(place_of(call.layer.class_name, call.label), "argument training: it is not implemented");
      return std::nullopt;
    }
    ++depth_;
    std::optional<Weights> weights;
    if (!call.weights.empty()) weights = call.weights;
    auto outputs = convert(*call.layer.network, weights, call.inputs, call.label + "/");
    --depth_;
    return outputs;
  }

  std::vector<Value> call_inner(const LayerCall& call) {
    if (depth_ == kMostDepth)
      throw Error(ErrorCode::kInvalidModel, "layers lie more than 32 deep in each other");
    ++depth_;
    std::optional<std::vector<Value>> outputs = convert_layer(call);
    --depth_;
    if (!outputs) throw CallFails();
    return *std::move(outputs);
  }

  const Model& model_;
  ImportState state_;
  std::optional<std::vector<Value>> outputs_;
  size_t depth_ = 0;
};

}  // namespace

std::vector<Port> input_ports(const Model& model) {
  std::vector<Port> ports;
  for (const TensorRef& ref : model.network.inputs) {
    const Layer* layer = model.network.find(ref.layer);
    const Json* shape = layer == nullptr ? nullptr : given_shape(*layer);
    if (shape == nullptr)
      throw Error(ErrorCode::kNotSupported,
                  "input \"" + ref.layer + "\" has no shape: the model was saved before it was built");
    Port port;
    port.name = ref.layer;
    port.type = layer->config.contains("dtype") ? policy_name(layer->config.at("dtype")) : "float32";
    if (port.type.starts_with("mixed_")) port.type = "float32";
    for (const Json& dim : *shape) {
      const bool is_batch = port.shape.empty();
      if (dim.is_number_integer() && dim >= 0) {
        port.shape.emplace_back(dim.get<int64_t>());
      } else {
        port.shape.emplace_back(std::string(is_batch ? "batch" : ""));
      }
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (size_t i = 0; i < model.network.outputs.size(); ++i) {
    const std::vector<std::string>& given = model.network.output_names;
    const std::string base = i < given.size() ? given[i] : model.network.outputs[i].layer;
    std::string name = base;
    for (int count = 1; !taken.insert(name).second; ++count) name = base + "_" + std::to_string(count);
    names.push_back(name);
  }
  return names;
}

build::Missing missing_layers(const Model& model) {
  build::Missing missing("layer", "layer");
  note_missing(model.network, "", missing);
  return missing;
}

ir::Graph import_graph(std::shared_ptr<const LoadedModel> model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops) {
  return GraphImport(std::move(model), request, ops).run();
}

}  // namespace tensormill::frontend::keras
