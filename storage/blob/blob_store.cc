#include "storage/blob/blob_store.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "storage/blob/blob_commit.h"

namespace tensormill::storage {
namespace {

/// Blobs that are being removed: nobody commits them meanwhile.
class Removal {
public:
  Removal(BlobIndex& index, std::vector<Digest> marked) : index_(index), blobs_(std::move(marked)) {}
  ~Removal() { index_.end_removal(blobs_); }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  const std::vector<Digest>& blobs() const { return blobs_; }

private:
  BlobIndex& index_;
  const std::vector<Digest> blobs_;
};

}  // namespace

BlobStore::BlobStore(Env& env, std::unique_ptr<BlobIndex> index) : env_(env), index_(std::move(index)) {}

BlobStore::~BlobStore() = default;

Digest BlobStore::put(std::string_view bytes, BlobOptions options) {
  const std::unique_ptr<BlobWriter> target = writer(options);
  target->write(bytes);
  return target->commit();
}

bool BlobStore::keep(const Digest& digest) {
  const Commit commit(*this, digest);
  return exists(digest);
}

bool BlobStore::is_verified(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  return verified_.contains(digest);
}

void BlobStore::set_verified(const Digest& digest, bool verified) {
  const std::lock_guard lock(mutex_);
  if (verified) {
    verified_.insert(digest);
  } else {
    verified_.erase(digest);
  }
}

bool BlobStore::remove(const Digest& digest) {
  index_->begin_removal(digest);
  const Removal removal(*index_, {digest});
  set_verified(digest, false);
  return !remove_stored(removal.blobs()).empty();
}

BlobHold::BlobHold(BlobStore& store) : index_(store.index_.get()), hold_(index_->begin_hold()) {}

BlobHold::~BlobHold() {
  if (index_ != nullptr) index_->end_hold(hold_);
}

void BlobStore::keep_roots(Roots roots, RootsAmong among) {
  TM_CHECK(!roots_, "a store's roots are named once");
  roots_ = std::move(roots);
  roots_among_ = std::move(among);
}

std::vector<Digest> BlobStore::roots() const {
  TM_CHECK(roots_ != nullptr, "nobody has said what a collection must keep");
  return roots_();
}

void BlobStore::release(std::span<const Digest> blobs) {
  release(std::set<Digest>(blobs.begin(), blobs.end()));
}

void BlobStore::release(std::set<Digest>&& blobs) noexcept {
  const std::lock_guard lock(mutex_);
  released_.merge(blobs);
}

std::vector<Digest> BlobStore::take_released() {
  const std::lock_guard lock(mutex_);
  const std::set<Digest> taken = std::exchange(released_, {});
  return {taken.begin(), taken.end()};
}

Collected BlobStore::remove_strays(const std::vector<BlobInfo>& looked_at, const std::vector<Digest>& kept,
                                   uint64_t oldest, bool dry_run) {
  std::vector<BlobInfo> stray;
  for (const BlobInfo& blob : looked_at) {
    if (!std::binary_search(kept.begin(), kept.end(), blob.digest)) stray.push_back(blob);
  }
  Collected done;
  for (std::span<const BlobInfo> left = stray; !left.empty();) {
    const std::span<const BlobInfo> group = left.first(group_of(left));
    left = left.subspan(group.size());
    std::vector<Digest> digests, held;
    for (const BlobInfo& blob : group) digests.push_back(blob.digest);
    std::vector<Digest> garbage = index_->begin_removal(digests, oldest, !dry_run);
    for (const BlobInfo& blob : group) {
      // In the order of the group, as begin_removal leaves it.
      if (std::binary_search(garbage.begin(), garbage.end(), blob.digest)) {
        ++done.blobs;
        done.stored_bytes += blob.stored_bytes;
      } else {
        ++done.held;
        held.push_back(blob.digest);
      }
    }
    if (dry_run) continue;
    release(held);
    const Removal removal(*index_, std::move(garbage));
    for (const Digest& digest : removal.blobs()) set_verified(digest, false);
    if (!removal.blobs().empty()) remove_stored(removal.blobs());
  }
  return done;
}

Collected BlobStore::collect(bool dry_run) {
  // With a hold of its own every commit from here on is noted. A hold that ends after this has a row by then,
  // which may be too late for the roots: what such holds keep now is kept to the end.
  const BlobHold own(*this);
  const uint64_t oldest = index_->oldest_hold().value();
  if (dry_run) return remove_strays(index_->collectable(), roots(), oldest, true);
  const std::vector<Digest> released = take_released();
  try {
    const std::vector<Digest> kept = roots();
    return remove_strays(index_->collectable(), kept, oldest, false);
  } catch (const Error&) {
    release(released);
    throw;
  }
}

Collected BlobStore::collect_released() {
  const BlobHold own(*this);
  const uint64_t oldest = index_->oldest_hold().value();
  const std::vector<Digest> released = take_released();
  try {
    const std::vector<Digest> kept = roots_among_ ? roots_among_(released) : roots();
    std::vector<BlobInfo> stored;
    for (const Digest& digest : released) {
      if (const std::optional<BlobInfo> blob = index_->find(digest)) stored.push_back(*blob);
    }
    return remove_strays(stored, kept, oldest, false);
  } catch (const Error&) {
    release(released);
    throw;
  }
}

}  // namespace tensormill::storage
