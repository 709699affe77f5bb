/// Gives a kernel its parallel loops: adapts a Lease to the tm_parallel of the kernel ABI.
/// Thread-safety: belongs to one run.
#pragma once

#include "runtime/abi/kernel_abi.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::parallel {

class KernelParallel {
public:
  /// `lease` and `cancel` must outlive this. A cancelled launch returns TM_CANCELLED.
  explicit KernelParallel(Lease& lease, const CancelToken* cancel = nullptr);
  KernelParallel(const KernelParallel&) = delete;
  KernelParallel& operator=(const KernelParallel&) = delete;
  const tm_parallel* get() const { return &table_; }

private:
  static int32_t launch(const tm_call* call, tm_task task, void* closure, int64_t tasks);

  Lease& lease_;
  const CancelToken* cancel_;
  tm_parallel table_;
};

}  // namespace tensormill::parallel
