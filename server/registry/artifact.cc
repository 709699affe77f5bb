#include "server/registry/artifact.h"

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::registry {
namespace {

constexpr const char* kTitle = "org.opencontainers.image.title";
constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kInvalidPackage, "the registry's manifest is none of a package or a model: " + why);
}

std::string config_type(const std::string& type) { return type + ".config+json"; }
std::string content_type(const std::string& type) {
  return type == kPackageType ? type + ".tar" : type + ".content";
}

Json descriptor(const std::string& type, const Digest& digest, uint64_t bytes) {
  return {{"mediaType", type}, {"digest", digest.text()}, {"size", bytes}};
}

std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) refuse(std::string(name) + " is no text");
  return found->get<std::string>();
}

void read_descriptor(const Json& object, const std::string& type, Digest& digest, uint64_t& bytes) {
  if (!object.is_object()) refuse("a descriptor is no object");
  if (text_at(object, "mediaType") != type) refuse("it has bytes of type " + text_at(object, "mediaType"));
  const std::optional<Digest> parsed = Digest::parse(text_at(object, "digest"));
  if (!parsed) refuse("a digest is no sha256");
  digest = *parsed;
  const auto size = object.find("size");
  if (size == object.end() || !size->is_number_unsigned() || size->get<uint64_t>() > kMaxBytes)
    refuse("a size is none");
  bytes = size->get<uint64_t>();
}

}  // namespace

std::string manifest_text(const Artifact& artifact) {
  Json layer = descriptor(content_type(artifact.type), artifact.content, artifact.content_bytes);
  layer["annotations"] = {{kTitle, artifact.file}};
  Json manifest = {{"schemaVersion", 2},
                   {"mediaType", kManifestType},
                   {"artifactType", artifact.type},
                   {"config", descriptor(config_type(artifact.type), artifact.config, artifact.config_bytes)},
                   {"layers", Json::array({layer})}};
  if (!artifact.annotations.empty()) manifest["annotations"] = artifact.annotations;
  return manifest.dump();
}

Artifact parse_manifest(const std::string& text) {
  const Json manifest = parse_json(text);
  if (!manifest.is_object()) refuse("it is no object");
  Artifact artifact;
  artifact.type = manifest.contains("artifactType") ? text_at(manifest, "artifactType") : "";
  if (artifact.type != kPackageType && artifact.type != kModelType)
    refuse("its artifactType is \"" + artifact.type + "\"");
  const auto layers = manifest.find("layers");
  if (!manifest.contains("config") || layers == manifest.end() || !layers->is_array() || layers->size() != 1)
    refuse("it has not one layer");
  read_descriptor(manifest["config"], config_type(artifact.type), artifact.config, artifact.config_bytes);
  const Json& layer = layers->front();
  read_descriptor(layer, content_type(artifact.type), artifact.content, artifact.content_bytes);
  if (layer.contains("annotations") && layer["annotations"].is_object() &&
      layer["annotations"].contains(kTitle))
    artifact.file = text_at(layer["annotations"], kTitle);
  // A stranger's text: it names no other folder.
  if (artifact.file.find('/') != std::string::npos || artifact.file.starts_with('.')) artifact.file.clear();
  return artifact;
}

}  // namespace tensormill::registry
