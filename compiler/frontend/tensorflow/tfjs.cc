#include "compiler/frontend/tensorflow/tfjs.h"

#include <cmath>
#include <cstring>
#include <deque>

#include "compiler/frontend/tensorflow/graph_json.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr size_t kMostJsonBytes = size_t{64} << 20;
constexpr size_t kMostFiles = 10'000;

[[noreturn]] void wrong_files(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

Json parsed(std::string_view bytes) {
  if (bytes.size() > kMostJsonBytes)
    throw Error(ErrorCode::kTooLarge, "model.json has more than 64 MiB; weights lie in files beside it");
  try {
    return parse_json(bytes, 64);
  } catch (const Error& error) {
    wrong_files("model.json: " + error.message());
  }
}

/// A member of an object, which is of that kind.
const Json& member(const Json& json, const char* key, bool (Json::*is_kind)() const noexcept) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !((*found).*is_kind)())
    wrong_files("model.json: weightsManifest: \"" + std::string(key) + "\" is missing, or of another kind");
  return *found;
}

/// A file beside model.json, and nothing else.
std::string file_name(const Json& json) {
  if (!json.is_string()) wrong_files("model.json: weightsManifest: a path is no text");
  std::string name = json.get<std::string>();
  if (name.empty() || name.size() > 255 || name.find_first_of("/\\") != std::string::npos || name == "." ||
      name == ".." || name.find('\0') != std::string::npos)
    wrong_files("model.json: weightsManifest: \"" + name.substr(0, 255) +
                "\" is no name of a file beside it");
  return name;
}

/// How elements are kept: as they are, or as integers q of q * scale + min, or as halves.
struct Packing {
  std::string dtype;
  double scale = 1, min = 0;
  bool is_packed = false;
};

struct Element {
  DataType type;
  size_t bytes;
};
Element element_of(const std::string& dtype) {
  static const std::map<std::string, Element> kTypes = {
      {"float32", {DataType::kFloat, 4}}, {"int32", {DataType::kInt32, 4}},
      {"bool", {DataType::kBool, 1}},     {"uint8", {DataType::kUInt8, 1}},
      {"uint16", {DataType::kUInt16, 2}}, {"float16", {DataType::kHalf, 2}},
      {"int64", {DataType::kInt64, 8}}};
  const auto found = kTypes.find(dtype);
  if (found == kTypes.end())
    throw Error(ErrorCode::kNotSupported, "weights of type \"" + dtype.substr(0, 40) + "\"");
  return found->second;
}

class WeightsReader {
public:
  WeightsReader(const ModelFiles& files, std::deque<std::string>& made) : files_(files), made_(made) {}

  void read(const Json& manifest) {
    if (!manifest.is_array()) wrong_files("model.json: weightsManifest is no list");
    for (const Json& group : manifest) {
      bytes_ = group_bytes(member(group, "paths", &Json::is_array));
      at_ = 0;
      for (const Json& weight : member(group, "weights", &Json::is_array)) add(weight);
      if (at_ != bytes_.size())
        wrong_files("files of weights have " + std::to_string(bytes_.size() - at_) +
                    " bytes that no weight names");
    }
  }

  std::optional<TensorValue> find(const std::string& name) const {
    const auto found = weights_.find(name);
    if (found == weights_.end()) return std::nullopt;
    return found->second;
  }

private:
  /// A group's files are one row of bytes; one file alone is used where it lies.
  std::string_view group_bytes(const Json& paths) {
    std::vector<std::string_view> parts;
    for (const Json& path : paths) {
      const std::string name = file_name(path);
      const auto found = files_(name);
      if (!found) wrong_files("there is no file \"" + name + "\" of weights beside model.json");
      parts.push_back(*found);
    }
    if (parts.empty()) return {};
    if (parts.size() == 1) return parts.front();
    std::string& whole = made_.emplace_back();
    for (const std::string_view part : parts) whole += part;
    return whole;
  }

  void add(const Json& json) {
    const std::string name = member(json, "name", &Json::is_string).get<std::string>();
    try {
      if (!weights_.emplace(name, value(json)).second) wrong_files("stands twice");
    } catch (Error& error) {
      error.add_context("weight \"" + name.substr(0, 200) + "\"");
      throw;
    }
  }

  TensorValue value(const Json& json) {
    TensorValue to;
    uint64_t count = 1;
    for (const Json& extent : member(json, "shape", &Json::is_array)) {
      const bool is_extent = extent.is_number_integer() && extent >= 0;
      if (!is_extent || __builtin_mul_overflow(count, extent.get<uint64_t>(), &count))
        wrong_files("its shape is no list of extents");
      to.shape.dims.push_back(extent.get<int64_t>());
    }
    const std::string dtype = member(json, "dtype", &Json::is_string).get<std::string>();
    const Packing packing = packing_of(json, dtype);
    to.dtype = element_of(dtype).type;
    uint64_t size = element_of(packing.dtype).bytes;
    if (__builtin_mul_overflow(size, count, &size) || size > bytes_.size() - at_)
      wrong_files("the files of weights are too short for it");
    const std::string_view kept = bytes_.substr(at_, size);
    at_ += size;
    to.content = packing.is_packed ? unpacked(kept, packing, to.dtype, count) : kept;
    return to;
  }

  static Packing packing_of(const Json& json, const std::string& dtype) {
    const auto found = json.find("quantization");
    if (found == json.end() || found->is_null()) return {dtype};
    Packing to;
    to.dtype = member(*found, "dtype", &Json::is_string).get<std::string>();
    to.is_packed = true;
    if (to.dtype == "float16" && dtype == "float32") return to;
    const bool is_integer = to.dtype == "uint8" || to.dtype == "uint16";
    if (!is_integer || (dtype != "float32" && dtype != "int32"))
      throw Error(ErrorCode::kNotSupported,
                  "elements of " + dtype + " kept as \"" + to.dtype.substr(0, 40) + "\"");
    to.scale = member(*found, "scale", &Json::is_number).get<double>();
    to.min = member(*found, "min", &Json::is_number).get<double>();
    return to;
  }

  std::string_view unpacked(std::string_view kept, const Packing& packing, DataType type, uint64_t count) {
    std::string& to = made_.emplace_back(count * 4, '\0');
    for (uint64_t i = 0; i < count; ++i) {
      uint16_t bits = 0;
      const size_t width = packing.dtype == "uint8" ? 1 : 2;
      std::memcpy(&bits, kept.data() + i * width, width);
      if (packing.dtype == "float16") {
        put(to, i, half_to_float(bits));
        continue;
      }
      const double real = bits * packing.scale + packing.min;
      if (type == DataType::kFloat) {
        put(to, i, static_cast<float>(real));
      } else {
        if (!(std::abs(real) < 2147483647)) wrong_files("an element is no int32");
        put(to, i, static_cast<int32_t>(std::lround(real)));
      }
    }
    return to;
  }

  template <typename T>
  static void put(std::string& to, uint64_t index, T value) {
    std::memcpy(to.data() + index * sizeof(value), &value, sizeof(value));
  }

  const ModelFiles& files_;
  std::deque<std::string>& made_;
  std::string_view bytes_;
  size_t at_ = 0;
  std::map<std::string, TensorValue> weights_;
};

/// Where newer and older writers put it; null where neither did.
const Json* signature_in(const Json& json) {
  const auto found = json.find("signature");
  if (found != json.end() && found->is_object()) return &*found;
  const auto user = json.find("userDefinedMetadata");
  if (user == json.end() || !user->is_object()) return nullptr;
  const auto inner = user->find("signature");
  return inner == user->end() || !inner->is_object() ? nullptr : &*inner;
}

void add_signature(GraphJsonReader& reader, const Json& json, SavedModel& model) {
  const Json* said = signature_in(json);
  if (said == nullptr) return;
  Signature signature;
  const auto add = [&](const char* key, std::map<std::string, TensorInfo>& to) {
    const auto found = said->find(key);
    if (found == said->end() || !found->is_object()) return;
    for (const auto& [name, info] : found->items()) to.emplace(name, reader.tensor_info(info));
  };
  add("inputs", signature.inputs);
  add("outputs", signature.outputs);
  if (!signature.outputs.empty()) model.signatures.emplace("serving_default", std::move(signature));
}

}  // namespace

std::vector<std::string> tfjs_weight_files(std::string_view model_json) {
  const Json json = parsed(model_json);
  std::vector<std::string> names;
  for (const Json& group : member(json, "weightsManifest", &Json::is_array)) {
    for (const Json& path : member(group, "paths", &Json::is_array)) names.push_back(file_name(path));
    if (names.size() > kMostFiles) wrong_files("model.json: more than 10000 files of weights");
  }
  return names;
}

TfjsModel read_tfjs_model(const ModelFiles& files) {
  const auto bytes = files(kTfjsFile);
  if (!bytes) wrong_files("there is no file model.json");
  const Json json = parsed(*bytes);
  const auto made = std::make_shared<std::deque<std::string>>();
  WeightsReader weights(files, *made);
  weights.read(member(json, "weightsManifest", &Json::is_array));
  GraphJsonReader reader(*made, [&](const std::string& node) { return weights.find(node); });
  TfjsModel to;
  to.owner = made;
  try {
    to.model.graph = reader.graph(member(json, "modelTopology", &Json::is_object));
    add_signature(reader, json, to.model);
  } catch (Error& error) {
    error.add_context(kTfjsFile);
    throw;
  }
  const auto writer = json.find("generatedBy");
  if (writer != json.end() && writer->is_string() && is_utf8(writer->get<std::string>()))
    to.model.tensorflow_version = writer->get<std::string>().substr(0, 100);
  return to;
}

FileFacts facts_of(const TfjsModel& model) {
  FileFacts facts = facts_of(model.model.graph);
  facts.format = "tfjs-graph";
  facts.version = model.model.tensorflow_version + ", " + facts.version;
  return facts;
}

}  // namespace tensormill::frontend::tensorflow
