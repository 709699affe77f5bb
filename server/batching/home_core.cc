#include "server/batching/home_core.h"

#include <sched.h>

namespace tensormill::batching {

void HomeCore::remember() noexcept { core_ = sched_getcpu(); }

void HomeCore::go() const noexcept {
  if (core_ < 0 || core_ >= CPU_SETSIZE || sched_getcpu() == core_) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || !CPU_ISSET(core_, &allowed)) return;
  cpu_set_t home;
  CPU_ZERO(&home);
  CPU_SET(core_, &home);
  // The first call moves the thread, the second lets the scheduler have it again.
  if (sched_setaffinity(0, sizeof(home), &home) == 0) sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace tensormill::batching
