/// Files as descriptors and read-only mappings.
/// Thread-safety: each object belongs to one thread at a time; a mapping may be read by many.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tensormill {

/// An owned file descriptor, closed at the end of its life.
class FileDescriptor {
public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();

private:
  int fd_ = -1;
};

/// A read-only private mapping of a whole regular file, or bytes that stand for one.
class MappedFile {
public:
  /// Throws Error(kNotFound) when there is no such file, Error(kIo) otherwise.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// Maps the file behind `fd`, which may be closed afterwards. `name` is for messages.
  static std::shared_ptr<const MappedFile> map(int fd, const std::string& name);
  /// Bytes that lie in something else, which `owner` keeps.
  static std::shared_ptr<const MappedFile> part_of(std::shared_ptr<const void> owner,
                                                   std::span<const std::byte> bytes, std::string name);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::string& name() const { return name_; }

private:
  MappedFile(std::shared_ptr<const void> owner, std::span<const std::byte> bytes, std::string name)
      : owner_(std::move(owner)), bytes_(bytes), name_(std::move(name)) {}
  std::shared_ptr<const void> owner_;  ///< of a mapping, which ends with it
  std::span<const std::byte> bytes_;
  std::string name_;
};

/// The whole file. Throws as MappedFile::open.
std::string read_file(const std::string& path);
/// Writes `bytes` to a temporary file beside `path` and renames it, so that a reader sees the old or the new
/// content, never a part. Throws Error(kIo) or Error(kDiskFull); then nothing is left behind.
void write_file(const std::string& path, std::string_view bytes);
/// write(2) until all is written. Throws Error(kIo) or Error(kDiskFull).
void write_all(int fd, std::string_view bytes, std::string_view name);

}  // namespace tensormill
