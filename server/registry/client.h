/// What `push` and `pull` ask of a registry, as the OCI distribution specification has it, over HTTP.
/// Every byte that comes is held against the digest of its request. Errors:
/// Error(kUnavailable) where it does not answer or answers 5xx, Error(kNotFound), Error(kUnauthorized),
/// Error(kDigestMismatch). Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/digest.h"
#include "server/registry/reference.h"

namespace tensormill::registry {

struct Login {
  std::string user;
  std::string password;
};

/// That of the host in the text of a Docker config.json ("auths"); empty where there is none. Throws
/// Error(kUsage) for what is no such file.
Login login_of(const std::string& config_json, const std::string& host);

class Client {
public:
  Client(const Reference& reference, Login login);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool has_blob(const Digest& digest);
  /// Nothing is sent where the registry has it.
  void put_blob(const Digest& digest, std::string_view bytes);
  /// Into the file at `path`, which goes where anything fails. Throws Error(kDigestMismatch) for other bytes,
  /// and as soon as there are more than `bytes`.
  void get_blob(const Digest& digest, uint64_t bytes, const std::string& path);
  void put_manifest(const std::string& version, const std::string& text);
  /// At most 4 MiB.
  std::string get_manifest(const std::string& version);

private:
  struct Http;
  /// Of a blob, at the registry's host.
  std::string address_of(const Digest& digest) const;

  const Reference reference_;
  const std::unique_ptr<Http> http_;
};

}  // namespace tensormill::registry
