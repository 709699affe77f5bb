#include "runtime/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

/// A link counts as what it is: its target may be a device.
bool is_written_in_place(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (is_written_in_place(path)) {
    fd_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd_.valid()) throw_errno(errno, "cannot write " + path);
    return;
  }
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  fd_ =
      FileDescriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd_.valid()) throw_errno(errno, "cannot create " + temporary);
  temporary_ = temporary;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  write_all(fd_.get(), bytes, temporary_.empty() ? path_ : temporary_);
}

void OutputFile::commit() {
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno(errno, "cannot rename to " + path_);
  temporary_.clear();
}

}  // namespace tensormill
