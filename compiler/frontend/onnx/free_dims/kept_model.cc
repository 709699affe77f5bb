#include "compiler/frontend/onnx/free_dims/kept_model.h"

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::onnx {

namespace {

DType dtype_from(const Json& json) {
  const std::optional<DType> dtype = dtype_from_name(json.get<std::string>());
  if (!dtype) throw Error(ErrorCode::kInvalidPackage, "mod.json: /model/options has an unknown dtype");
  return *dtype;
}

/// Values of a run that were fixed are few.
Json tensor_json(const Tensor& tensor) {
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  return {{"dtype", dtype_name(tensor.dtype())},
          {"shape", tensor.shape()},
          {"bytes", std::vector<uint8_t>(bytes, bytes + tensor.num_bytes())}};
}

Tensor tensor_from(const Json& json) {
  Tensor tensor(dtype_from(json.at("dtype")), json.at("shape").get<Shape>());
  const auto bytes = json.at("bytes").get<std::vector<uint8_t>>();
  if (bytes.size() != tensor.num_bytes())
    throw Error(ErrorCode::kInvalidPackage, "mod.json: /model/options has a value of another size");
  if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

Json options_json(const ImportOptions& options) {
  Json shapes = Json::object(), values = Json::object(), elements = Json::object();
  for (const auto& [name, shape] : options.input_shapes) shapes[name] = dims_to_json(shape);
  for (const auto& [name, value] : options.input_values) values[name] = tensor_json(value);
  for (const auto& [name, types] : options.input_elements) {
    Json& all = elements[name];
    if (!types) continue;
    all = Json::array();
    for (const ir::ValueType& type : *types)
      all.push_back({{"dtype", dtype_name(type.dtype)}, {"shape", Shape(type.shape)}});
  }
  return {{"input_shapes", std::move(shapes)},
          {"input_values", std::move(values)},
          {"input_elements", std::move(elements)},
          {"outputs", options.outputs}};
}

ImportOptions options_from(const Json& json) {
  ImportOptions options;
  for (const auto& [name, shape] : json.at("input_shapes").items())
    options.input_shapes[name] = dims_from_json(shape);
  for (const auto& [name, value] : json.at("input_values").items())
    options.input_values.insert_or_assign(name, tensor_from(value));
  for (const auto& [name, types] : json.at("input_elements").items()) {
    std::optional<std::vector<ir::ValueType>>& all = options.input_elements[name];
    if (types.is_null()) continue;
    all.emplace();
    for (const Json& type : types)
      all->push_back({dtype_from(type.at("dtype")), type.at("shape").get<Shape>()});
  }
  json.at("outputs").get_to(options.outputs);
  return options;
}

std::pair<std::string, Tensor> kept_file(const std::string& name,
                                         const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  // Tensors have no const data pointer; what is kept is only read.
  return {name, Tensor(DType::kUInt8, {static_cast<int64_t>(bytes.size())},
                       std::const_pointer_cast<MappedFile>(file), const_cast<std::byte*>(bytes.data()))};
}

}  // namespace

ir::KeptModel keep_model(const ModelSource& source, const ImportOptions& options, bool stacks_elements) {
  ir::KeptModel kept;
  kept.files.push_back(kept_file("", source.model));
  for (const auto& [name, file] : source.external) kept.files.push_back(kept_file(name, file));
  Json json = options_json(options);
  // Random constants follow from it.
  json["digest"] = source.digest.text();
  json["stacks_elements"] = stacks_elements;
  kept.options = canonical_json(json);
  return kept;
}

KeptOptions parse_kept_options(const std::string& text) {
  KeptOptions kept;
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidPackage, "mod.json: /model: " + what);
  };
  try {
    const Json json = parse_json(text);
    kept.options = options_from(json);
    json.at("stacks_elements").get_to(kept.stacks_elements);
    const auto digest = Digest::parse(json.at("digest").get<std::string>());
    if (!digest) fail("the digest is none");
    kept.digest = *digest;
  } catch (const Json::exception& error) {
    fail(error.what());
  }
  return kept;
}

}  // namespace tensormill::frontend::onnx
