#include "storage/blob/blob_index.h"

#include <utility>

namespace tensormill::storage {

void MemoryBlobIndex::count(const Entry& entry, bool is_new) {
  const uint64_t one = is_new ? 1 : ~uint64_t{0};  // unsigned, so that adding the latter subtracts one
  usage_.blobs += one;
  if (entry.form == BlobForm::kCompressed) usage_.compressed += one;
  usage_.stored_bytes += is_new ? entry.stored_bytes : -entry.stored_bytes;
}

void MemoryBlobIndex::put(const BlobInfo& blob) {
  const Entry entry{blob.form, blob.stored_bytes};
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = blobs_.try_emplace(blob.digest, entry);
  if (!is_new) count(std::exchange(known->second, entry), false);
  count(entry, true);
}

void MemoryBlobIndex::erase(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto known = blobs_.find(digest);
  if (known == blobs_.end()) return;
  count(known->second, false);
  blobs_.erase(known);
}

std::optional<BlobInfo> MemoryBlobIndex::find(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto known = blobs_.find(digest);
  if (known == blobs_.end()) return std::nullopt;
  return BlobInfo{digest, known->second.form, known->second.stored_bytes};
}

std::vector<BlobInfo> MemoryBlobIndex::list() {
  const std::lock_guard lock(mutex_);
  std::vector<BlobInfo> all;
  all.reserve(blobs_.size());
  for (const auto& [digest, entry] : blobs_) all.push_back({digest, entry.form, entry.stored_bytes});
  return all;
}

BlobUsage MemoryBlobIndex::usage() {
  const std::lock_guard lock(mutex_);
  return usage_;
}

bool MemoryBlobIndex::is_empty() {
  const std::lock_guard lock(mutex_);
  return blobs_.empty();
}

void MemoryBlobIndex::begin_commit(const Digest& digest) {
  std::unique_lock lock(mutex_);
  removed_.wait(lock, [&] { return !removing_.contains(digest); });
  committing_.insert(digest);
  if (!holds_.empty()) commits_[digest] = ++clock_;
}

void MemoryBlobIndex::end_commit(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  committing_.erase(committing_.find(digest));
}

uint64_t MemoryBlobIndex::begin_hold() {
  const std::lock_guard lock(mutex_);
  holds_.insert(++clock_);
  return clock_;
}

void MemoryBlobIndex::end_hold(uint64_t hold) {
  const std::lock_guard lock(mutex_);
  holds_.erase(hold);
  if (holds_.empty()) commits_.clear();
}

std::optional<uint64_t> MemoryBlobIndex::oldest_hold() {
  const std::lock_guard lock(mutex_);
  if (holds_.empty()) return std::nullopt;
  return *holds_.begin();
}

bool MemoryBlobIndex::is_held(const Digest& digest, uint64_t oldest) const {
  if (committing_.contains(digest)) return true;
  const auto commit = commits_.find(digest);
  return commit != commits_.end() && commit->second > oldest;
}

std::vector<Digest> MemoryBlobIndex::begin_removal(std::span<const Digest> blobs, uint64_t oldest,
                                                   bool mark) {
  const std::lock_guard lock(mutex_);
  std::vector<Digest> unused;
  for (const Digest& digest : blobs) {
    if (!is_held(digest, oldest) && !removing_.contains(digest)) unused.push_back(digest);
  }
  if (mark) removing_.insert(unused.begin(), unused.end());
  return unused;
}

void MemoryBlobIndex::begin_removal(const Digest& digest) {
  std::unique_lock lock(mutex_);
  removed_.wait(lock, [&] { return !removing_.contains(digest); });
  removing_.insert(digest);
}

void MemoryBlobIndex::end_removal(std::span<const Digest> blobs) {
  {
    const std::lock_guard lock(mutex_);
    for (const Digest& digest : blobs) removing_.erase(digest);
  }
  removed_.notify_all();
}

}  // namespace tensormill::storage
