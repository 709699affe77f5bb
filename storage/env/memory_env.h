/// A file system in memory that tells what was synced from what was not. "/" and "." are its root.
/// Thread-safety: as Env; one mutex inside.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/env/env.h"

namespace tensormill::storage {

/// What an operation does; those that change nothing are not numbered.
enum class Operation { kCreate, kWrite, kTruncate, kSync, kSyncFolder, kRename, kRemove, kMakeFolder };

class MemoryEnv : public Env {
public:
  MemoryEnv();
  ~MemoryEnv() override;
  std::unique_ptr<EnvFile> open(const std::string& path, OpenMode mode) override;
  bool exists(const std::string& path) override;
  uint64_t file_size(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool remove_file(const std::string& path) override;
  bool remove_folder(const std::string& path) override;
  std::vector<FolderEntry> list(const std::string& path) override;
  bool make_folder(const std::string& path) override;
  void sync_folder(const std::string& path) override;
  FileDescriptor open_descriptor(const std::string& path) override;
  FileDescriptor scratch_file(const std::string& folder) override;
  std::unique_ptr<EnvLock> lock(const std::string& path) override;

protected:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  /// A write (or, with `truncates`, a change of size to `offset`) since the last sync.
  struct PendingWrite {
    uint64_t offset = 0;
    std::string bytes;
    bool truncates = false;
  };
  /// A name that changed since the folder's last sync; no node: it went. Both names of one rename share a
  /// ticket.
  struct PendingEntry {
    NodePtr node;
    uint64_t ticket = 0;
  };
  struct Node {
    bool is_folder = false;
    std::string data;
    std::string durable_data;
    std::vector<PendingWrite> pending_writes;
    std::map<std::string, NodePtr> entries;
    std::map<std::string, NodePtr> durable_entries;
    std::map<std::string, PendingEntry> pending_entries;
  };
  class MemoryFile;

  /// Called with the mutex held before a changing operation; may throw. `pending`: what a sync is about to
  /// make durable, unsynced bytes or names. False: a sync that must not happen.
  virtual bool admit(Operation operation, const std::string& path, uint64_t pending);
  /// Called with the mutex held before a reading operation; may throw.
  virtual void admit_read(const std::string& path);

  std::mutex mutex_;
  NodePtr root_;
  std::set<std::string> locks_;

private:
  NodePtr find(std::string_view path) const;
  NodePtr find_folder_of(std::string_view path, std::string* name) const;
  NodePtr find_file(const std::string& path) const;
  void set_entry(Node& folder, const std::string& name, NodePtr node, uint64_t ticket);
  bool remove_node(const std::string& path, bool is_folder);

  uint64_t next_ticket_ = 1;
};

}  // namespace tensormill::storage
