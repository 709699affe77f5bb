#include "runtime/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/output_file.h"

namespace tensormill {

namespace {

constexpr size_t kLargePage = size_t{2} << 20;

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // Opening a pipe would wait for a writer; it is refused below.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT) throw Error(ErrorCode::kNotFound, "no such file: " + path);
    throw_errno(errno, "cannot open " + path);
  }
  return map(fd.get(), path);
}

std::shared_ptr<const MappedFile> MappedFile::map(int fd, const std::string& name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_errno(errno, "cannot stat " + name);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::kInvalidArgument, name + " is not a regular file");
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return part_of(nullptr, {}, name);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) throw_errno(errno, "cannot map " + name);
  const std::shared_ptr<const void> owner(data, [size](void* mapped) { ::munmap(mapped, size); });
  // Weights are streamed: what is not in memory yet is better read into large pages. A refusal changes
  // nothing.
  if (size >= kLargePage) (void)::madvise(data, size, MADV_HUGEPAGE);
  return part_of(owner, {static_cast<const std::byte*>(data), size}, name);
}

std::shared_ptr<const MappedFile> MappedFile::part_of(std::shared_ptr<const void> owner,
                                                      std::span<const std::byte> bytes, std::string name) {
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(owner), bytes, std::move(name)));
}

std::string read_file(const std::string& path) { return std::string(MappedFile::open(path)->text()); }

void write_all(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_errno(errno, "cannot write " + std::string(name));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace tensormill
