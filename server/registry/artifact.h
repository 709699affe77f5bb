/// A file as an OCI artifact: an image manifest (v1.1) with an artifact type, a small configuration, and the
/// file's bytes as its one layer, so that a signed package is the same to the byte when it comes back.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/digest.h"

namespace tensormill::registry {

inline constexpr const char* kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr const char* kPackageType = "application/vnd.tensormill.package.v1";
inline constexpr const char* kModelType = "application/vnd.tensormill.model.v1";

struct Artifact {
  std::string type;  ///< kPackageType or kModelType
  std::string file;  ///< "digits.tar": what the file was called, and will be
  Digest content;
  uint64_t content_bytes = 0;
  Digest config;
  uint64_t config_bytes = 0;
  std::map<std::string, std::string> annotations;
};

/// Canonical JSON: the same artifact has the same digest.
std::string manifest_text(const Artifact& artifact);
/// Throws Error(kInvalidPackage) for what is no artifact that manifest_text makes.
Artifact parse_manifest(const std::string& text);

}  // namespace tensormill::registry
