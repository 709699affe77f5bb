#include "runtime/parallel/kernel_parallel.h"

#include <limits>
#include <mutex>

namespace tensormill::parallel {

namespace {

/// A launch from inside a task runs in that task's thread and workspace: launches do not nest.
int32_t launch_inline(const tm_call* call, tm_task task, void* closure, int64_t tasks) {
  const int32_t worker = static_cast<int32_t>(reinterpret_cast<intptr_t>(call->parallel->pool));
  for (int64_t i = 0; i < tasks; ++i) {
    if (const int32_t code = task(call, closure, i, worker); code != TM_OK) return code;
  }
  return TM_OK;
}

struct Launch {
  const tm_call* call;
  tm_task task;
  void* closure;
  std::mutex mutex;
  int64_t failing_task = std::numeric_limits<int64_t>::max();
  int64_t error_index = -1;
};

/// Each task has its own error slot, so that the lowest failing task's index is the one that is reported.
int32_t run_task(void* context, int64_t task, int32_t worker) {
  Launch& launch = *static_cast<Launch*>(context);
  int64_t error_index = -1;
  const tm_parallel inline_table{reinterpret_cast<void*>(static_cast<intptr_t>(worker)),
                                 launch.call->parallel->workers, 0, &launch_inline};
  tm_call call = *launch.call;
  call.error_index = &error_index;
  call.parallel = &inline_table;
  const int32_t code = launch.task(&call, launch.closure, task, worker);
  if (code != TM_OK) {
    const std::lock_guard lock(launch.mutex);
    if (task < launch.failing_task) {
      launch.failing_task = task;
      launch.error_index = error_index;
    }
  }
  return code;
}

}  // namespace

KernelParallel::KernelParallel(Lease& lease, const CancelToken* cancel)
    : lease_(lease), cancel_(cancel), table_{this, lease.workers(), 0, &KernelParallel::launch} {}

int32_t KernelParallel::launch(const tm_call* call, tm_task task, void* closure, int64_t tasks) {
  auto* self = static_cast<KernelParallel*>(call->parallel->pool);
  Launch launch{.call = call, .task = task, .closure = closure, .mutex = {}};
  const int32_t code = self->lease_.parallel_for(tasks, &run_task, &launch, self->cancel_, TM_CANCELLED);
  if (code != TM_OK) *call->error_index = launch.error_index;
  return code;
}

}  // namespace tensormill::parallel
