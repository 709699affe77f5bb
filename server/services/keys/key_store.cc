#include "server/services/keys/key_store.h"

#include <algorithm>
#include <utility>

#include "api/http/time.h"
#include "runtime/base/error.h"

namespace tensormill::server {

namespace {

services::KeyInfo info_of(const KeyRow& row, bool is_of_file) {
  return {row.name, row.scopes, is_of_file, row.created, row.expires};
}

KeyRow row_of(const storage::ApiKeyRow& row) {
  KeyRow key{row.name, split_scopes(row.scopes), row.hash, http::format_timestamp(row.created_ms)};
  if (row.expires_ms != 0) key.expires = services::Timestamp{row.expires_ms};
  return key;
}

}  // namespace

KeyStore::KeyStore(std::string file, storage::Catalog& catalog, std::function<int64_t()> now_ms)
    : file_(std::move(file)), catalog_(catalog), now_ms_(std::move(now_ms)) {
  for (const storage::ApiKeyRow& row : catalog_.list_keys()) kept_[row.hash] = row_of(row);
}

std::optional<KeyRow> KeyStore::find_row(const Digest& hash) {
  if (auto row = file_.find(hash)) return row;
  const std::lock_guard lock(mutex_);
  const auto kept = kept_.find(hash);
  return kept == kept_.end() ? std::nullopt : std::optional(kept->second);
}

services::KeyService::Key KeyStore::find(std::string_view token) {
  // The look-up is by the hash, so that its time tells nothing of the key.
  const std::optional<KeyRow> row = find_row(Digest::of(token));
  if (!row) return {};
  return {row->name, row->scopes, row->expires && row->expires->ms <= now_ms_()};
}

std::vector<services::KeyInfo> KeyStore::all() {
  std::vector<services::KeyInfo> keys;
  for (const KeyRow& row : file_.rows()) keys.push_back(info_of(row, true));
  const std::lock_guard lock(mutex_);
  for (const auto& [hash, row] : kept_) keys.push_back(info_of(row, false));
  std::stable_sort(keys.begin(), keys.end(),
                   [](const services::KeyInfo& a, const services::KeyInfo& b) { return a.name < b.name; });
  return keys;
}

services::Page<services::KeyInfo> KeyStore::list(const services::PageQuery& page) {
  services::Page<services::KeyInfo> result;
  for (services::KeyInfo& key : all()) {
    if (key.name <= page.cursor) continue;
    // A name that the file and the catalog have does not fall apart between pages.
    if (static_cast<int>(result.items.size()) >= page.limit && key.name != result.items.back().name) {
      result.next_cursor = result.items.back().name;
      break;
    }
    result.items.push_back(std::move(key));
  }
  return result;
}

services::KeyInfo KeyStore::get(const std::string& name) {
  for (services::KeyInfo& key : all()) {
    if (key.name == name) return std::move(key);
  }
  throw Error(ErrorCode::kNotFound, "there is no key \"" + name + "\"");
}

services::CreatedKey KeyStore::create(const services::NewKey& key) {
  const int64_t now = now_ms_();
  if (key.expires_at && key.expires_at->ms <= now) {
    throw Error(ErrorCode::kInvalidArgument,
                "expires_at is " + http::format_timestamp(key.expires_at->ms) + ", which has passed",
                {{"/expires_at", "has passed"}});
  }
  for (const KeyRow& row : file_.rows()) {
    if (row.name == key.name)
      throw Error(ErrorCode::kNameTaken, "the key file has a key \"" + key.name + "\" already");
  }
  const std::string text = random_key();
  const storage::ApiKeyRow row = {key.name, join_scopes(key.scopes), Digest::of(text), now,
                                  key.expires_at ? key.expires_at->ms : 0};
  const std::lock_guard changing(changing_);
  catalog_.put_key(row);
  const std::lock_guard lock(mutex_);
  kept_[row.hash] = row_of(row);
  return {info_of(kept_[row.hash], false), text};
}

void KeyStore::refresh() {
  const std::lock_guard changing(changing_);
  std::map<Digest, KeyRow> rows;
  try {
    for (const storage::ApiKeyRow& row : catalog_.list_keys()) rows[row.hash] = row_of(row);
  } catch (const Error&) {
    // The catalog cannot be read just now: what was known stays.
    return;
  }
  const std::lock_guard lock(mutex_);
  kept_ = std::move(rows);
}

void KeyStore::revoke(const std::string& name) {
  const std::lock_guard changing(changing_);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(kept_, [&](const auto& key) { return key.second.name == name; });
  }
  if (catalog_.remove_key(name)) return;
  for (const KeyRow& row : file_.rows()) {
    if (row.name == name)
      throw Error(ErrorCode::kConflict,
                  "key \"" + name + "\" is of the key file; `tensormill keys revoke` takes it out");
  }
  throw Error(ErrorCode::kNotFound, "there is no key \"" + name + "\"");
}

}  // namespace tensormill::server
