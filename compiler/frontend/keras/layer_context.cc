#include "compiler/frontend/keras/layer_context.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::keras {

namespace {

const Json kNoArgument;

DType compute_dtype_of(const Layer& layer) {
  // Operators compute in the types of their operands; what an operator calls so is an argument of its own.
  if (layer.is_operation || !layer.config.is_object() || !layer.config.contains("dtype"))
    return DType::kFloat32;
  const std::string policy = policy_name(layer.config.at("dtype"));
  if (policy == "float16" || policy == "mixed_float16") return DType::kFloat16;
  if (policy == "bfloat16" || policy == "mixed_bfloat16") return DType::kBFloat16;
  if (policy == "float64") return DType::kFloat64;
  // Layers of integers compute with no real numbers.
  const bool is_plain = policy == "float32" || policy.starts_with("int") || policy.starts_with("uint");
  if ((is_plain && policy.find("from") == std::string::npos) || policy == "bool") return DType::kFloat32;
  throw UnsupportedForm{"dtype", "the policy \"" + policy.substr(0, 100) + "\" is not implemented"};
}

std::optional<size_t> place_of(const Json& argument) {
  if (!argument.is_object() || argument.size() != 1 || !argument.contains(kTensorMark)) return std::nullopt;
  return argument.at(kTensorMark).get<size_t>();
}

}  // namespace

LayerContext::LayerContext(ImportState& state, const LayerCall& call)
    : OpBuilder(state.graph, call.label, call.label, state.reserved),
      state_(state),
      call_(call),
      config_(call.layer.config),
      compute_dtype_(compute_dtype_of(call.layer)) {}

const Value& LayerContext::value(size_t place) const {
  if (place >= call_.inputs.size())
    invalid("it is called with " + std::to_string(call_.inputs.size()) + " tensors, expected more");
  return call_.inputs[place];
}

std::vector<V> LayerContext::masks_argument(const std::string& name, size_t position, size_t count) const {
  const Json& given = argument(name, position);
  std::vector<V> masks;
  for (size_t i = 0; i < count; ++i) {
    if (given.is_null()) {
      masks.push_back(mask(i));
    } else if (!given.is_array() || i >= given.size() || given[i].is_null()) {
      masks.push_back(ir::kAbsent);
    } else {
      const std::optional<size_t> place = place_of(given[i]);
      if (!place) invalid("argument " + name + " is no list of tensors");
      masks.push_back(raw(*place));
    }
  }
  return masks;
}

V LayerContext::raw(size_t place) const { return value(place).data; }

size_t LayerContext::num_inputs() const {
  size_t named = 0;
  const auto count = [&](const auto& self, const Json& json) -> void {
    if (place_of(json)) {
      ++named;
    } else if (json.is_structured()) {
      for (const Json& element : json) self(self, element);
    }
  };
  count(count, call_.named);
  return call_.inputs.size() - std::min(named, call_.inputs.size());
}

bool LayerContext::trains() const { return argument("training", 1) == true && !call_.layer.has_call_objects; }

std::optional<std::string_view> LayerContext::vocabulary_file() const {
  for (const Weight& weight : call_.layer.weights)
    if (weight.path == kVocabularyFile) return weight.data;
  return std::nullopt;
}

V LayerContext::input(size_t place) {
  const V x = raw(place);
  if (type(x).dtype == kString) unsupported("input", "strings are not implemented here");
  return is_float(type(x).dtype) ? cast(x, compute_dtype_) : x;
}

V LayerContext::cast(V x, DType to) {
  return type(x).dtype == to ? x : elementwise("cast", {x}, {{"to", to}});
}

const Json& LayerContext::argument(const std::string& name, size_t position) const {
  read_arguments_.insert(name);
  read_positions_.insert(position);
  if (call_.named.is_object() && call_.named.contains(name)) return call_.named.at(name);
  if (call_.positional.is_array() && position < call_.positional.size()) return call_.positional[position];
  return kNoArgument;
}

std::optional<size_t> LayerContext::tensor_argument(const std::string& name, size_t position) const {
  return place_of(argument(name, position));
}

std::optional<std::string> LayerContext::unread_argument() const {
  // The first argument is the input, or the list of inputs, which every converter reads.
  for (size_t i = 1; call_.positional.is_array() && i < call_.positional.size(); ++i) {
    const Json& value = call_.positional[i];
    if (!value.is_null() && value != false && read_positions_.count(i) == 0) return std::to_string(i);
  }
  if (!call_.named.is_object()) return std::nullopt;
  for (const auto& [name, value] : call_.named.items()) {
    // What a layer is called in a call of an operator of TensorFlow.
    if (value.is_null() || value == false || name == "name" || read_arguments_.count(name) != 0) continue;
    if (name == "training" && call_.layer.has_call_objects) continue;
    // The mask that goes along with the input anyway.
    if (name == "mask" && !call_.inputs.empty() && call_.inputs.front().mask != ir::kAbsent) continue;
    return name;
  }
  return std::nullopt;
}

V LayerContext::constant_of(const Weight& weight) {
  if (const auto known = state_.constants.find(&weight); known != state_.constants.end())
    return known->second;
  const bool is_aligned = reinterpret_cast<uintptr_t>(weight.data.data()) % dtype_bytes(weight.dtype) == 0;
  if (weight.data.size() != static_cast<size_t>(num_elements(weight.shape)) * dtype_bytes(weight.dtype))
    invalid("weight \"" + weight.path + "\" has another size than its shape");
  V made = ir::kAbsent;
  if (is_aligned) {
    // Tensors have no const data pointer; what the model keeps is only read.
    made = constant(Tensor(weight.dtype, weight.shape, std::const_pointer_cast<LoadedModel>(state_.loaded),
                           const_cast<char*>(weight.data.data())));
  } else {
    Tensor copy(weight.dtype, weight.shape);
    if (!weight.data.empty()) std::memcpy(copy.data(), weight.data.data(), weight.data.size());
    made = constant(std::move(copy));
  }
  state_.constants.emplace(&weight, made);
  return made;
}

V LayerContext::stored_in(const Weights& weights, std::string_view name, size_t index) {
  const Weight* weight = weights.find(name, index);
  if (weight == nullptr)
    invalid("it has no weight \"" + std::string(name) + "\"" +
            (weights.is_numbered() ? ", vars/" + std::to_string(index) : std::string()));
  return constant_of(*weight);
}

V LayerContext::weight_in(const Weights& weights, std::string_view name, size_t index) {
  const V value = stored_in(weights, name, index);
  return is_float(type(value).dtype) ? Compose(*this).cast(value, compute_dtype_) : value;
}

ir::Ints LayerContext::weight_shape(V weight, size_t rank, const char* what) const {
  const ir::SymShape extents = type(weight).shape;
  if (extents.size() != rank)
    invalid(std::string(what) + " has shape " + to_string(extents) + ", expected rank " +
            std::to_string(rank));
  return extents.hints();
}

bool LayerContext::is_channels_first() const {
  const std::string format = config_.text("data_format", "channels_last");
  if (format != "channels_first" && format != "channels_last") invalid("data_format is \"" + format + "\"");
  return format == "channels_first";
}

Layer LayerContext::inner_layer(const char* option) const {
  const Json& json = config_.at(option);
  if (!json.is_object()) invalid("option " + std::string(option) + " is no layer");
  return read_layer(json);
}

std::vector<Value> LayerContext::call_layer(const Layer& inner, const Weights& weights,
                                            const std::vector<Value>& inputs) {
  Json positional = Json::array();
  for (size_t i = 0; i < inputs.size(); ++i) positional.push_back({{kTensorMark, i}});
  if (inputs.size() > 1) positional = Json::array({positional});
  const Json named = Json::object();
  std::vector<Value> outputs =
      state_.call({inner, label() + "/" + inner.name, weights, inputs, positional, named});
  if (outputs.empty()) invalid("layer \"" + inner.name + "\" in it gives nothing");
  return outputs;
}

std::vector<Value> LayerContext::outputs() {
  if (outputs_.empty()) return {};
  const V made = outputs_.front().data;
  if (is_own(made) && !graph().value(made).constant) rename_if_free(made, label());
  return outputs_;
}

}  // namespace tensormill::frontend::keras
