#include "storage/blob/blob_index.h"

#include <utility>

namespace tensormill::storage {

void BlobIndex::count(const Entry& entry, bool is_new) {
  const uint64_t one = is_new ? 1 : ~uint64_t{0};  // unsigned, so that adding the latter subtracts one
  usage_.blobs += one;
  if (entry.form == BlobForm::kCompressed) usage_.compressed += one;
  usage_.stored_bytes += is_new ? entry.stored_bytes : -entry.stored_bytes;
}

void BlobIndex::put(const BlobInfo& blob) {
  const Entry entry{blob.form, blob.stored_bytes};
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = blobs_.try_emplace(blob.digest, entry);
  if (!is_new) count(std::exchange(known->second, entry), false);
  count(entry, true);
}

void BlobIndex::erase(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto known = blobs_.find(digest);
  if (known == blobs_.end()) return;
  count(known->second, false);
  blobs_.erase(known);
}

std::optional<BlobInfo> BlobIndex::find(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  const auto known = blobs_.find(digest);
  if (known == blobs_.end()) return std::nullopt;
  return BlobInfo{digest, known->second.form, known->second.stored_bytes};
}

std::vector<BlobInfo> BlobIndex::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<BlobInfo> all;
  all.reserve(blobs_.size());
  for (const auto& [digest, entry] : blobs_) all.push_back({digest, entry.form, entry.stored_bytes});
  return all;
}

BlobUsage BlobIndex::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

}  // namespace tensormill::storage
