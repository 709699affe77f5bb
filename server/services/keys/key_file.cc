#include "server/services/keys/key_file.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "api/http/scopes.h"
#include "api/http/time.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/names.h"

namespace tensormill::server {

namespace {

constexpr std::string_view kPrefix = "tm_";
constexpr mode_t kPrivate = S_IRUSR | S_IWUSR;

void check_scopes(const std::vector<std::string>& scopes, const std::string& where) {
  if (scopes.empty()) throw Error(ErrorCode::kUsage, where + ": a key needs a scope");
  for (const std::string& scope : scopes) {
    const std::string problem = http::scope_problem(scope);
    if (!problem.empty()) throw Error(ErrorCode::kUsage, where + ": scope \"" + scope + "\" " + problem);
  }
}

std::string line_of(const KeyRow& row) {
  const std::string end = row.expires ? " " + http::format_timestamp(row.expires->ms) : "";
  return row.name + " " + join_scopes(row.scopes) + " " + row.hash.text() + " " + row.created + end + "\n";
}

/// Of several processes that change files of one folder only one does so at a time.
FileDescriptor lock_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  FileDescriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0) throw_errno(errno, "cannot lock " + folder);
  return lock;
}

/// Replaces the file at once. What an administrator has made of the owner and the mode stays: a server of
/// another user must still be able to read it.
void write_keys(const std::string& path, const std::vector<KeyRow>& rows) {
  std::string text = "# tensormill keys: NAME SCOPES HASH CREATED [EXPIRES]\n";
  for (const KeyRow& row : rows) text += line_of(row);
  struct stat old {};
  const bool is_there = ::stat(path.c_str(), &old) == 0;
  const std::string temporary = path + ".new";
  const FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivate));
  if (!file.valid()) throw_errno(errno, "cannot create " + temporary);
  const bool is_kept =
      !is_there || ((::fchown(file.get(), old.st_uid, old.st_gid) == 0 || old.st_uid == ::geteuid()) &&
                    ::fchmod(file.get(), old.st_mode & 07777) == 0);
  if (!is_kept) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    throw_errno(reason, "cannot give " + temporary + " the owner and the mode of " + path);
  }
  write_all(file.get(), text, temporary);
  if (::fsync(file.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    throw_errno(errno, "cannot write " + path);
}

KeyRow row_of(std::stringstream& fields, KeyRow row, const std::string& where) {
  std::string scopes, hash, end, more;
  if (!(fields >> scopes >> hash >> row.created) || (fields >> end && fields >> more))
    throw Error(ErrorCode::kUsage, where + ": expected NAME SCOPES HASH CREATED [EXPIRES]");
  row.scopes = split_scopes(scopes);
  check_scopes(row.scopes, where);
  const auto digest = Digest::parse(hash);
  if (!digest || !is_name(row.name)) throw Error(ErrorCode::kUsage, where + ": bad name or hash");
  row.hash = *digest;
  if (end.empty()) return row;
  const auto ms = http::parse_timestamp(end);
  if (!ms) throw Error(ErrorCode::kUsage, where + ": \"" + end + "\" is no time as 2026-01-31T12:00:00Z");
  row.expires = services::Timestamp{*ms};
  return row;
}

}  // namespace

std::vector<std::string> split_scopes(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::string join_scopes(const std::vector<std::string>& scopes) {
  std::string text;
  for (const std::string& scope : scopes) text += (text.empty() ? "" : ",") + scope;
  return text;
}

std::string random_key() {
  std::array<uint8_t, 32> bytes{};
  TM_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "no random bytes");
  return std::string(kPrefix) + Digest(bytes).hex();
}

std::vector<KeyRow> read_keys(const std::string& path) {
  std::vector<KeyRow> rows;
  std::stringstream text(read_file(path));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    const std::string where = path + ":" + std::to_string(++number);
    std::stringstream fields(line.substr(0, line.find('#')));
    KeyRow row;
    if (!(fields >> row.name)) continue;
    row = row_of(fields, std::move(row), where);
    for (const KeyRow& other : rows) {
      if (other.name == row.name)
        throw Error(ErrorCode::kUsage, where + ": key " + row.name + " is there twice");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string add_key(const std::string& path, const std::string& name, const std::vector<std::string>& scopes,
                    std::optional<services::Timestamp> expires) {
  // What callers without keys are called is none: it would own what they left.
  if (!is_name(name) || name == services::kLocalCaller)
    throw Error(ErrorCode::kUsage, "\"" + name + "\" is no name of a key");
  check_scopes(scopes, "key " + name);
  const FileDescriptor lock = lock_folder_of(path);
  std::vector<KeyRow> rows;
  if (std::filesystem::exists(path)) rows = read_keys(path);
  for (const KeyRow& row : rows) {
    if (row.name == name) throw Error(ErrorCode::kNameTaken, path + " has a key \"" + name + "\" already");
  }
  const std::string key = random_key();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  rows.push_back({name, scopes, Digest::of(key), http::format_timestamp(now_ms), expires});
  write_keys(path, rows);
  return key;
}

void revoke_key(const std::string& path, const std::string& name) {
  const FileDescriptor lock = lock_folder_of(path);
  std::vector<KeyRow> rows = read_keys(path);
  if (std::erase_if(rows, [&](const KeyRow& row) { return row.name == name; }) == 0) {
    throw Error(ErrorCode::kNotFound, path + " has no key \"" + name + "\"");
  }
  write_keys(path, rows);
}

KeyFile::KeyFile(std::string path) : path_(std::move(path)) {
  read_ = stamp();
  for (KeyRow& row : read_keys(path_)) keys_[row.hash] = std::move(row);
}

KeyFile::Stamp KeyFile::stamp() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec,  status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
          status.st_ctim.tv_nsec, status.st_ino,          static_cast<uint64_t>(status.st_size),
          status.st_mode,         status.st_uid};
}

void KeyFile::refresh() {
  const Stamp now = stamp();
  if (now == read_) return;
  read_ = now;
  keys_.clear();
  try {
    for (KeyRow& row : read_keys(path_)) keys_[row.hash] = std::move(row);
    tell_(nullptr);
  } catch (const Error& error) {
    // Nobody is let in by a file that cannot be understood.
    keys_.clear();
    tell_(&error);
  }
}

std::optional<KeyRow> KeyFile::find(const Digest& hash) {
  const std::lock_guard lock(mutex_);
  refresh();
  const auto key = keys_.find(hash);
  return key == keys_.end() ? std::nullopt : std::optional(key->second);
}

std::vector<KeyRow> KeyFile::rows() {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<KeyRow> rows;
  for (const auto& [hash, row] : keys_) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const KeyRow& a, const KeyRow& b) { return a.name < b.name; });
  return rows;
}

}  // namespace tensormill::server
