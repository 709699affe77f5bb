/// Names of artifacts in a registry: "registry.example.com:5000/team/digits:v1" or "…@sha256:…".
/// Thread-safety: values.
#pragma once

#include <string>
#include <string_view>

namespace tensormill::registry {

struct Reference {
  std::string host;        ///< "registry.example.com:5000"
  std::string repository;  ///< "team/digits"
  std::string version;     ///< a tag, or "sha256:…"; "latest" where none was given
  bool is_digest() const { return version.starts_with("sha256:"); }
  std::string text() const { return host + "/" + repository + (is_digest() ? "@" : ":") + version; }
};

/// Throws Error(kUsage) for what the OCI distribution specification does not take.
Reference parse_reference(std::string_view text);
/// "https://HOST", or http where the host is this machine.
std::string url_of(const Reference& reference);

}  // namespace tensormill::registry
