/// A file system in memory whose power can be cut: what was not synced is lost, names and bytes each for
/// themselves. It counts the operations that change something (from 1), and can fail or cut at the k-th of
/// them. Thread-safety: as Env; set faults while no other thread uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/env/memory_env.h"

namespace tensormill::storage {

/// What of the unsynced state a power cut leaves.
enum class Survival {
  kAll,      ///< everything: the process was killed, the power stayed
  kNothing,  ///< only what was synced
  kPart,     ///< each unsynced 512-byte sector and each unsynced name survives by the toss of a seeded coin
};

struct SyncRecord {
  Operation operation = Operation::kSync;  ///< kSync or kSyncFolder
  std::string path;
  uint64_t number = 0;   ///< among all operations
  uint64_t pending = 0;  ///< what it made durable: unsynced bytes of the file, unsynced names of the folder
};

class PowerCutEnv final : public MemoryEnv {
public:
  /// The power goes after `count` further operations: each later one, reads included, throws Error(kIo).
  void cut_after(uint64_t count);
  /// The operations first … first + times − 1, from now on (1 = the next), fail with this errno and
  /// change nothing.
  void fail_operations(uint64_t first, uint64_t times, int error_number);
  /// From now on the k-th sync (file or folder, in the env's life, from 1) says yes and does
  /// nothing.
  void ignore_sync(uint64_t number) { ignored_sync_ = number; }
  /// Restores power: the state is what the cut left. Open files and locks of before must be gone. Clears cut
  /// and failures; the ignored sync stays.
  void reboot(Survival survival, uint64_t seed = 0);

  bool is_off() const { return off_; }
  uint64_t operations() const { return operations_; }
  /// Each sync so far.
  const std::vector<SyncRecord>& syncs() const { return syncs_; }

protected:
  bool admit(Operation operation, const std::string& path, uint64_t pending) override;
  void admit_read(const std::string& path) override;

private:
  void settle(Node& node, Survival survival, uint64_t seed);

  uint64_t operations_ = 0;
  std::optional<uint64_t> cut_at_;
  uint64_t fail_first_ = 0;
  uint64_t fail_times_ = 0;
  int fail_errno_ = 0;
  std::optional<uint64_t> ignored_sync_;
  bool off_ = false;
  std::vector<SyncRecord> syncs_;
  uint64_t coin_ = 0;
};

}  // namespace tensormill::storage
