#include "runtime/parallel/kernel_parallel.h"

namespace tensormill::parallel {

namespace {

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
  KernelErrors* errors;
};

/// Each task has its own error slot, so that the lowest failing task's index is the one that is reported. A
/// launch from inside a task runs in that task's thread and workspace: launches do not nest.
int32_t run_task(void* context, int64_t task, int32_t worker) {
  const Launch& launch = *static_cast<const Launch*>(context);
  int64_t error_index = -1;
  const tm_parallel inline_table = inline_parallel(worker, launch.call->parallel->workers);
  tm_call call = *launch.call;
  call.error_index = &error_index;
  call.parallel = &inline_table;
  const int32_t code = launch.task(&call, launch.closure, task, worker);
  if (code != TM_OK) launch.errors->add(task, error_index);
  return code;
}

}  // namespace

tm_parallel inline_parallel(int32_t worker, int32_t workers) {
  return {reinterpret_cast<void*>(static_cast<intptr_t>(worker)), workers, 0, &launch_inline};
}

void KernelErrors::add(int64_t task, int64_t error_index) {
  const std::lock_guard lock(mutex_);
  if (task >= task_) return;
  task_ = task;
  error_index_ = error_index;
}

int64_t KernelErrors::lowest() {
  const std::lock_guard lock(mutex_);
  return error_index_;
}

KernelParallel::KernelParallel(Lease& lease, KernelErrors& errors, const CancelToken* cancel)
    : lease_(&lease),
      errors_(errors),
      cancel_(cancel),
      table_{this, lease.workers(), 0, &KernelParallel::launch} {}

KernelParallel::KernelParallel(Team& team, int32_t worker, KernelErrors& errors, const CancelToken* cancel)
    : team_(&team),
      worker_(worker),
      errors_(errors),
      cancel_(cancel),
      table_{this, team.workers(), 0, &KernelParallel::launch} {}

int32_t KernelParallel::launch(const tm_call* call, tm_task task, void* closure, int64_t tasks) {
  auto* self = static_cast<KernelParallel*>(call->parallel->pool);
  Launch launch{call, task, closure, &self->errors_};
  const Loop loop{tasks, &run_task, &launch, self->cancel_, TM_CANCELLED};
  const int32_t code = self->team_ != nullptr ? self->team_->loop(self->worker_, loop)
                                              : self->lease_->parallel_for(tasks, &run_task, &launch,
                                                                           self->cancel_, TM_CANCELLED);
  if (code != TM_OK) *call->error_index = self->errors_.lowest();
  return code;
}

}  // namespace tensormill::parallel
