/// A file that is written as a whole.
/// Thread-safety: an object belongs to one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill {

/// Writes to a temporary file beside `path` that commit() renames to it, so that a reader sees the old or the
/// new content, never a part. What is no regular file (a device, a pipe, a link to one) is written in place:
/// renaming would put a file where it stood.
class OutputFile {
public:
  /// Throws Error(kIo) or Error(kDiskFull), as do the other members.
  explicit OutputFile(const std::string& path);
  /// Without commit() nothing is left behind.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::string_view bytes);
  void commit();

private:
  std::string path_;
  std::string temporary_;  ///< empty when written in place, and after commit()
  FileDescriptor fd_;
};

}  // namespace tensormill
