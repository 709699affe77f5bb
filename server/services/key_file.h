/// API keys in a file of lines `NAME SCOPE,SCOPE sha256:HEX CREATED`, "#" begins a comment. Keys are 256
/// random bits, shown once when they are made; the file has their SHA-256 alone, which needs no salt and no
/// stretching for secrets of that size. Thread-safety: KeyFile: all methods from many threads; the functions:
/// one process at a time changes a file.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/services/info_service.h"
#include "runtime/base/digest.h"

namespace tensormill::server {

struct KeyRow {
  std::string name;
  std::vector<std::string> scopes;  ///< of "infer", "read", "write", "admin"
  Digest hash;                      ///< of the key's text
  std::string created;              ///< RFC 3339, UTC
};

/// Throws Error(kUsage) naming file and line for what is malformed or twice there; Error(kNotFound),
/// Error(kIo).
std::vector<KeyRow> read_keys(const std::string& path);
/// Adds a key, making the file (readable by its owner alone) when there is none, and returns the key's text.
/// Throws Error(kUsage) for a bad name or scope, Error(kNameTaken).
std::string add_key(const std::string& path, const std::string& name, const std::vector<std::string>& scopes);
/// Throws Error(kNotFound).
void revoke_key(const std::string& path, const std::string& name);

/// The keys of a file that is read again when it changes. A file that has become unreadable or malformed lets
/// nobody in until it is sound again.
class KeyFile final : public services::KeyService {
public:
  /// Throws as read_keys.
  explicit KeyFile(std::string path);
  Key find(std::string_view token) override;
  size_t size();

private:
  /// What tells one state of the file from another.
  struct Stamp {
    int64_t seconds = 0, nanoseconds = 0;
    uint64_t inode = 0, size = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  void refresh();

  const std::string path_;
  std::mutex mutex_;
  Stamp read_;
  std::map<Digest, Key> keys_;
};

}  // namespace tensormill::server
