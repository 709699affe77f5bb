#include "runtime/base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/error.h"

namespace tensormill {

FileDescriptor memory_file(const std::string& name, std::string_view bytes) {
  FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file.valid()) throw_errno(errno, "cannot make the memory file " + name);
  write_all(file.get(), bytes, name);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) throw_errno(errno, "cannot rewind the memory file " + name);
  return file;
}

}  // namespace tensormill
