// API keys that were made over HTTP.
#include "runtime/base/error.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/catalog/sqlite_readers.h"

namespace tensormill::storage {

void SqliteCatalog::put_key(const ApiKeyRow& key) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const int64_t added = db_->run(
      "INSERT INTO api_keys(name, scopes, hash, created_ms, expires_ms) VALUES(?, ?, ?, ?, ?) "
      "ON CONFLICT(name) DO NOTHING",
      key.name, key.scopes, key.hash, key.created_ms, key.expires_ms);
  if (added == 0) throw Error(ErrorCode::kNameTaken, "there is a key \"" + key.name + "\" already");
  transaction.commit();
}

std::vector<ApiKeyRow> SqliteCatalog::list_keys() {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query("SELECT name, scopes, hash, created_ms, expires_ms FROM api_keys ORDER BY name");
  std::vector<ApiKeyRow> keys;
  while (row->step())
    keys.push_back({row->text(0), row->text(1), row->digest(2), row->integer(3), row->integer(4)});
  return keys;
}

bool SqliteCatalog::remove_key(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const bool removed = db_->run("DELETE FROM api_keys WHERE name = ?", name) > 0;
  transaction.commit();
  return removed;
}

}  // namespace tensormill::storage
