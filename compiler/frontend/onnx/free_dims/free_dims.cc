#include "compiler/frontend/onnx/free_dims/free_dims.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

const std::string* name_at(const DimShape& shape, size_t dim) {
  return dim < shape.size() ? std::get_if<std::string>(&shape[dim]) : nullptr;
}

}  // namespace

Signature::Signature(const ModelFacts& facts, const ImportOptions& options, const ShapeBuckets& buckets) {
  for (const SignatureValue& input : facts.inputs) learn_names(input, options);
  for (const SignatureValue& input : facts.inputs) {
    if (input.kind == ValueKind::kTensor && options.input_values.count(input.name) == 0)
      add_input(input, options, buckets);
  }
  for (const auto& [name, extents] : buckets) {
    if (std::find(free_dims.begin(), free_dims.end(), name) == free_dims.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "shape_buckets name \"" + name + "\", which is no free dim of the model's inputs",
                  {{(Json::json_pointer("/shape_buckets") / name).to_string(), "is no free dim"}});
    }
  }
}

/// A name given at one place of a model's own name goes for all of them.
void Signature::learn_names(const SignatureValue& input, const ImportOptions& options) {
  for (size_t d = 0; d < input.shape.size(); ++d) {
    const std::string* own = name_at(input.shape, d);
    if (own != nullptr && !own->empty()) own_names_.insert(*own);
  }
  const auto given = options.input_shapes.find(input.name);
  if (given == options.input_shapes.end()) return;
  for (size_t d = 0; d < given->second.size(); ++d) {
    const std::string* name = name_at(given->second, d);
    const std::string* own = name_at(input.shape, d);
    if (name != nullptr && !name->empty() && own != nullptr && !own->empty()) renamed_.emplace(*own, *name);
    if (name == nullptr && own != nullptr && !own->empty()) fixed_.insert(*own);
  }
}

std::string Signature::free_name(const SignatureValue& input, const DimShape* given, size_t d,
                                 const ShapeBuckets& buckets) {
  if (given != nullptr && d < given->size()) {
    const std::string* name = name_at(*given, d);
    if (name == nullptr || !name->empty()) return name == nullptr ? std::string() : *name;
  }
  const std::string* own = name_at(input.shape, d);
  if (own == nullptr || fixed_.count(*own) != 0) return {};
  if (const auto renamed = renamed_.find(*own); renamed != renamed_.end()) return renamed->second;
  const std::string name = own->empty() ? made_name(input.name, d) : *own;
  if (buckets.count(name) == 0) assumed.emplace(name, input.name);
  return name;
}

/// Of a dim that has none: letters, digits and underscores of its input's, and its axis.
std::string Signature::made_name(const std::string& input, size_t d) const {
  std::string name;
  for (const char c : input) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  name += "_" + std::to_string(d);
  while (own_names_.count(name) != 0) name += "_";
  return name;
}

void Signature::add_input(const SignatureValue& input, const ImportOptions& options,
                          const ShapeBuckets& buckets) {
  const auto given = options.input_shapes.find(input.name);
  const DimShape* wanted = given == options.input_shapes.end() ? nullptr : &given->second;
  DimShape shape = wanted != nullptr ? *wanted : input.shape;
  if (input.dtype == kString && shape.size() > input.shape.size() &&
      name_at(shape, shape.size() - 1) != nullptr)
    throw Error(ErrorCode::kInvalidArgument,
                "input_shapes give the strings of \"" + input.name + "\" a width that is no number");
  bool any = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::string name = free_name(input, wanted, d, buckets);
    if (name.empty()) continue;
    any = true;
    shape[d] = name;
    if (std::find(free_dims.begin(), free_dims.end(), name) == free_dims.end()) free_dims.push_back(name);
  }
  if (any) shapes[input.name] = std::move(shape);
}

ImportOptions bound(const ImportOptions& options, const Signature& signature,
                    const std::vector<int64_t>& dims) {
  ImportOptions result = options;
  for (const auto& [input, shape] : signature.shapes) {
    DimShape& target = result.input_shapes[input];
    target = shape;
    for (size_t axis = 0; axis < target.size(); ++axis) {
      const std::string* name = std::get_if<std::string>(&target[axis]);
      if (name == nullptr) continue;
      const auto found = std::find(signature.free_dims.begin(), signature.free_dims.end(), *name);
      if (found == signature.free_dims.end()) continue;
      target[axis] = dims[static_cast<size_t>(found - signature.free_dims.begin())];
    }
  }
  return result;
}

}  // namespace tensormill::frontend::onnx
