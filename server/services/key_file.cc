#include "server/services/key_file.h"

#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "api/http/time.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::server {

namespace {

constexpr std::array<std::string_view, 4> kScopes = {"infer", "read", "write", "admin"};
constexpr std::string_view kPrefix = "tm_";

bool is_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), fits);
}

void check_scopes(const std::vector<std::string>& scopes, const std::string& where) {
  if (scopes.empty()) throw Error(ErrorCode::kUsage, where + ": a key needs a scope");
  for (const std::string& scope : scopes) {
    if (std::find(kScopes.begin(), kScopes.end(), scope) != kScopes.end()) continue;
    throw Error(ErrorCode::kUsage,
                where + ": scope \"" + scope + "\" is not one of infer, read, write, admin");
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::string line_of(const KeyRow& row) {
  std::string scopes;
  for (const std::string& scope : row.scopes) scopes += (scopes.empty() ? "" : ",") + scope;
  return row.name + " " + scopes + " " + row.hash.text() + " " + row.created + "\n";
}

void write_keys(const std::string& path, const std::vector<KeyRow>& rows) {
  std::string text = "# tensormill keys: NAME SCOPES HASH CREATED\n";
  for (const KeyRow& row : rows) text += line_of(row);
  write_file(path, text);
  std::filesystem::permissions(path,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

std::string random_key() {
  std::array<uint8_t, 32> bytes{};
  TM_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "no random bytes");
  return std::string(kPrefix) + Digest(bytes).hex();
}

}  // namespace

std::vector<KeyRow> read_keys(const std::string& path) {
  std::vector<KeyRow> rows;
  std::stringstream text(read_file(path));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    const std::string where = path + ":" + std::to_string(++number);
    std::stringstream fields(line.substr(0, line.find('#')));
    KeyRow row;
    std::string scopes, hash, more;
    if (!(fields >> row.name)) continue;
    if (!(fields >> scopes >> hash >> row.created) || fields >> more) {
      throw Error(ErrorCode::kUsage, where + ": expected NAME SCOPES HASH CREATED");
    }
    row.scopes = split(scopes);
    check_scopes(row.scopes, where);
    const auto digest = Digest::parse(hash);
    if (!digest || !is_name(row.name)) throw Error(ErrorCode::kUsage, where + ": bad name or hash");
    row.hash = *digest;
    for (const KeyRow& other : rows) {
      if (other.name == row.name)
        throw Error(ErrorCode::kUsage, where + ": key " + row.name + " is there twice");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string add_key(const std::string& path, const std::string& name,
                    const std::vector<std::string>& scopes) {
  if (!is_name(name)) throw Error(ErrorCode::kUsage, "\"" + name + "\" is no name of a key");
  check_scopes(scopes, "key " + name);
  std::vector<KeyRow> rows;
  if (std::filesystem::exists(path)) rows = read_keys(path);
  for (const KeyRow& row : rows) {
    if (row.name == name) throw Error(ErrorCode::kNameTaken, path + " has a key \"" + name + "\" already");
  }
  const std::string key = random_key();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  rows.push_back({name, scopes, Digest::of(key), http::format_timestamp(now_ms)});
  write_keys(path, rows);
  return key;
}

void revoke_key(const std::string& path, const std::string& name) {
  std::vector<KeyRow> rows = read_keys(path);
  if (std::erase_if(rows, [&](const KeyRow& row) { return row.name == name; }) == 0) {
    throw Error(ErrorCode::kNotFound, path + " has no key \"" + name + "\"");
  }
  write_keys(path, rows);
}

KeyFile::KeyFile(std::string path) : path_(std::move(path)) {
  read_ = stamp();
  for (KeyRow& row : read_keys(path_)) keys_[row.hash] = {std::move(row.name), std::move(row.scopes)};
}

KeyFile::Stamp KeyFile::stamp() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino,
          static_cast<uint64_t>(status.st_size)};
}

void KeyFile::refresh() {
  const Stamp now = stamp();
  if (now == read_) return;
  read_ = now;
  keys_.clear();
  try {
    for (KeyRow& row : read_keys(path_)) keys_[row.hash] = {std::move(row.name), std::move(row.scopes)};
  } catch (const Error&) {
    // Nobody is let in by a file that cannot be understood.
    keys_.clear();
  }
}

services::KeyService::Key KeyFile::find(std::string_view token) {
  // The look-up is by the hash, so that its time tells nothing of the key.
  const Digest hash = Digest::of(token);
  const std::lock_guard lock(mutex_);
  refresh();
  const auto key = keys_.find(hash);
  return key == keys_.end() ? Key{} : key->second;
}

size_t KeyFile::size() {
  const std::lock_guard lock(mutex_);
  return keys_.size();
}

}  // namespace tensormill::server
