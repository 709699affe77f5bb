#include "compiler/frontend/wire/tfjs_weights.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::wire {

namespace {

constexpr size_t kMostJsonBytes = size_t{64} << 20;
constexpr size_t kMostFiles = 10'000;

[[noreturn]] void wrong_files(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

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

DType dtype_named(const std::string& name) {
  if (const std::optional<DType> dtype = dtype_from_long_name(name)) return *dtype;
  throw Error(ErrorCode::kNotSupported, "weights of type \"" + name.substr(0, 40) + "\"");
}

/// How elements are kept: as they are, or as integers q of q * scale + min, or as halves.
struct Packing {
  DType dtype = DType::kFloat32;
  double scale = 1, min = 0;
  bool is_packed = false;
};

Packing packing_of(const Json& json, DType dtype) {
  const auto found = json.find("quantization");
  if (found == json.end() || found->is_null()) return {dtype};
  Packing to;
  to.dtype = dtype_named(tfjs_member(*found, "dtype", &Json::is_string).get<std::string>());
  to.is_packed = true;
  if (to.dtype == DType::kFloat16 && dtype == DType::kFloat32) return to;
  const bool is_integer = to.dtype == DType::kUInt8 || to.dtype == DType::kUInt16;
  if (!is_integer || (dtype != DType::kFloat32 && dtype != DType::kInt32))
    throw Error(ErrorCode::kNotSupported, "elements of " + std::string(dtype_long_name(dtype)) + " kept as " +
                                              std::string(dtype_long_name(to.dtype)));
  to.scale = tfjs_member(*found, "scale", &Json::is_number).get<double>();
  to.min = tfjs_member(*found, "min", &Json::is_number).get<double>();
  return to;
}

template <typename T>
void put(std::string& to, uint64_t index, T value) {
  std::memcpy(to.data() + index * sizeof(value), &value, sizeof(value));
}

std::string unpacked(std::string_view kept, const Packing& packing, DType type, uint64_t count) {
  std::string to(count * 4, '\0');
  const size_t width = dtype_bytes(packing.dtype);
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, kept.data() + i * width, width);
    if (packing.dtype == DType::kFloat16) {
      put(to, i, half_to_float(bits));
      continue;
    }
    const double real = bits * packing.scale + packing.min;
    if (type == DType::kFloat32) {
      put(to, i, static_cast<float>(real));
    } else {
      if (!(std::abs(real) < 2147483647)) wrong_files("an element is no int32");
      put(to, i, static_cast<int32_t>(std::lround(real)));
    }
  }
  return to;
}

}  // namespace

TfjsWeights::TfjsWeights(const ModelFiles& files, const Json& json) {
  for (const Json& group : tfjs_member(json, "weightsManifest", &Json::is_array)) {
    bytes_ = group_bytes(files, tfjs_member(group, "paths", &Json::is_array));
    at_ = 0;
    for (const Json& weight : tfjs_member(group, "weights", &Json::is_array)) add(weight);
    if (at_ != bytes_.size())
      wrong_files("files of weights have " + std::to_string(bytes_.size() - at_) +
                  " bytes that no weight names");
  }
}

const TfjsWeight* TfjsWeights::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &weights_[found->second];
}

/// A group's files are one row of bytes; one file alone is used where it lies.
std::string_view TfjsWeights::group_bytes(const ModelFiles& files, const Json& paths) {
  std::vector<std::string_view> parts;
  for (const Json& path : paths) {
    const std::string name = file_name(path);
    const auto found = files(name);
    if (!found) wrong_files("there is no file \"" + name + "\" of weights beside model.json");
    parts.push_back(*found);
  }
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts.front();
  std::string& whole = made_.emplace_back();
  for (const std::string_view part : parts) whole += part;
  return whole;
}

void TfjsWeights::add(const Json& json) {
  TfjsWeight to;
  to.name = tfjs_member(json, "name", &Json::is_string).get<std::string>();
  try {
    uint64_t count = 1;
    for (const Json& extent : tfjs_member(json, "shape", &Json::is_array)) {
      const bool is_extent = extent.is_number_integer() && extent >= 0;
      if (!is_extent || __builtin_mul_overflow(count, extent.get<uint64_t>(), &count))
        wrong_files("its shape is no list of extents");
      to.shape.push_back(extent.get<int64_t>());
    }
    to.dtype = dtype_named(tfjs_member(json, "dtype", &Json::is_string).get<std::string>());
    const Packing packing = packing_of(json, to.dtype);
    uint64_t size = dtype_bytes(packing.dtype);
    if (__builtin_mul_overflow(size, count, &size) || size > bytes_.size() - at_)
      wrong_files("the files of weights are too short for it");
    to.bytes = bytes_.substr(at_, size);
    at_ += size;
    if (packing.is_packed) to.bytes = made_.emplace_back(unpacked(to.bytes, packing, to.dtype, count));
    if (!by_name_.emplace(to.name, weights_.size()).second) wrong_files("stands twice");
  } catch (Error& error) {
    error.add_context("weight \"" + to.name.substr(0, 200) + "\"");
    throw;
  }
  weights_.push_back(std::move(to));
}

Json read_tfjs_json(std::string_view bytes) {
  if (bytes.size() > kMostJsonBytes)
    throw Error(ErrorCode::kTooLarge, "model.json has more than 64 MiB; weights lie in files beside it");
  try {
    return parse_json(bytes, 128);
  } catch (const Error& error) {
    wrong_files("model.json: " + error.message());
  }
}

const Json& tfjs_member(const Json& json, const char* key, bool (Json::*is_kind)() const noexcept) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !((*found).*is_kind)())
    wrong_files("model.json: \"" + std::string(key) + "\" is missing, or of another kind");
  return *found;
}

std::vector<std::string> tfjs_weight_files(const Json& json) {
  std::vector<std::string> names;
  for (const Json& group : tfjs_member(json, "weightsManifest", &Json::is_array)) {
    for (const Json& path : tfjs_member(group, "paths", &Json::is_array)) names.push_back(file_name(path));
    if (names.size() > kMostFiles) wrong_files("model.json: more than 10000 files of weights");
  }
  return names;
}

}  // namespace tensormill::frontend::wire
