#include "storage/catalog/sqlite_wal_index.h"

#include <sqlite3.h>

#include "runtime/base/error.h"

namespace tensormill::storage {

static_assert(SqliteWalIndex::kSlots == SQLITE_SHM_NLOCK);

void* SqliteWalIndex::map(Owner& owner, size_t region, size_t bytes, bool extend) {
  const std::lock_guard lock(mutex_);
  if (!owner.is_mapped) ++mapped_;
  owner.is_mapped = true;
  if (region >= regions_.size() && !extend) return nullptr;
  while (regions_.size() <= region) regions_.push_back(std::make_unique<std::byte[]>(bytes));
  return regions_[region].get();
}

void SqliteWalIndex::unmap(Owner& owner) {
  unlock(owner, 0, kSlots);
  const std::lock_guard lock(mutex_);
  if (owner.is_mapped && --mapped_ == 0) regions_.clear();
  owner.is_mapped = false;
}

bool SqliteWalIndex::lock(Owner& owner, int first, int count, bool exclusive) {
  const std::lock_guard lock(mutex_);
  for (int slot = first; slot < first + count; ++slot) {
    const unsigned bit = 1U << slot;
    const auto at = static_cast<size_t>(slot);
    if (exclusive_[at] && (owner.exclusive & bit) == 0) return false;
    const int others = shared_[at] - ((owner.shared & bit) != 0 ? 1 : 0);
    if (exclusive && others > 0) return false;
  }
  for (int slot = first; slot < first + count; ++slot) {
    const unsigned bit = 1U << slot;
    const auto at = static_cast<size_t>(slot);
    if (exclusive) {
      exclusive_[at] = true;
      owner.exclusive |= bit;
    } else if ((owner.shared & bit) == 0) {
      ++shared_[at];
      owner.shared |= bit;
    }
  }
  return true;
}

void SqliteWalIndex::unlock(Owner& owner, int first, int count) {
  const std::lock_guard lock(mutex_);
  for (int slot = first; slot < first + count; ++slot) {
    const unsigned bit = 1U << slot;
    const auto at = static_cast<size_t>(slot);
    if ((owner.shared & bit) != 0) --shared_[at];
    if ((owner.exclusive & bit) != 0) exclusive_[at] = false;
    owner.shared &= ~bit;
    owner.exclusive &= ~bit;
  }
}

void SqliteWalIndex::barrier() {
  // Whoever locks and unlocks a mutex sees what others wrote before they did.
  const std::lock_guard lock(mutex_);
}

bool SqliteWalIndex::lock_file(Owner& owner, int level) {
  const std::lock_guard lock(mutex_);
  if (level <= owner.level) return true;
  const bool other_writes = writer_ != nullptr && writer_ != &owner;
  if (level == SQLITE_LOCK_SHARED) {
    // A writer lets readers in until it is about to write.
    if (other_writes && writer_->level > SQLITE_LOCK_RESERVED) return false;
    ++readers_;
  } else {
    if (other_writes) return false;
    TM_CHECK(owner.level >= SQLITE_LOCK_SHARED, "sqlite locks in order");
    writer_ = &owner;
    if (level == SQLITE_LOCK_EXCLUSIVE && readers_ > 1) {
      owner.level = SQLITE_LOCK_PENDING;
      return false;
    }
  }
  owner.level = level;
  return true;
}

void SqliteWalIndex::unlock_file(Owner& owner, int level) {
  const std::lock_guard lock(mutex_);
  if (level >= owner.level) return;
  if (writer_ == &owner) writer_ = nullptr;
  if (level == SQLITE_LOCK_NONE && owner.level >= SQLITE_LOCK_SHARED) --readers_;
  owner.level = level;
}

bool SqliteWalIndex::is_reserved() {
  const std::lock_guard lock(mutex_);
  return writer_ != nullptr;
}

}  // namespace tensormill::storage
