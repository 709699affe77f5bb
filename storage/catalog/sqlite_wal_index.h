/// What SQLite's connections to one database in one process share: the locks on the file and the index of its
/// write-ahead log, both in this process' memory. So reading connections see the last commit and wait for no
/// writer. Nothing of it outlives the process; the next one makes the index from the log.
/// Thread-safety: all methods from many threads; an Owner belongs to one connection.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace tensormill::storage {

class SqliteWalIndex {
public:
  static constexpr int kSlots = 8;  ///< SQLITE_SHM_NLOCK

  /// What one open database file holds of this.
  struct Owner {
    unsigned shared = 0;     ///< a bit for each slot
    unsigned exclusive = 0;  ///< a bit for each slot
    int level = 0;           ///< of the file's lock, SQLITE_LOCK_NONE and above
    bool is_mapped = false;
  };

  /// The region of this number, made of zeros when it is new; null when it is new and `extend` is false.
  void* map(Owner& owner, size_t region, size_t bytes, bool extend);
  /// The last owner to go takes the index with it.
  void unmap(Owner& owner);
  /// Slots first … first + count − 1. False when another owner is in the way.
  bool lock(Owner& owner, int first, int count, bool exclusive);
  void unlock(Owner& owner, int first, int count);
  void barrier();

  /// Raises the file's lock to `level` (SQLITE_LOCK_SHARED and above); false when another owner is in the
  /// way.
  bool lock_file(Owner& owner, int level);
  /// Lowers it.
  void unlock_file(Owner& owner, int level);
  /// Whether some owner is about to write to the file itself.
  bool is_reserved();

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> regions_;
  int mapped_ = 0;
  std::array<int, kSlots> shared_{};
  std::array<bool, kSlots> exclusive_{};
  int readers_ = 0;                ///< owners whose level is at least SQLITE_LOCK_SHARED
  const Owner* writer_ = nullptr;  ///< the one whose level is above that
};

}  // namespace tensormill::storage
