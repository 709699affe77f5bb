// API keys that were made over HTTP.
#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {

void SqlCatalog::put_key(const ApiKeyRow& key) {
  write([&](SqlDb& db) {
    const int64_t added = db.run(
        "INSERT INTO api_keys(name, scopes, hash, created_ms, expires_ms) VALUES(?, ?, ?, ?, ?) "
        "ON CONFLICT(name) DO NOTHING",
        key.name, key.scopes, key.hash, key.created_ms, key.expires_ms);
    if (added == 0) throw Error(ErrorCode::kNameTaken, "there is a key \"" + key.name + "\" already");
  });
  tell_others();
}

std::vector<ApiKeyRow> SqlCatalog::list_keys() {
  return read([&](SqlDb& db) -> std::vector<ApiKeyRow> {
    const auto row =
        db.query("SELECT name, scopes, hash, created_ms, expires_ms FROM api_keys ORDER BY name");
    std::vector<ApiKeyRow> keys;
    while (row->step())
      keys.push_back({row->text(0), row->text(1), row->digest(2), row->integer(3), row->integer(4)});
    return keys;
  });
}

bool SqlCatalog::remove_key(const std::string& name) {
  const bool removed =
      write([&](SqlDb& db) -> bool { return db.run("DELETE FROM api_keys WHERE name = ?", name) > 0; });
  if (removed) tell_others();
  return removed;
}

}  // namespace tensormill::storage
