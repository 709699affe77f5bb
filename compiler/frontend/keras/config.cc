#include <algorithm>

#include "compiler/frontend/keras/model.h"
#include "compiler/frontend/wire/work_budget.h"

namespace tensormill::frontend::keras {

namespace {

constexpr size_t kMaxLayers = 100'000;
constexpr int kMaxNesting = 32;
constexpr size_t kMaxTensors = 1'000'000;

[[noreturn]] void bad_config(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "Keras configuration: " + what);
}

const Json& member(const Json& object, const char* name, const std::string& of) {
  if (!object.is_object() || !object.contains(name)) bad_config(of + " has no member " + name);
  return object.at(name);
}

std::string text_member(const Json& object, const char* name, const std::string& of) {
  const Json& value = member(object, name, of);
  if (!value.is_string()) bad_config("member " + std::string(name) + " of " + of + " is no text");
  return value.get<std::string>();
}

std::string text_or_empty(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object.at(name).is_string()) return "";
  return object.at(name).get<std::string>();
}

int64_t integer(const Json& value, const std::string& of) {
  if (!value.is_number_integer() || value < 0 || value > 1'000'000)
    bad_config(of + " has no count where one is due");
  return value.get<int64_t>();
}

/// ["layer", call, output]; version 2 has arguments behind them.
TensorRef read_ref(const Json& list, const std::string& of) {
  if (!list.is_array() || list.size() < 3 || !list[0].is_string())
    bad_config("a tensor of " + of + " is no [layer, call, output]");
  return {list[0].get<std::string>(), integer(list[1], of), integer(list[2], of)};
}

bool is_ref(const Json& json) {
  return json.is_array() && json.size() >= 3 && json[0].is_string() && json[1].is_number_integer() &&
         json[2].is_number_integer();
}

class ConfigReader {
public:
  Network network(const Json& json, int depth) {
    if (depth > kMaxNesting) bad_config("models lie more than 32 deep in each other");
    Network to;
    to.class_name = text_member(json, "class_name", "the model");
    // A Sequential model of Keras 1 and early 2 is a list of layers.
    const Json& config = member(json, "config", to.class_name);
    const Json& layers = config.is_array() ? config : member(config, "layers", to.class_name);
    to.name = config.is_object() ? text_or_empty(config, "name") : "";
    if (!layers.is_array()) bad_config("layers of " + to.class_name + " are no list");
    layers_.spend(layers.size());
    for (const Json& layer : layers) to.layers.push_back(read_layer(layer, depth));
    if (to.class_name == "Sequential") {
      add_input(to, config);
      chain(to);
    } else if (config.is_object()) {
      to.inputs = refs(member(config, "input_layers", to.name), "input_layers");
      to.outputs = refs(member(config, "output_layers", to.name), "output_layers");
      if (config.at("output_layers").is_object())
        for (const auto& [name, ref] : config.at("output_layers").items()) to.output_names.push_back(name);
    }
    settle_calls(to);
    check_refs(to);
    return to;
  }

  Layer read_layer(const Json& json, int depth) {
    Layer to;
    to.class_name = text_member(json, "class_name", "a layer");
    to.config = member(json, "config", to.class_name);
    to.name = text_or_empty(json, "name");
    if (to.name.empty()) to.name = text_or_empty(to.config, "name");
    to.module = text_or_empty(json, "module");
    to.registered_name = text_or_empty(json, "registered_name");
    const std::string what = "layer \"" + to.name + "\"";
    if (to.class_name == "Functional" || to.class_name == "Sequential" || to.class_name == "Model")
      to.network = std::make_shared<const Network>(network(json, depth + 1));
    if (json.contains("inbound_nodes")) {
      const Json& nodes = json.at("inbound_nodes");
      if (!nodes.is_array()) bad_config("inbound_nodes of " + what + " are no list");
      for (const Json& node : nodes) to.calls.push_back(read_call(node, what));
      to.has_call_objects = !nodes.empty() && nodes.front().is_object();
    }
    // An .h5 file of Keras 3 names no modules; of what stands in a model, layers alone can be trained or not.
    to.is_operation = to.module.find(".ops") != std::string::npos ||
                      (to.module.empty() && to.has_call_objects && to.config.is_object() &&
                       !to.config.contains("trainable") && to.class_name != "InputLayer" && !to.network);
    return to;
  }

private:
  /// Version 3: {"args", "kwargs"} with tensors as objects; version 2: a list of [layer, call, output,
  /// kwargs], or one of these alone.
  Call read_call(const Json& node, const std::string& what) {
    Call call;
    if (node.is_object()) {
      call.positional = collect(member(node, "args", what), call, what, 0);
      for (const auto& [name, value] : member(node, "kwargs", what).items()) {
        const size_t before = call.inputs.size();
        call.named[name] = collect(value, call, what, 0);
        if (call.inputs.size() == before) call.arguments[name] = value;
      }
      return call;
    }
    return read_call_list(node, what);
  }

  Call read_call_list(const Json& node, const std::string& what) {
    Call call;
    if (!node.is_array()) bad_config("a call of " + what + " is neither an object nor a list");
    const Json single = is_ref(node) ? Json::array({node}) : Json();
    Json list = Json::array();
    for (const Json& tensor : single.is_array() ? single : node) {
      // What an operator was called with in place of a tensor.
      const bool is_constant =
          tensor.is_array() && tensor.size() >= 3 && tensor[0] == "_CONSTANT_VALUE" && tensor[1] == -1;
      list.push_back(is_constant ? tensor[2] : add(call, read_ref(tensor, what)));
      if (tensor.size() < 4 || !tensor[3].is_object()) continue;
      for (const auto& [name, value] : tensor[3].items()) {
        const size_t before = call.inputs.size();
        call.named[name] = with_refs(value, call, what, 0);
        if (call.inputs.size() == before) call.arguments[name] = value;
      }
    }
    if (!list.empty()) call.positional.push_back(list.size() == 1 ? list[0] : list);
    return call;
  }

  /// The place of a tensor in a call's arguments.
  Json add(Call& call, TensorRef ref) {
    tensors_.spend(1);
    call.inputs.push_back(std::move(ref));
    return {{kTensorMark, call.inputs.size() - 1}};
  }

  /// A value with its [layer, call, output] as places.
  Json with_refs(const Json& value, Call& call, const std::string& what, int depth) {
    if (depth > kMaxNesting) bad_config("arguments of " + what + " are nested too deeply");
    if (is_ref(value)) return add(call, read_ref(value, what));
    if (value.is_object() && value.contains(kTensorMark))
      bad_config("an argument of " + what + " has a mark of places");
    Json made = value;
    if (value.is_structured())
      for (auto& [name, element] : made.items()) element = with_refs(element, call, what, depth + 1);
    return made;
  }

  /// Notes the tensors in a value, in their order; the value with their places.
  Json collect(const Json& value, Call& call, const std::string& what, int depth) {
    if (depth > kMaxNesting) bad_config("arguments of " + what + " are nested too deeply");
    if (text_or_empty(value, "class_name") == "__keras_tensor__") {
      const Json& config = member(value, "config", "a tensor of " + what);
      return add(call, read_ref(member(config, "keras_history", "a tensor of " + what), what));
    }
    if (value.is_object() && value.contains(kTensorMark))
      bad_config("an argument of " + what + " has a mark of places");
    Json made = value;
    if (value.is_structured())
      for (auto& [name, element] : made.items()) element = collect(element, call, what, depth + 1);
    return made;
  }

  /// One tensor, or a list or dictionary of them.
  std::vector<TensorRef> refs(const Json& json, const std::string& what) {
    std::vector<TensorRef> list;
    if (is_ref(json)) return {read_ref(json, what)};
    if (!json.is_array() && !json.is_object()) bad_config(what + " are no list");
    for (const Json& element : json) {
      tensors_.spend(1);
      list.push_back(read_ref(element, what));
    }
    return list;
  }

  /// A Sequential model may have no layer for its input, but a shape of it.
  static void add_input(Network& network, const Json& config) {
    if (network.layers.empty() || network.layers.front().class_name == "InputLayer") return;
    const Layer& first = network.layers.front();
    Layer input;
    input.class_name = "InputLayer";
    input.name = first.name + "_input";
    for (const auto& [json, name] : {std::pair(&first.config, "batch_input_shape"),
                                     {&first.config, "batch_shape"},
                                     {&config, "build_input_shape"}}) {
      if (!json->is_object() || !json->contains(name) || !json->at(name).is_array()) continue;
      input.config["batch_shape"] = json->at(name);
      break;
    }
    if (first.network && !first.network->inputs.empty() && !input.config.contains("batch_shape")) {
      if (const Layer* inner = first.network->find(first.network->inputs.front().layer))
        input.config = inner->config;
    }
    if (first.class_name == "Embedding") {
      input.config["dtype"] = "int32";
    } else if (first.config.is_object() && first.config.contains("dtype") &&
               !input.config.contains("dtype")) {
      input.config["dtype"] = first.config.at("dtype");
    }
    if (input.config.contains("batch_shape") || input.config.contains("batch_input_shape"))
      network.layers.insert(network.layers.begin(), std::move(input));
  }

  /// A model that is a layer may have a call of its own, by which it was built: it is in no file, but counted
  /// by Keras 2 wherever one is named, and by Keras 3 where an output is. Here calls are counted from 0.
  static void settle_calls(Network& network) {
    for (const Layer& layer : network.layers) {
      if (!layer.network) continue;
      const auto count = static_cast<int64_t>(layer.calls.size());
      std::vector<TensorRef*> refs;
      if (!layer.has_call_objects) {
        for (Layer& reader : network.layers)
          for (Call& call : reader.calls)
            for (TensorRef& input : call.inputs) refs.push_back(&input);
      }
      for (TensorRef& output : network.outputs) refs.push_back(&output);
      std::erase_if(refs, [&](const TensorRef* ref) { return ref->layer != layer.name; });
      const bool is_counted = layer.has_call_objects
                                  ? layer.class_name == "Functional"
                                  : std::any_of(refs.begin(), refs.end(),
                                                [&](const TensorRef* ref) { return ref->call == count; });
      if (!is_counted) continue;
      for (TensorRef* ref : refs)
        if (ref->call > 0) --ref->call;
    }
  }

  /// The layers of a Sequential model, each called on what the one before gives.
  void chain(Network& network) {
    std::string before;
    for (Layer& layer : network.layers) {
      if (layer.name.empty()) layer.name = layer.class_name + "_" + std::to_string(network.inputs.size());
      layer.calls = {Call()};
      if (!before.empty()) {
        layer.calls.front().inputs = {{before, 0, 0}};
        layer.calls.front().positional = Json::array({{{kTensorMark, 0}}});
      }
      before = layer.name;
    }
    if (network.layers.empty()) return;
    network.inputs = {{network.layers.front().name, 0, 0}};
    network.outputs = {{before, 0, 0}};
  }

  void check_refs(const Network& network) const {
    std::map<std::string_view, const Layer*> by_name;
    for (const Layer& layer : network.layers)
      if (!by_name.emplace(layer.name, &layer).second)
        bad_config("layer \"" + layer.name + "\" stands twice");
    const auto check = [&](const TensorRef& ref, const std::string& of) {
      const auto found = by_name.find(ref.layer);
      if (found == by_name.end())
        bad_config(of + " takes a tensor of \"" + ref.layer + "\", which is no layer");
      if (static_cast<size_t>(ref.call) >= std::max<size_t>(found->second->calls.size(), 1))
        bad_config(of + " takes call " + std::to_string(ref.call) + " of \"" + ref.layer + "\", which has " +
                   std::to_string(found->second->calls.size()));
    };
    for (const Layer& layer : network.layers)
      for (const Call& call : layer.calls)
        for (const TensorRef& input : call.inputs) check(input, "layer \"" + layer.name + "\"");
    for (const TensorRef& output : network.outputs) check(output, "the model's output");
    for (const TensorRef& input : network.inputs) check(input, "the model's input");
  }

  wire::WorkBudget layers_{"layers", kMaxLayers};
  wire::WorkBudget tensors_{"tensors", kMaxTensors};
};

/// Whether a marshalled Python function lies in a configuration: its mark, which is not followed.
bool has_lambda(const Json& json, int depth) {
  if (depth > 2 * kMaxNesting || !json.is_structured()) return false;
  if (json.is_object() && text_or_empty(json, "class_name") == "__lambda__") return true;
  return std::any_of(json.begin(), json.end(), [&](const Json& each) { return has_lambda(each, depth + 1); });
}

/// Keras writes its own classes as registered "Dense" or not at all, others as "package>Name".
bool is_own(const Layer& layer) {
  const bool own_module = layer.module.empty() || layer.module.starts_with("keras") ||
                          layer.module.starts_with("tensorflow.keras") || layer.module == "builtins";
  return own_module && layer.registered_name.find('>') == std::string::npos;
}

void add_refused(const Network& network, const std::string& around, std::vector<ErrorDetail>& refused) {
  for (const Layer& layer : network.layers) {
    const std::string name = around + layer.name;
    if (layer.class_name == "Lambda" || layer.class_name == "TFOpLambda" ||
        layer.class_name == "SlicingOpLambda") {
      refused.push_back({name, layer.class_name +
                                   ": its program is Python, which is not run here; put layers of Keras "
                                   "in its place"});
    } else if (!is_own(layer)) {
      const std::string& as = layer.registered_name.empty() ? layer.module : layer.registered_name;
      refused.push_back({name, "class " + layer.class_name + " (" + as + ") is not one of Keras"});
    } else if (!layer.network && has_lambda(layer.config, 0)) {
      refused.push_back({name, layer.class_name + " holds a Python function, which is not run here"});
    }
    if (layer.network) add_refused(*layer.network, name + "/", refused);
  }
}

}  // namespace

const Layer* Network::find(std::string_view layer) const {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [&](const Layer& each) { return each.name == layer; });
  return found == layers.end() ? nullptr : &*found;
}

const Json* given_shape(const Layer& layer) {
  for (const char* name : {"batch_shape", "batch_input_shape"}) {
    if (layer.config.is_object() && layer.config.contains(name) && layer.config.at(name).is_array())
      return &layer.config.at(name);
  }
  return nullptr;
}

Network read_network(const Json& json) { return ConfigReader().network(json, 0); }

Layer read_layer(const Json& json) { return ConfigReader().read_layer(json, 0); }

std::vector<ErrorDetail> refused_layers(const Network& network) {
  std::vector<ErrorDetail> refused;
  add_refused(network, "", refused);
  return refused;
}

}  // namespace tensormill::frontend::keras
