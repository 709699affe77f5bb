#include "server/cli/stop_signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "runtime/base/error.h"

namespace tensormill::cli {

FileDescriptor stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) throw_errno(errno, "cannot block signals");
  FileDescriptor fd(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!fd.valid()) throw_errno(errno, "cannot watch signals");
  ::signal(SIGPIPE, SIG_IGN);
  return fd;
}

}  // namespace tensormill::cli
