/// Something that happens once, as a descriptor that poll() waits for. Thread-safety: all methods from any
/// thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::cli {

class Bell {
public:
  /// Throws Error(kIo) where there is no descriptor to have.
  Bell() : fd_(::eventfd(0, EFD_CLOEXEC)) {
    if (!fd_.valid()) throw_errno(errno, "cannot make an event");
  }
  void ring() const {
    const uint64_t one = 1;
    if (::write(fd_.get(), &one, sizeof one) != sizeof one) throw_errno(errno, "cannot tell an event");
  }
  /// Readable from ring() on.
  int fd() const { return fd_.get(); }

private:
  FileDescriptor fd_;
};

}  // namespace tensormill::cli
