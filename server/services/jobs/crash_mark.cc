#include "server/services/jobs/crash_mark.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "runtime/base/error.h"

namespace tensormill::server {

namespace {

constexpr std::array<int, 7> kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

// A signal handler has no object to look into, so what it needs is the process's: where the mark goes, how
// many loads are under way, and who had the signals before.
std::atomic<int> mark_fd{-1};
std::atomic<int> loads{0};
std::array<struct sigaction, kCrashes.size()> before{};

/// Writes the mark and lets the signal do what it would have done.
void leave_mark(int signal) {
  const int error_number = errno;
  if (loads.load() > 0) {
    const char mark = 'x';
    const ssize_t ignored = ::pwrite(mark_fd.load(), &mark, 1, 0);
    (void)ignored;
  }
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == signal) ::sigaction(signal, &before[i], nullptr);
  }
  // Pending until the handler returns.
  ::raise(signal);
  errno = error_number;
}

}  // namespace

CrashMark::CrashMark(const std::string& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (!file_.valid()) throw_errno(errno, "cannot open " + path);
  char mark = 0;
  was_left_ = ::pread(file_.get(), &mark, 1, 0) == 1;
  int none = -1;
  watches_ = mark_fd.compare_exchange_strong(none, file_.get());
  if (!watches_) return;
  struct sigaction action {};
  action.sa_handler = leave_mark;
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    if (::sigaction(kCrashes[i], &action, &before[i]) != 0) throw_errno(errno, "cannot watch a signal");
  }
}

CrashMark::~CrashMark() {
  if (!watches_) return;
  for (size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &before[i], nullptr);
  mark_fd = -1;
}

void CrashMark::clear() {
  if (::ftruncate(file_.get(), 0) != 0) throw_errno(errno, "cannot clear the mark of a crash");
  was_left_ = false;
}

CrashMark::Loading::Loading(CrashMark* mark) : mark_(mark) {
  if (mark_ != nullptr) ++loads;
}

CrashMark::Loading::~Loading() {
  if (mark_ != nullptr) --loads;
}

}  // namespace tensormill::server
