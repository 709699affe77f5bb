#include "compiler/frontend/importer/bind_inputs.h"

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend {

namespace {

void check_names(const ModelFacts& facts, const ImportOptions& options) {
  const auto check = [&](const char* option, const std::string& name) {
    const bool is_input = std::any_of(facts.inputs.begin(), facts.inputs.end(),
                                      [&](const SignatureValue& input) { return input.name == name; });
    if (!is_input)
      throw Error(ErrorCode::kInvalidArgument,
                  std::string(option) + " name \"" + name + "\", which is no input of the model");
  };
  for (const auto& [name, shape] : options.input_shapes) check("input_shapes", name);
  for (const auto& [name, value] : options.input_values) check("input_values", name);
  for (const auto& [name, elements] : options.input_elements) check("input_elements", name);
}

int64_t bound_extent(const SignatureValue& input, const DimShape* given, size_t axis) {
  const auto* own = std::get_if<int64_t>(&input.shape[axis]);
  const auto* wanted = given == nullptr ? nullptr : std::get_if<int64_t>(&(*given)[axis]);
  const bool is_fixed = own != nullptr && *own >= 0, is_given = wanted != nullptr && *wanted >= 0;
  if (is_fixed && is_given && *own != *wanted)
    throw Error(ErrorCode::kInvalidArgument, "input_shapes give \"" + input.name + "\" the extent " +
                                                 std::to_string(*wanted) + " in dim " + std::to_string(axis) +
                                                 ", the model has " + std::to_string(*own));
  if (is_fixed) return *own;
  if (is_given) return *wanted;
  throw Error(ErrorCode::kShapeRequired, "input \"" + input.name + "\" has shape " + to_string(input.shape) +
                                             ": dim " + std::to_string(axis) +
                                             " is free; bind it with input_shapes");
}

}  // namespace

BoundInputs bind_inputs(const ModelFacts& facts, const ImportOptions& options) {
  check_names(facts, options);
  BoundInputs bound;
  std::map<std::string, ir::SymInt> symbols;
  for (const SignatureValue& input : facts.inputs) {
    const auto given = options.input_shapes.find(input.name);
    const DimShape* shape = given == options.input_shapes.end() ? nullptr : &given->second;
    if (shape != nullptr && shape->size() != input.shape.size())
      throw Error(ErrorCode::kInvalidArgument, "input_shapes give \"" + input.name + "\" the rank " +
                                                   std::to_string(shape->size()) + ", the model has " +
                                                   std::to_string(input.shape.size()));
    ir::SymShape own;
    for (size_t axis = 0; axis < input.shape.size(); ++axis)
      own.emplace_back(bound_extent(input, shape, axis));
    if (const auto named = options.symbols.find(input.name); named != options.symbols.end()) {
      if (bound.symbols == nullptr) bound.symbols = std::make_shared<ir::SymbolTable>();
      for (const auto& [axis, name] : named->second) {
        auto known = symbols.find(name);
        if (known == symbols.end())
          known = symbols.emplace(name, bound.symbols->add(name, own[axis].hint())).first;
        own[axis] = known->second;
      }
    }
    bound.shapes.push_back(std::move(own));
  }
  if (options.form.has_symbols && bound.symbols == nullptr)
    bound.symbols = std::make_shared<ir::SymbolTable>();
  return bound;
}

namespace {

/// Shapes that the options give strings may say their width behind the extents that the model has: taken
/// from them, by input.
std::map<std::string, int64_t> take_widths(const ModelFacts& facts, ImportOptions& options) {
  std::map<std::string, int64_t> widths;
  for (const SignatureValue& input : facts.inputs) {
    if (input.dtype != kString) continue;
    int64_t& width = widths.emplace(input.name, kTextWidth).first->second;
    const auto given = options.input_shapes.find(input.name);
    if (given == options.input_shapes.end() || given->second.size() != input.shape.size() + 1) continue;
    const auto* wanted = std::get_if<int64_t>(&given->second.back());
    constexpr int64_t kMostBytes = int64_t{1} << 20;
    if (wanted == nullptr || *wanted < 1 || *wanted > kMostBytes)
      throw Error(ErrorCode::kInvalidArgument, "input_shapes give the strings of \"" + input.name +
                                                   "\" a width that is no number from 1 to " +
                                                   std::to_string(kMostBytes));
    width = *wanted;
    given->second.pop_back();
  }
  return widths;
}

}  // namespace

build::GraphRequest graph_request(const ModelFacts& facts, const ImportOptions& given) {
  ImportOptions options = given;
  const std::map<std::string, int64_t> widths = take_widths(facts, options);
  BoundInputs bound = bind_inputs(facts, options);
  for (size_t i = 0; i < facts.inputs.size(); ++i)
    if (const auto width = widths.find(facts.inputs[i].name); width != widths.end())
      bound.shapes[i].push_back(width->second);
  build::GraphRequest request;
  request.input_shapes = std::move(bound.shapes);
  request.symbols = std::move(bound.symbols);
  request.fixed_inputs = {options.input_values.begin(), options.input_values.end()};
  request.run_inputs = {options.run_values.begin(), options.run_values.end()};
  request.outputs = options.outputs;
  return request;
}

}  // namespace tensormill::frontend
