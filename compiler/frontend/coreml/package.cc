// The files of a model: where they are in a package, and the blobs of its weight files.
#include <algorithm>
#include <cstring>

#include "compiler/frontend/coreml/model.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::coreml {

namespace {

constexpr size_t kMostManifestBytes = size_t{4} << 20;
constexpr const char* kDataFolder = "Data/";
constexpr std::string_view kModelFolder = "@model_path/";
constexpr uint64_t kBlobMetadataBytes = 64;
constexpr uint32_t kBlobSentinel = 0xDEADBEEF;

[[noreturn]] void wrong_manifest(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "Manifest.json: " + what);
}

const Json& member_of(const Json& json, const std::string& key) {
  if (!json.is_object() || !json.contains(key)) wrong_manifest("it has no \"" + key.substr(0, 200) + "\"");
  return json.at(key);
}

std::string text_of(const Json& json, const std::string& key) {
  const Json& found = member_of(json, key);
  if (!found.is_string()) wrong_manifest("\"" + key + "\" is no text");
  return found.get<std::string>();
}

/// A name below the folder, of plain parts.
bool is_plain_path(std::string_view path) {
  if (path.empty() || path.size() > 4096 || path.find('\0') != std::string_view::npos ||
      path.find('\\') != std::string_view::npos)
    return false;
  while (true) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

struct BlobRow {
  DataType type;
  uint32_t number;
};
constexpr BlobRow kBlobs[] = {
#define COREML_TYPE(enumerator, own, blob, name, bits, dtype) {DataType::enumerator, blob},
#include "compiler/frontend/coreml/data_types.def"
#undef COREML_TYPE
};

DataType type_of_blob(uint32_t number) {
  for (const BlobRow& row : kBlobs)
    if (row.number == number && number != 0) return row.type;
  return DataType::kUnused;
}

void add_weight_files(const Value& value, std::set<std::string>& names) {
  if (const auto* blob = std::get_if<BlobRef>(&value.data)) names.insert(weight_file(*blob));
  if (const auto* list = std::get_if<std::vector<Value>>(&value.data))
    for (const Value& each : *list) add_weight_files(each, names);
}

void add_weight_files(const Block& block, std::set<std::string>& names) {
  for (const Operation& node : block.operations) {
    for (const auto& [name, value] : node.attributes) add_weight_files(value, names);
    for (const auto& [name, bindings] : node.inputs)
      for (const Binding& binding : bindings)
        if (binding.value != nullptr) add_weight_files(*binding.value, names);
    for (const Block& inner : node.blocks) add_weight_files(inner, names);
  }
}

template <typename T>
T read_at(std::string_view file, uint64_t offset) {
  T value = 0;
  std::memcpy(&value, file.data() + offset, sizeof(value));
  return value;
}

}  // namespace

std::string model_path(std::string_view manifest) {
  if (manifest.size() > kMostManifestBytes) wrong_manifest("it has more than 4 MiB");
  Json json;
  try {
    json = parse_json(manifest, 64);
  } catch (const Error& error) {
    wrong_manifest(error.message());
  }
  const std::string root = text_of(json, "rootModelIdentifier");
  const std::string path = text_of(member_of(member_of(json, "itemInfoEntries"), root), "path");
  if (!is_plain_path(path)) wrong_manifest("\"" + path.substr(0, 200) + "\" is no path in the package");
  return kDataFolder + path;
}

Package open_package(const ModelFiles& files) {
  const std::optional<std::string_view> manifest = files(kManifest);
  if (!manifest) throw Error(ErrorCode::kInvalidModel, "the package has no Manifest.json");
  const std::string path = model_path(*manifest);
  const std::optional<std::string_view> model = files(path);
  if (!model)
    throw Error(ErrorCode::kInvalidModel,
                "the package has no \"" + path.substr(0, 200) + "\", which Manifest.json names");
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  return {*model, [files, folder](const std::string& name) { return files(folder + name); }};
}

std::string weight_file(const BlobRef& blob) {
  const bool is_inside =
      blob.file.starts_with(kModelFolder) && is_plain_path(blob.file.substr(kModelFolder.size()));
  if (!is_inside)
    throw Error(ErrorCode::kInvalidModel, "weights lie in \"" + std::string(blob.file.substr(0, 200)) +
                                              "\", which is not in the model");
  return std::string(blob.file.substr(kModelFolder.size()));
}

std::set<std::string> weight_files(const Model& model) {
  std::set<std::string> names;
  for (const Function& function : model.functions) add_weight_files(function.block, names);
  return names;
}

uint64_t packed_bytes(DataType type, uint64_t elements) {
  const auto bits = static_cast<uint64_t>(type_bits(type));
  uint64_t all = 0;
  if (__builtin_mul_overflow(elements, bits, &all) || all > UINT64_MAX - 7)
    throw Error(ErrorCode::kInvalidModel, "a constant of " + std::to_string(elements) + " elements");
  return (all + 7) / 8;
}

Blob read_blob(std::string_view file, uint64_t offset) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidModel, "at byte " + std::to_string(offset) + ": " + what);
  };
  if (file.size() < kBlobMetadataBytes || read_at<uint32_t>(file, 4) != 2)
    fail("no weight file of version 2");
  if (offset > file.size() || file.size() - offset < kBlobMetadataBytes)
    fail("the blob is outside of the file");
  if (read_at<uint32_t>(file, offset) != kBlobSentinel) fail("no blob begins here");
  const uint64_t size = read_at<uint64_t>(file, offset + 8), begin = read_at<uint64_t>(file, offset + 16);
  if (begin > file.size() || size > file.size() - begin)
    fail("the blob's " + std::to_string(size) + " bytes from " + std::to_string(begin) +
         " on are outside of the file");
  const DataType type = type_of_blob(read_at<uint32_t>(file, offset + 4));
  if (type == DataType::kUnused) fail("the blob's type is not known");
  return {type, file.substr(begin, size)};
}

}  // namespace tensormill::frontend::coreml
