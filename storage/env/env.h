/// The file system as the store sees it: everything that makes bytes durable goes through here, so that tests
/// can cut the power after any operation. Paths are plain text with '/' between folders. Durability, as POSIX
/// promises it and no more: bytes survive a power cut once their file was synced; a name (created, renamed,
/// removed) survives once its folder was synced. Neither implies the other. Errors: Error(kNotFound) for an
/// absent path, Error(kDiskFull) for a full disk, Error(kIo) otherwise. Thread-safety: an Env may be used by
/// many threads; an EnvFile belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"

namespace tensormill::storage {

enum class OpenMode {
  kRead,       ///< the file must exist
  kWrite,      ///< read and write; the file must exist
  kCreate,     ///< read and write; created when absent
  kCreateNew,  ///< read and write; it is an error (kConflict) when the file exists
};

/// An open file with random access.
class EnvFile {
public:
  virtual ~EnvFile() = default;
  /// Number of bytes read: less than asked for at the end of the file only.
  virtual size_t read(uint64_t offset, std::span<std::byte> target) = 0;
  virtual void write(uint64_t offset, std::string_view bytes) = 0;
  virtual void truncate(uint64_t size) = 0;
  /// Makes the content (not the name) durable. After a failed sync the content is undefined: a caller must
  /// give the file up, never sync again and go on.
  virtual void sync() = 0;
  virtual uint64_t size() = 0;
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;
};

/// Held until destroyed or until the process dies.
class EnvLock {
public:
  virtual ~EnvLock() = default;
};

class Env {
public:
  virtual ~Env() = default;
  virtual std::unique_ptr<EnvFile> open(const std::string& path, OpenMode mode) = 0;
  virtual bool exists(const std::string& path) = 0;
  virtual uint64_t file_size(const std::string& path) = 0;
  /// Atomic; replaces `to` when that exists.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// False when there was no such file.
  virtual bool remove_file(const std::string& path) = 0;
  /// False when there was no such folder; the folder must be empty.
  virtual bool remove_folder(const std::string& path) = 0;
  /// Entries sorted by name, without "." and "..".
  virtual std::vector<FolderEntry> list(const std::string& path) = 0;
  /// True when it was created, false when it was there.
  virtual bool make_folder(const std::string& path) = 0;
  /// Makes the names in this folder durable.
  virtual void sync_folder(const std::string& path) = 0;
  /// A read-only descriptor of the file's bytes as they are now; good for MappedFile::map and for children.
  virtual FileDescriptor open_descriptor(const std::string& path) = 0;
  /// An empty file without a name, for reading and writing, on the same disk as `folder`; it goes with its
  /// last descriptor. Nothing of it is durable.
  virtual FileDescriptor scratch_file(const std::string& folder) = 0;
  /// Exclusive lock on `path`, which is created when absent. Throws Error(kInUse) when it is held.
  virtual std::unique_ptr<EnvLock> lock(const std::string& path) = 0;
};

/// Folder part of `path`: "a/b/c" -> "a/b", "/a" -> "/", "a" -> ".".
std::string parent_folder(std::string_view path);
/// make_folder of `path` and of all that it lies in, each made durable in its parent, also those that were
/// there.
void make_durable_folders(Env& env, const std::string& path);
/// Removes a folder and everything in it; nothing happens when it is absent.
void remove_tree(Env& env, const std::string& path);
/// The whole file through `env`.
std::string read_all(Env& env, const std::string& path);

}  // namespace tensormill::storage
