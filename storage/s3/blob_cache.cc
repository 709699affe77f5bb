#include "storage/s3/blob_cache.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::storage {

BlobCache::BlobCache(Env& env, std::string root, uint64_t max_bytes)
    : env_(env), root_(std::move(root)), max_bytes_(max_bytes) {
  make_durable_folders(env_, root_ + "/cache");
  remove_tree(env_, root_ + "/tmp");
  env_.make_folder(root_ + "/tmp");
  read_folders();
  make_room();
}

std::string BlobCache::temporary() {
  const std::lock_guard lock(mutex_);
  return root_ + "/tmp/blob-" + std::to_string(next_temporary_++);
}

std::string BlobCache::path_of(const Name& name) const {
  return root_ + "/cache/" + blob_path(name.first, name.second);
}

void BlobCache::read_folders() {
  for (const FolderEntry& shard : env_.list(root_ + "/cache")) {
    if (!shard.is_folder) continue;
    for (const FolderEntry& entry : env_.list(root_ + "/cache/" + shard.name)) {
      const auto name = parse_blob_name(entry.name);
      if (name) learn(*name, env_.file_size(path_of(*name)));
    }
  }
}

void BlobCache::learn(const Name& name, uint64_t bytes) {
  forget(name);
  uses_.push_back(name);
  entries_[name] = {bytes, std::prev(uses_.end()), {}};
  bytes_ += bytes;
}

void BlobCache::forget(const Name& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  bytes_ -= found->second.bytes;
  uses_.erase(found->second.use);
  entries_.erase(found);
}

bool BlobCache::is_pinned(Entry& entry) {
  std::erase_if(entry.mappings, [](const auto& mapping) { return mapping.expired(); });
  return !entry.mappings.empty();
}

void BlobCache::touch(const Name& name, const std::shared_ptr<const MappedFile>& mapping) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  uses_.splice(uses_.end(), uses_, found->second.use);
  is_pinned(found->second);
  found->second.mappings.push_back(mapping);
}

void BlobCache::make_room() {
  for (auto next = uses_.begin(); bytes_ > max_bytes_ && next != uses_.end();) {
    const Name name = *next++;
    if (is_pinned(entries_.at(name))) continue;
    env_.remove_file(path_of(name));
    forget(name);
  }
}

std::shared_ptr<const Blob> BlobCache::load(const std::string& path, const Name& name, bool check,
                                            const std::stop_token& stop) {
  return load_blob(env_, path, root_ + "/tmp", name.first, name.second, check, stop);
}

std::shared_ptr<const Blob> BlobCache::open(const Digest& digest, BlobForm form, bool check,
                                            const std::stop_token& stop) {
  const Name name(digest, form);
  {
    const std::lock_guard lock(mutex_);
    if (!entries_.contains(name)) return nullptr;
  }
  try {
    std::shared_ptr<const Blob> blob = load(path_of(name), name, check, stop);
    const std::lock_guard lock(mutex_);
    touch(name, blob->mapping());
    return blob;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt && error.code() != ErrorCode::kNotFound) throw;
  }
  const std::lock_guard lock(mutex_);
  env_.remove_file(path_of(name));
  forget(name);
  return nullptr;
}

std::shared_ptr<const Blob> BlobCache::admit(const std::string& path, const Digest& digest, BlobForm form,
                                             bool check, const std::stop_token& stop) {
  const Name name(digest, form);
  try {
    std::shared_ptr<const Blob> blob = load(path, name, check, stop);
    const uint64_t bytes = env_.file_size(path);
    const std::string target = path_of(name);
    env_.make_folder(parent_folder(target));
    const std::lock_guard lock(mutex_);
    env_.rename(path, target);
    learn(name, bytes);
    touch(name, blob->mapping());
    make_room();
    return blob;
  } catch (const Error&) {
    env_.remove_file(path);
    throw;
  }
}

void BlobCache::erase(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  for (const BlobForm form : {BlobForm::kPlain, BlobForm::kCompressed}) {
    const Name name(digest, form);
    if (!entries_.contains(name)) continue;
    env_.remove_file(path_of(name));
    forget(name);
  }
}

uint64_t BlobCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

uint64_t BlobCache::pinned_bytes() {
  const std::lock_guard lock(mutex_);
  uint64_t pinned = 0;
  for (auto& [name, entry] : entries_) {
    if (is_pinned(entry)) pinned += entry.bytes;
  }
  return pinned;
}

}  // namespace tensormill::storage
