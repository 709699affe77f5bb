/// API keys in a file of lines `NAME SCOPE,SCOPE sha256:HEX CREATED [EXPIRES]`, "#" begins a comment. Keys
/// are 256 random bits, shown once when they are made; the file has their SHA-256 alone, which needs no salt
/// and no stretching for secrets of that size. Scopes are those of api/http/scopes.h. Thread-safety: KeyFile:
/// all methods from many threads; the functions: many processes may change a file at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/services/key_service.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"

namespace tensormill::server {

struct KeyRow {
  std::string name;
  std::vector<std::string> scopes;
  Digest hash;                                      ///< of the key's text
  std::string created;                              ///< RFC 3339, UTC
  std::optional<services::Timestamp> expires = {};  ///< nothing: never
};

/// "infer,read:digits" -> its members; empty ones remain, and are no scopes.
std::vector<std::string> split_scopes(const std::string& text);
std::string join_scopes(const std::vector<std::string>& scopes);
/// A new key's text.
std::string random_key();

/// Throws Error(kUsage) naming file and line for what is malformed or twice there; Error(kNotFound),
/// Error(kIo).
std::vector<KeyRow> read_keys(const std::string& path);
/// Adds a key, making the file (readable by its owner alone) when there is none, and returns the key's text.
/// A file that is there keeps its owner and its mode. Throws Error(kUsage) for a bad name or scope,
/// Error(kNameTaken).
std::string add_key(const std::string& path, const std::string& name, const std::vector<std::string>& scopes,
                    std::optional<services::Timestamp> expires = std::nullopt);
/// Throws Error(kNotFound).
void revoke_key(const std::string& path, const std::string& name);

/// The keys of a file that is read again when it changes. A file that has become unreadable or malformed lets
/// nobody in until it is sound again.
class KeyFile {
public:
  /// Throws as read_keys.
  explicit KeyFile(std::string path);
  /// `tell` hears of each change: null when the file was read again, else why it lets nobody in. Called
  /// by whoever asks for a key, who must not wait long, and must not ask for one. Set before other calls.
  void on_change(std::function<void(const Error*)> tell) { tell_ = std::move(tell); }
  /// The row of a key's hash, also of one that has expired.
  std::optional<KeyRow> find(const Digest& hash);
  /// Sorted by name.
  std::vector<KeyRow> rows();

private:
  /// What tells one state of the file from another.
  struct Stamp {
    int64_t seconds = 0, nanoseconds = 0;
    /// Of owner and mode as well: with them a file becomes readable whose text stays as old as it was.
    int64_t change_seconds = 0, change_nanoseconds = 0;
    uint64_t inode = 0, size = 0;
    uint32_t mode = 0, owner = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  void refresh();

  const std::string path_;
  std::mutex mutex_;
  Stamp read_;
  std::function<void(const Error*)> tell_ = [](const Error*) {};
  std::map<Digest, KeyRow> keys_;
};

}  // namespace tensormill::server
