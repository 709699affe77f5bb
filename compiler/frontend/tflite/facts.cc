#include "compiler/frontend/tflite/facts.h"

#include <charconv>
#include <set>

#include "compiler/frontend/tflite/notes.h"

namespace tensormill::frontend::tflite {

namespace {

std::string number_text(float number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), number).ptr};
}

std::string quantization_note(const Tensor& tensor) {
  const Quantization& quantization = tensor.quantization;
  if (quantization.details.index() != 0) return "quantized by blocks";
  if (quantization.scale.empty()) return "";
  if (quantization.scale.size() > 1)
    return std::to_string(quantization.scale.size()) + " scales along dim " +
           std::to_string(quantization.dimension);
  const int64_t zero = quantization.zero_point.empty() ? 0 : quantization.zero_point.front();
  return "scale " + number_text(quantization.scale.front()) + ", zero point " + std::to_string(zero);
}

FileValue value_of(const Subgraph& graph, int32_t index, std::string_view alias) {
  const Tensor& tensor = graph.tensors[static_cast<size_t>(index)];
  FileValue value;
  // Names may be empty and stand twice; the index tells tensors apart.
  value.name = !alias.empty()        ? std::string(alias)
               : tensor.name.empty() ? std::to_string(index)
                                     : std::string(tensor.name);
  value.type = type_name(tensor.type);
  value.shape = shown_dims(tensor.signature);
  value.note = quantization_note(tensor);
  return value;
}

/// The names that the first signature of the main subgraph gives, else those of the tensors.
void add_values(const Model& model, FileFacts& facts) {
  const Subgraph& main = model.subgraphs.front();
  const Signature* signature = nullptr;
  for (const Signature& each : model.signatures)
    if (each.subgraph == 0 && signature == nullptr) signature = &each;
  const auto alias = [&](const std::vector<NamedTensor>& names, int32_t index) {
    for (const NamedTensor& name : names)
      if (name.tensor == static_cast<uint32_t>(index)) return name.name;
    return std::string_view();
  };
  for (const int32_t input : main.inputs)
    facts.inputs.push_back(
        value_of(main, input, signature == nullptr ? "" : alias(signature->inputs, input)));
  for (const int32_t output : main.outputs)
    facts.outputs.push_back(
        value_of(main, output, signature == nullptr ? "" : alias(signature->outputs, output)));
}

uint64_t element_count(const Tensor& tensor) {
  const int bits = type_bits(tensor.type);
  return bits == 0 ? 0 : tensor.data.size() * 8 / static_cast<uint64_t>(bits);
}

void count_weights(const Model& model, FileFacts& facts) {
  std::set<uint32_t> counted;
  for (const Subgraph& graph : model.subgraphs) {
    for (const Tensor& tensor : graph.tensors) {
      if (!tensor.is_constant || !counted.insert(tensor.buffer).second) continue;
      facts.parameters += static_cast<int64_t>(element_count(tensor));
      facts.weight_bytes += static_cast<int64_t>(tensor.data.size());
    }
  }
}

/// At most 32 of them, the longer ones cut.
std::string joined(const std::vector<std::string>& words) {
  constexpr size_t kMostWords = 32, kMostBytes = 200;
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), kMostWords); ++i)
    text += (i == 0 ? "" : ", ") + words[i].substr(0, kMostBytes);
  return words.size() > kMostWords ? text + " and " + std::to_string(words.size() - kMostWords) + " more"
                                   : text;
}

void add_notes(const Model& model, std::string_view bytes, FileFacts& facts) {
  facts.notes.emplace_back("quantization", quantization_kind(model));
  std::vector<std::string> keys;
  for (const Signature& signature : model.signatures) keys.emplace_back(signature.key);
  if (!keys.empty()) facts.notes.emplace_back("signatures", joined(keys));
  if (!model.description.empty()) facts.notes.emplace_back("description", model.description.substr(0, 200));
  const std::optional<ModelNotes> notes = read_notes(model);
  if (notes && !notes->name.empty()) facts.notes.emplace_back("name", notes->name.substr(0, 200));
  if (notes && !notes->inputs.empty() && !notes->inputs.front().mean.empty()) {
    const TensorNotes& input = notes->inputs.front();
    const auto texts = [](Floats numbers) {
      std::vector<std::string> words;
      for (const float number : numbers.first(std::min<size_t>(numbers.size(), 64)))
        words.push_back(number_text(number));
      return joined(words);
    };
    facts.notes.emplace_back("normalization", "mean " + texts(input.mean) + ", std " + texts(input.std));
  }
  for (const auto& [name, text] : associated_files(bytes))
    facts.notes.emplace_back("file", name + ", " + std::to_string(text.size()) + " bytes");
}

/// Operators whose second operand is a weight, by which the kind of a network is told.
bool has_weights(std::string_view name) {
  return name == "CONV_2D" || name == "DEPTHWISE_CONV_2D" || name == "FULLY_CONNECTED" ||
         name == "TRANSPOSE_CONV" || name == "CONV_3D" || name == "BATCH_MATMUL" ||
         name == "UNIDIRECTIONAL_SEQUENCE_LSTM" || name == "SVDF";
}

struct WeightUse {
  TensorType weight, activation;
  auto operator<=>(const WeightUse&) const = default;
};

std::string words_of(const WeightUse& use) {
  const bool float_activations = use.activation == TensorType::kFloat32;
  const std::string weight(type_name(use.weight)), activation(type_name(use.activation));
  if (use.weight == use.activation && type_bits(use.weight) <= 8) return weight + " weights and activations";
  if (use.weight == use.activation) return weight;
  if (float_activations && type_bits(use.weight) <= 8)
    return weight + " weights, float activations (dynamic range)";
  return weight + " weights, " + activation + " activations";
}

}  // namespace

std::string quantization_kind(const Model& model) {
  std::set<WeightUse> uses;
  bool has_half = false;
  for (const Subgraph& graph : model.subgraphs) {
    for (const Tensor& tensor : graph.tensors)
      has_half |= tensor.is_constant && tensor.type == TensorType::kFloat16;
    for (const Operator& node : graph.operators) {
      const std::string_view name = builtin_name(model.codes[node.code].builtin);
      const size_t weight = name == "UNIDIRECTIONAL_SEQUENCE_LSTM" ? 2 : 1;
      // The operand of a transposed convolution that is convolved stands behind the weights.
      const size_t input = name == "TRANSPOSE_CONV" ? 2 : 0;
      if (!has_weights(name) || node.inputs.size() <= std::max(weight, input)) continue;
      if (node.inputs[weight] < 0 || node.inputs[input] < 0) continue;
      uses.insert({graph.tensors[static_cast<size_t>(node.inputs[weight])].type,
                   graph.tensors[static_cast<size_t>(node.inputs[input])].type});
    }
  }
  std::vector<std::string> words;
  for (const WeightUse& use : uses) words.push_back(words_of(use));
  if (has_half) words.emplace_back("float16 constants");
  return words.empty() ? "no weights" : joined(words);
}

FileFacts read_facts(std::string_view bytes) {
  const Model model = read_model(bytes);
  FileFacts facts;
  facts.format = "tflite";
  const size_t count = model.subgraphs.size();
  facts.version = "schema 3, " + std::to_string(count) + (count == 1 ? " subgraph" : " subgraphs");
  add_values(model, facts);
  std::vector<int64_t> uses(model.codes.size());
  for (const Subgraph& graph : model.subgraphs)
    for (const Operator& node : graph.operators) ++uses[node.code];
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i] > 0) facts.ops[operator_name(model.codes[i])] += uses[i];
  count_weights(model, facts);
  add_notes(model, bytes, facts);
  return facts;
}

}  // namespace tensormill::frontend::tflite
