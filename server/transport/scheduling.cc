#include "server/transport/scheduling.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

namespace tensormill::transport {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

/// As the kernel declares it (sched_setattr(2)); the C library does not.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  ///< nanoseconds
  uint64_t deadline = 0;
  uint64_t period = 0;
};

void set(int nice, std::chrono::nanoseconds slice) {
  SchedulingAttributes attributes;
  attributes.nice = nice;
  attributes.runtime = static_cast<uint64_t>(slice.count());
  ::syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace

void give_way(int nice) { set(nice, 100ms); }

void take_precedence() {
  errno = 0;
  const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  if (errno == 0) set(own, 200us);
}

}  // namespace tensormill::transport
