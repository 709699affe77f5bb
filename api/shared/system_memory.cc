#include "api/shared/system_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::shared {
namespace {

class SharedObject final : public ClientMemory {
public:
  explicit SharedObject(const std::string& key) : key_(key) {
    // Where the C library keeps such objects. No link is followed, and nothing blocks.
    const std::string path = "/dev/shm" + key;
    file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file_.valid()) throw Error(ErrorCode::kInvalidArgument, key + " cannot be opened");
    size();
  }

  uint64_t size() const override {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) throw_errno(errno, "cannot look at " + key_);
    if (!S_ISREG(status.st_mode))
      throw Error(ErrorCode::kInvalidArgument, key_ + " is no shared memory object");
    return static_cast<uint64_t>(status.st_size);
  }

  void read(uint64_t at, std::span<std::byte> into) const override {
    while (!into.empty()) {
      const ssize_t got = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw_errno(errno, "cannot read " + key_);
      if (got == 0) refuse_shorter();
      into = into.subspan(static_cast<size_t>(got));
      at += static_cast<uint64_t>(got);
    }
  }

  void write(uint64_t at, std::span<const std::byte> from) const override {
    // A write past the end would make it longer, which is not ours to do.
    if (size() < at + from.size()) refuse_shorter();
    while (!from.empty()) {
      const ssize_t put = ::pwrite(file_.get(), from.data(), from.size(), static_cast<off_t>(at));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw_errno(errno, "cannot write " + key_);
      from = from.subspan(static_cast<size_t>(put));
      at += static_cast<uint64_t>(put);
    }
  }

private:
  [[noreturn]] void refuse_shorter() const {
    throw Error(ErrorCode::kInvalidTensor, key_ + " has become shorter");
  }

  const std::string key_;
  FileDescriptor file_;
};

}  // namespace

std::unique_ptr<const ClientMemory> open_object(const std::string& key) {
  return std::make_unique<SharedObject>(key);
}

}  // namespace tensormill::shared
