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

/// A read-only private mapping of a whole regular file.
class MappedFile {
public:
  /// Throws Error(kNotFound) when there is no such file, Error(kIo) otherwise.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// Maps the file behind `fd`, which may be closed afterwards. `name` is for messages.
  static std::shared_ptr<const MappedFile> map(int fd, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  const std::string& name() const { return name_; }

private:
  MappedFile(void* data, size_t size, std::string name) : data_(data), size_(size), name_(std::move(name)) {}
  void* data_;
  size_t size_;
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
