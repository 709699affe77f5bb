/// API keys of the key file, with which a server begins, and those that were made over HTTP, which are in the
/// catalog. Both let in. Thread-safety: all methods from many threads.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/services/keys/key_file.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

class KeyStore final : public services::KeyService {
public:
  /// `now_ms` is the clock of expiry. Throws as read_keys.
  KeyStore(std::string file, storage::Catalog& catalog, std::function<int64_t()> now_ms);
  /// As KeyFile::on_change.
  void on_file_change(std::function<void(const Error*)> tell) { file_.on_change(std::move(tell)); }
  Key find(std::string_view token) override;
  services::Page<services::KeyInfo> list(const services::PageQuery& page) override;
  services::KeyInfo get(const std::string& name) override;
  services::CreatedKey create(const services::NewKey& key) override;
  void revoke(const std::string& name) override;
  /// Reads the catalog's keys again, which another process may have changed.
  void refresh();

private:
  std::vector<services::KeyInfo> all();
  std::optional<KeyRow> find_row(const Digest& hash);

  KeyFile file_;
  storage::Catalog& catalog_;
  const std::function<int64_t()> now_ms_;
  std::mutex mutex_;
  std::map<Digest, KeyRow> kept_;  ///< the catalog's, as they were when they were last read
  std::mutex changing_;            ///< held while they are read, made or revoked; before mutex_
};

}  // namespace tensormill::server
