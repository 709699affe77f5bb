#include "storage/env/memory_env.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {

class MemoryEnv::MemoryFile final : public EnvFile {
public:
  MemoryFile(MemoryEnv& env, NodePtr node, std::string path, bool writable)
      : env_(env), node_(std::move(node)), path_(std::move(path)), writable_(writable) {}

  size_t read(uint64_t offset, std::span<std::byte> target) override {
    const std::lock_guard lock(env_.mutex_);
    env_.admit_read(path_);
    if (offset >= node_->data.size()) return 0;
    const size_t count = std::min<size_t>(target.size(), node_->data.size() - offset);
    if (count != 0) std::memcpy(target.data(), node_->data.data() + offset, count);
    return count;
  }

  void write(uint64_t offset, std::string_view bytes) override {
    const std::lock_guard lock(env_.mutex_);
    require_writable();
    env_.admit(Operation::kWrite, path_, 0);
    if (node_->data.size() < offset + bytes.size()) node_->data.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), node_->data.begin() + static_cast<std::ptrdiff_t>(offset));
    node_->pending_writes.push_back({offset, std::string(bytes), false});
  }

  void truncate(uint64_t size) override {
    const std::lock_guard lock(env_.mutex_);
    require_writable();
    env_.admit(Operation::kTruncate, path_, 0);
    node_->data.resize(size);
    node_->pending_writes.push_back({size, {}, true});
  }

  void sync() override {
    const std::lock_guard lock(env_.mutex_);
    uint64_t pending = 0;
    for (const PendingWrite& write : node_->pending_writes)
      pending += write.truncates ? 1 : write.bytes.size();
    if (!env_.admit(Operation::kSync, path_, pending)) return;
    node_->durable_data = node_->data;
    node_->pending_writes.clear();
  }

  uint64_t size() override {
    const std::lock_guard lock(env_.mutex_);
    env_.admit_read(path_);
    return node_->data.size();
  }

private:
  void require_writable() const { TM_CHECK(writable_, path_ + " was opened for reading"); }

  MemoryEnv& env_;
  NodePtr node_;
  std::string path_;
  bool writable_;
};

namespace {

class MemoryLock final : public EnvLock {
public:
  MemoryLock(std::mutex& mutex, std::set<std::string>& locks, std::string path)
      : mutex_(mutex), locks_(locks), path_(std::move(path)) {}
  ~MemoryLock() override {
    const std::lock_guard lock(mutex_);
    locks_.erase(path_);
  }

private:
  std::mutex& mutex_;
  std::set<std::string>& locks_;
  std::string path_;
};

/// The names on the way, without empty ones and ".".
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

[[noreturn]] void absent(std::string_view path) {
  throw Error(ErrorCode::kNotFound, "cannot open " + std::string(path) + ": no such file");
}

}  // namespace

MemoryEnv::MemoryEnv() : root_(std::make_shared<Node>()) { root_->is_folder = true; }
MemoryEnv::~MemoryEnv() = default;

bool MemoryEnv::admit(Operation, const std::string&, uint64_t) { return true; }
void MemoryEnv::admit_read(const std::string&) {}

MemoryEnv::NodePtr MemoryEnv::find(std::string_view path) const {
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    const auto entry = node->entries.find(part);
    if (entry == node->entries.end()) return nullptr;
    node = entry->second;
  }
  return node;
}

MemoryEnv::NodePtr MemoryEnv::find_folder_of(std::string_view path, std::string* name) const {
  const std::vector<std::string> parts = parts_of(path);
  if (parts.empty()) throw Error(ErrorCode::kIo, "the root folder is fixed");
  *name = parts.back();
  NodePtr folder = find(parent_folder(path));
  if (!folder || !folder->is_folder) absent(path);
  return folder;
}

MemoryEnv::NodePtr MemoryEnv::find_file(const std::string& path) const {
  NodePtr node = find(path);
  if (!node) absent(path);
  if (node->is_folder) throw Error(ErrorCode::kIo, path + " is a folder");
  return node;
}

void MemoryEnv::set_entry(Node& folder, const std::string& name, NodePtr node, uint64_t ticket) {
  if (node) {
    folder.entries[name] = node;
  } else {
    folder.entries.erase(name);
  }
  folder.pending_entries[name] = {std::move(node), ticket};
}

std::unique_ptr<EnvFile> MemoryEnv::open(const std::string& path, OpenMode mode) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  NodePtr node = find(path);
  const bool may_create = mode == OpenMode::kCreate || mode == OpenMode::kCreateNew;
  if (node && mode == OpenMode::kCreateNew) throw Error(ErrorCode::kConflict, path + " exists");
  if (!node && !may_create) absent(path);
  if (!node) {
    std::string name;
    const NodePtr folder = find_folder_of(path, &name);
    admit(Operation::kCreate, path, 0);
    node = std::make_shared<Node>();
    set_entry(*folder, name, node, next_ticket_++);
  }
  if (node->is_folder) throw Error(ErrorCode::kIo, path + " is a folder");
  return std::make_unique<MemoryFile>(*this, node, path, mode != OpenMode::kRead);
}

bool MemoryEnv::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  return find(path) != nullptr;
}

uint64_t MemoryEnv::file_size(const std::string& path) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  return find_file(path)->data.size();
}

void MemoryEnv::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  std::string from_name;
  std::string to_name;
  const NodePtr node = find_file(from);
  const NodePtr from_folder = find_folder_of(from, &from_name);
  const NodePtr to_folder = find_folder_of(to, &to_name);
  admit(Operation::kRename, to, 0);
  const uint64_t ticket = next_ticket_++;
  set_entry(*from_folder, from_name, nullptr, ticket);
  set_entry(*to_folder, to_name, node, ticket);
}

bool MemoryEnv::remove_node(const std::string& path, bool is_folder) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  const NodePtr node = find(path);
  if (!node) return false;
  if (node->is_folder != is_folder) throw Error(ErrorCode::kIo, path + " is of the other kind");
  if (!node->entries.empty()) throw Error(ErrorCode::kIo, path + " is not empty");
  std::string name;
  const NodePtr folder = find_folder_of(path, &name);
  admit(Operation::kRemove, path, 0);
  set_entry(*folder, name, nullptr, next_ticket_++);
  return true;
}

bool MemoryEnv::remove_file(const std::string& path) { return remove_node(path, false); }
bool MemoryEnv::remove_folder(const std::string& path) { return remove_node(path, true); }

std::vector<FolderEntry> MemoryEnv::list(const std::string& path) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  const NodePtr node = find(path);
  if (!node || !node->is_folder) absent(path);
  std::vector<FolderEntry> entries;
  for (const auto& [name, child] : node->entries) entries.push_back({name, child->is_folder});
  return entries;
}

bool MemoryEnv::make_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  if (const NodePtr node = find(path)) {
    if (!node->is_folder) throw Error(ErrorCode::kIo, path + " is not a folder");
    return false;
  }
  std::string name;
  const NodePtr folder = find_folder_of(path, &name);
  admit(Operation::kMakeFolder, path, 0);
  NodePtr node = std::make_shared<Node>();
  node->is_folder = true;
  set_entry(*folder, name, std::move(node), next_ticket_++);
  return true;
}

void MemoryEnv::sync_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const NodePtr node = find(path);
  if (!node || !node->is_folder) absent(path);
  if (!admit(Operation::kSyncFolder, path, node->pending_entries.size())) return;
  node->durable_entries = node->entries;
  node->pending_entries.clear();
}

FileDescriptor MemoryEnv::open_descriptor(const std::string& path) {
  std::string bytes;
  {
    const std::lock_guard lock(mutex_);
    admit_read(path);
    bytes = find_file(path)->data;
  }
  FileDescriptor fd(::memfd_create("memory_env", MFD_CLOEXEC));
  if (!fd.valid()) throw_errno(errno, "cannot create a memory file");
  write_all(fd.get(), bytes, path);
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) throw_errno(errno, "cannot rewind a memory file");
  return fd;
}

FileDescriptor MemoryEnv::scratch_file(const std::string&) {
  FileDescriptor fd(::memfd_create("memory_env_scratch", MFD_CLOEXEC));
  if (!fd.valid()) throw_errno(errno, "cannot create a memory file");
  return fd;
}

std::unique_ptr<EnvLock> MemoryEnv::lock(const std::string& path) {
  const std::lock_guard lock(mutex_);
  admit_read(path);
  if (!locks_.insert(path).second) throw Error(ErrorCode::kInUse, path + " is held already");
  return std::make_unique<MemoryLock>(mutex_, locks_, path);
}

}  // namespace tensormill::storage
