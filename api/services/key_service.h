/// API keys: who may do what.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/services/common.h"

namespace tensormill::services {

struct KeyInfo {
  std::string name;
  std::vector<std::string> scopes;  ///< as api/http/scopes.h has them
  bool is_of_file = false;          ///< of the key file, which is not changed here
  std::string created_at;           ///< RFC 3339, as the file has it
  std::optional<Timestamp> expires_at;
};

struct NewKey {
  std::string name;
  std::vector<std::string> scopes;
  std::optional<Timestamp> expires_at;
};

struct CreatedKey {
  KeyInfo info;
  std::string key;  ///< what a client sends; nothing keeps it
};

/// Absent (null in Services) while the server listens on loopback alone and no keys file is configured: then
/// every caller has every scope. Thread-safety: all methods from many threads.
class KeyService {
public:
  struct Key {
    std::string name;
    std::vector<std::string> scopes;
    bool is_expired = false;
  };
  virtual ~KeyService() = default;
  /// The key behind a bearer token; a Key with an empty name when there is none.
  virtual Key find(std::string_view token) = 0;
  /// By name.
  virtual Page<KeyInfo> list(const PageQuery& page) = 0;
  /// Throws Error(kNotFound).
  virtual KeyInfo get(const std::string& name) = 0;
  /// The name and scopes are valid, checked by api/. Throws Error(kNameTaken), Error(kInvalidArgument) for an
  /// end that has passed.
  virtual CreatedKey create(const NewKey& key) = 0;
  /// Its next request is refused. Throws Error(kNotFound), Error(kConflict) for a key of the file.
  virtual void revoke(const std::string& name) = 0;
};

}  // namespace tensormill::services
