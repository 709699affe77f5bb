#include "compiler/frontend/keras/file_graph.h"

#include <map>
#include <set>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::frontend::keras {

namespace {

constexpr int kMostShownDepth = 32;

std::string type_of(const Port& port) {
  const std::optional<DType> dtype = dtype_from_long_name(port.type);
  std::vector<std::string> dims;
  for (const Dim& dim : port.shape) {
    const int64_t* extent = std::get_if<int64_t>(&dim);
    const std::string* name = std::get_if<std::string>(&dim);
    dims.push_back(extent != nullptr ? std::to_string(*extent) : name->empty() ? "?" : *name);
  }
  return shown_type(dtype ? dtype_name(*dtype) : std::string_view(port.type), dims);
}

class Drawing {
public:
  explicit Drawing(FileGraph& shown) : shown_(shown) {}

  /// The values of the network's outputs. `around`: the labels of the models that it is in; `within`: what
  /// its values begin with, of each call another.
  std::vector<std::string> draw(const Network& network, const std::vector<std::string>& inputs,
                                const std::string& around, const std::string& within, int depth) {
    std::map<std::pair<std::string, int64_t>, std::vector<std::string>> values;
    for (size_t i = 0; i < network.inputs.size() && i < inputs.size(); ++i)
      values[{network.inputs[i].layer, network.inputs[i].call}] = {inputs[i]};
    const auto value_of = [&](const TensorRef& ref) -> std::string {
      const std::vector<std::string>& made = values[{ref.layer, ref.call}];
      const auto output = static_cast<size_t>(ref.output);
      if (output < made.size()) return made[output];
      // A layer does not say how many outputs it has.
      return made.empty() ? std::string() : made.front();
    };
    // A large model may be called by many.
    if (!shown_.takes(8 * network.layers.size())) return {};
    for (const auto& [index, call] : call_order(network)) {
      if (shown_.is_full()) return {};
      const Layer& layer = network.layers[index];
      const std::string label = around + layer.name;
      const std::string value =
          within + layer.name + (call == 0 ? std::string() : "#" + std::to_string(call));
      FileNode made{.op = layer.class_name, .label = label, .path = {}, .within = {}, .inputs = {}};
      for (const TensorRef& input : layer.calls[call].inputs) made.inputs.push_back(value_of(input));
      std::vector<std::string>& results = values[{layer.name, static_cast<int64_t>(call)}];
      if (layer.network && depth < kMostShownDepth) {
        results = draw(*layer.network, made.inputs, label + "/", value + "/", depth + 1);
        made.is_aside = true;
      } else {
        results = made.outputs = {value};
        made.within = {label + "/"};
      }
      shown_.add_node(std::move(made));
    }
    std::vector<std::string> outputs;
    for (const TensorRef& ref : network.outputs) outputs.push_back(value_of(ref));
    return outputs;
  }

private:
  FileGraph& shown_;
};

}  // namespace

std::vector<std::pair<size_t, size_t>> call_order(const Network& network) {
  std::map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < network.layers.size(); ++i) by_name.emplace(network.layers[i].name, i);
  std::map<std::pair<size_t, size_t>, size_t> waits;
  std::map<std::pair<size_t, size_t>, std::vector<std::pair<size_t, size_t>>> readers;
  std::set<std::pair<size_t, size_t>> ready;
  size_t count = 0;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    for (size_t k = 0; k < layer.calls.size() && layer.class_name != "InputLayer"; ++k) {
      ++count;
      size_t& left = waits[{i, k}];
      for (const TensorRef& input : layer.calls[k].inputs) {
        const size_t from = by_name.at(input.layer);
        if (network.layers[from].class_name == "InputLayer") continue;
        readers[{from, static_cast<size_t>(input.call)}].emplace_back(i, k);
        ++left;
      }
      if (left == 0) ready.insert({i, k});
    }
  }
  std::vector<std::pair<size_t, size_t>> order;
  while (!ready.empty()) {
    const auto next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const auto& reader : readers[next])
      if (--waits[reader] == 0) ready.insert(reader);
  }
  if (order.size() != count)
    throw Error(ErrorCode::kInvalidModel, "model \"" + network.name + "\": layers wait for each other");
  return order;
}

FileGraph file_graph(const Model& model) {
  FileGraph shown(model.network.name);
  std::vector<std::string> inputs;
  for (const Port& port : input_ports(model)) {
    inputs.push_back(port.name);
    shown.add_input(port.name, type_of(port));
  }
  for (const std::string& value : Drawing(shown).draw(model.network, inputs, "", "", 0))
    shown.add_output(value, "");
  return shown;
}

}  // namespace tensormill::frontend::keras
