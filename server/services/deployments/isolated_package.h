/// A package in a confined process of its own (`isolation: process`): what its code does, a crash among it,
/// is that process's. The process batches and runs as the server would (executor_child.h); tensors go through
/// pipes. A process that ends is replaced, at once the first time, later with growing delays; requests that
/// it had are answered with Error(kJobFailed), those that come meanwhile wait for the next one.
/// Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/memory_budget.h"
#include "server/jobs/child_slots.h"
#include "server/jobs/confine.h"
#include "server/services/deployments/executor_host.h"
#include "server/services/store/package_archive.h"

namespace tensormill::server {

/// Of a process beside its executors: code, the process itself, requests and answers on their way.
inline constexpr uint64_t kProcessMemory = uint64_t{1} << 30;

struct IsolationOptions {
  int threads = 1;                      ///< of a run; the instances share them
  uint64_t memory = uint64_t{8} << 30;  ///< of one executor
  std::chrono::milliseconds run_timeout{30'000};
  uint64_t max_answer_bytes = uint64_t{16} << 30;  ///< of the tensors of one answer
  std::shared_ptr<const jobs::ChildPolicy> policy = {};
  std::shared_ptr<MemoryBudget> arenas = {};  ///< of all executors of all packages; null: no bound
  jobs::ChildSlots* slots = nullptr;          ///< borrowed; null: the process takes none
  std::string program = "/proc/self/exe";     ///< has the subcommand child-execute
};

/// What the process of a package may have at most: its wall, and what it counts for among children.
inline uint64_t process_memory(const IsolationOptions& isolation, int instances) {
  return isolation.memory * static_cast<uint64_t>(instances) + kProcessMemory;
}

/// Returns once the process can run the package. Throws what the process says of its load, as
/// ExecutorHost::load does; Error(kInvalidPackage) when it ends instead; Error(kMemoryBudget) where it does
/// not fit beside the other children.
std::shared_ptr<HostedPackage> load_isolated(const MemberBlobs& members, const HostOptions& options,
                                             const IsolationOptions& isolation);

}  // namespace tensormill::server
