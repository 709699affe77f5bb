#include "compiler/frontend/onnx/free_dims/symbols.h"

#include <algorithm>
#include <array>
#include <set>

namespace tensormill::frontend::onnx {

namespace {

/// A name of letters, digits and underscores, as the text form of dims has it, that no other symbol has.
std::string symbol_name(const std::string& text, const std::set<std::string>& taken) {
  std::string name;
  for (const char letter : text) {
    const bool fits = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
    name += fits ? letter : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name = "d_" + name;
  std::string free = name;
  for (size_t i = 2; taken.count(free) != 0; ++i) free = name + "_" + std::to_string(i);
  return free;
}

}  // namespace

/// Batches are small, what is behind them is divided often. Of many axes all are smaller: weights may have as
/// many that are free, and a tensor has to fit memory.
int64_t symbol_hint(size_t index, size_t axis, size_t rank) {
  constexpr std::array<int64_t, 6> kLarge = {224, 160, 352, 96, 416, 288};
  constexpr std::array<int64_t, 6> kSmall = {3, 5, 7, 11, 13, 17};
  const auto& hints = axis == 0 && rank > 1 ? kSmall : kLarge;
  const int64_t hint = hints[index % hints.size()] * (1 + static_cast<int64_t>(index / hints.size()));
  constexpr size_t kFewAxes = 4;
  return axis > 0 && rank > kFewAxes ? hint / 4 : hint;
}

std::vector<std::string> symbol_names(const std::vector<std::string>& dims) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const std::string& dim : dims) {
    names.push_back(symbol_name(dim, taken));
    taken.insert(names.back());
  }
  return names;
}

ImportOptions with_symbols(const ModelFacts& facts, ImportOptions options) {
  std::map<std::string, std::string> symbols;  // by the model's name of the dim
  std::map<std::string, int64_t> hints;
  std::set<std::string> taken;
  for (const SignatureValue& input : facts.inputs) {
    if (options.input_values.count(input.name) != 0 || input.kind != ValueKind::kTensor) continue;
    const auto given = options.input_shapes.find(input.name);
    if (given != options.input_shapes.end() && given->second.size() != input.shape.size()) continue;
    DimShape shape = given == options.input_shapes.end() ? input.shape : given->second;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const int64_t* extent = std::get_if<int64_t>(&shape[axis]);
      const std::string* free = std::get_if<std::string>(&input.shape[axis]);
      if ((extent != nullptr && *extent >= 0) || free == nullptr) continue;
      const std::string unnamed = input.name + "_" + std::to_string(axis);
      const std::string key = free->empty() ? unnamed : *free;
      auto found = symbols.find(key);
      if (found == symbols.end()) {
        found = symbols.emplace(key, symbol_name(key, taken)).first;
        taken.insert(found->second);
        hints[key] = symbol_hint(hints.size(), axis, shape.size());
      }
      options.symbols[input.name][axis] = found->second;
      shape[axis] = hints.at(key);
    }
    if (options.symbols.count(input.name) != 0) options.input_shapes[input.name] = shape;
  }
  return options;
}

}  // namespace tensormill::frontend::onnx
