/// Gives a kernel its parallel loops: as the tm_parallel of the kernel ABI.
/// Thread-safety: KernelErrors may be used by all workers of a run; a KernelParallel belongs to one of them.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>

#include "runtime/abi/kernel_abi.h"
#include "runtime/parallel/team.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::parallel {

/// The error index of the lowest task that failed, of one launch.
class KernelErrors {
public:
  void add(int64_t task, int64_t error_index);
  int64_t lowest();

private:
  std::mutex mutex_;
  int64_t task_ = std::numeric_limits<int64_t>::max();
  int64_t error_index_ = -1;
};

class KernelParallel {
public:
  /// For a kernel that one thread runs: each launch is a session of the lease. All references must outlive
  /// this. A cancelled launch returns TM_CANCELLED.
  KernelParallel(Lease& lease, KernelErrors& errors, const CancelToken* cancel = nullptr);
  /// For a kernel that all workers of a session run: each launch is this worker's part of a loop.
  KernelParallel(Team& team, int32_t worker, KernelErrors& errors, const CancelToken* cancel = nullptr);
  KernelParallel(const KernelParallel&) = delete;
  KernelParallel& operator=(const KernelParallel&) = delete;
  const tm_parallel* get() const { return &table_; }

private:
  static int32_t launch(const tm_call* call, tm_task task, void* closure, int64_t tasks);

  Lease* lease_ = nullptr;
  Team* team_ = nullptr;
  int32_t worker_ = 0;
  KernelErrors& errors_;
  const CancelToken* cancel_;
  tm_parallel table_;
};

/// A table whose launches run all tasks at once, in the calling thread and in the workspace of `worker`.
tm_parallel inline_parallel(int32_t worker, int32_t workers);

}  // namespace tensormill::parallel
