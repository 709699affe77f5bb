#include "storage/env/posix_env.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

[[noreturn]] void fail(int error_number, const std::string& what, const std::string& path) {
  if (error_number == ENOENT) throw Error(ErrorCode::kNotFound, what + " " + path + ": no such file");
  if (error_number == EEXIST) throw Error(ErrorCode::kConflict, what + " " + path + ": it exists");
  throw_errno(error_number, what + " " + path);
}

class PosixFile final : public EnvFile {
public:
  PosixFile(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  size_t read(uint64_t offset, std::span<std::byte> target) override {
    size_t done = 0;
    while (done < target.size()) {
      const ssize_t got =
          ::pread(fd_.get(), target.data() + done, target.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(errno, "cannot read", path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  void write(uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail(errno, "cannot write", path_);
      bytes.remove_prefix(static_cast<size_t>(put));
      offset += static_cast<uint64_t>(put);
    }
  }

  void truncate(uint64_t size) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) fail(errno, "cannot truncate", path_);
  }

  void sync() override {
    if (::fdatasync(fd_.get()) != 0) fail(errno, "cannot sync", path_);
  }

  uint64_t size() override {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) fail(errno, "cannot stat", path_);
    return static_cast<uint64_t>(status.st_size);
  }

private:
  FileDescriptor fd_;
  std::string path_;
};

class PosixLock final : public EnvLock {
public:
  explicit PosixLock(FileDescriptor fd) : fd_(std::move(fd)) {}

private:
  FileDescriptor fd_;
};

}  // namespace

std::unique_ptr<EnvFile> PosixEnv::open(const std::string& path, OpenMode mode) {
  int flags = O_CLOEXEC;
  if (mode == OpenMode::kRead) flags |= O_RDONLY;
  if (mode != OpenMode::kRead) flags |= O_RDWR;
  if (mode == OpenMode::kCreate) flags |= O_CREAT;
  if (mode == OpenMode::kCreateNew) flags |= O_CREAT | O_EXCL;
  FileDescriptor fd(::open(path.c_str(), flags, 0600));
  if (!fd.valid()) fail(errno, "cannot open", path);
  return std::make_unique<PosixFile>(std::move(fd), path);
}

bool PosixEnv::exists(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  fail(errno, "cannot stat", path);
}

uint64_t PosixEnv::file_size(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(errno, "cannot stat", path);
  return static_cast<uint64_t>(status.st_size);
}

void PosixEnv::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(errno, "cannot rename to " + to + " from", from);
}

bool PosixEnv::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  fail(errno, "cannot remove", path);
}

bool PosixEnv::remove_folder(const std::string& path) {
  if (::rmdir(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  fail(errno, "cannot remove folder", path);
}

std::vector<FolderEntry> PosixEnv::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder) fail(errno, "cannot list", path);
  std::vector<FolderEntry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat status {};
      is_folder = ::lstat((path + "/" + name).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    }
    entries.push_back({name, is_folder});
    errno = 0;
  }
  if (errno != 0) fail(errno, "cannot list", path);
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

bool PosixEnv::make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  if (errno != EEXIST) fail(errno, "cannot make folder", path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(errno, "cannot stat", path);
  if (!S_ISDIR(status.st_mode)) throw Error(ErrorCode::kIo, path + " is not a folder");
  return false;
}

void PosixEnv::sync_folder(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) fail(errno, "cannot open folder", path);
  if (::fsync(fd.get()) != 0) fail(errno, "cannot sync folder", path);
}

FileDescriptor PosixEnv::open_descriptor(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) fail(errno, "cannot open", path);
  return fd;
}

FileDescriptor PosixEnv::scratch_file(const std::string& folder) {
  FileDescriptor fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) fail(errno, "cannot create a file in", folder);
  return fd;
}

std::unique_ptr<EnvLock> PosixEnv::lock(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) fail(errno, "cannot open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) throw Error(ErrorCode::kInUse, path + " is held by another process");
    fail(errno, "cannot lock", path);
  }
  return std::make_unique<PosixLock>(std::move(fd));
}

}  // namespace tensormill::storage
