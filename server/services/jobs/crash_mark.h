/// Tells, after the death of the process, whether a signal of its own doing ended it while a package was
/// being loaded. What others did to it (SIGKILL, for a deadline or for memory; a power cut) leaves no mark,
/// so a load that is merely slow is never taken for one that crashes. Of several in a process the first one
/// watches. Thread-safety: all methods from many threads.
#pragma once

#include <string>

#include "runtime/base/file.h"

namespace tensormill::server {

class CrashMark {
public:
  /// Reads what the process before has left in the file, which is made when it is not there, and watches the
  /// signals of a crash from now on. Throws Error(kIo).
  explicit CrashMark(const std::string& path);
  /// The handlers that were there before are back.
  ~CrashMark();
  CrashMark(const CrashMark&) = delete;
  CrashMark& operator=(const CrashMark&) = delete;

  /// Whether the process before crashed while it loaded something.
  bool was_left() const { return was_left_; }
  /// Once what follows from the mark is durable.
  void clear();

  /// While one lives, a crash leaves the mark. `mark` may be null: then nothing does.
  class Loading {
  public:
    explicit Loading(CrashMark* mark);
    ~Loading();
    Loading(const Loading&) = delete;
    Loading& operator=(const Loading&) = delete;

  private:
    CrashMark* mark_;
  };

private:
  FileDescriptor file_;
  bool was_left_ = false;
  bool watches_ = false;
};

}  // namespace tensormill::server
