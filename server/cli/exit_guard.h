/// Ends the process some time after it is to end, whatever its other threads do: a start that is not over, a
/// handler that never returns, a lock that nobody gives back, a log that nobody reads. Safe at any moment:
/// what was acknowledged is on the disk, and children end with their parent. Thread-safety: all methods from
/// one thread.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "runtime/base/file.h"
#include "server/cli/bell.h"

namespace tensormill::cli {

class ExitGuard {
public:
  /// `stop`, which outlives the guard and is not read, becomes readable when the process is to end; once
  /// `limit` is over then, it ends with exit code 0. The thread starts at once: when it is needed there may
  /// be none to have. `last_words` go into the log where it takes them at once.
  ExitGuard(std::string last_words, const FileDescriptor& stop, std::chrono::milliseconds limit);
  /// The process has ended by itself.
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

  /// Ends it now, without destructors.
  [[noreturn]] void leave() const;

private:
  void watch();

  const std::string last_words_;
  const int stop_;
  const std::chrono::milliseconds limit_;
  const Bell ended_;
  std::thread thread_;
};

}  // namespace tensormill::cli
