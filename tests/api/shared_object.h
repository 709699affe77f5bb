/// A shared memory object of the test's own, of 64 bytes, whose values are their places, and the stand-in for
/// the CUDA driver (cuda_driver/), for which it is a GPU's memory.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include "api/shared/cuda_memory.h"
#include "runtime/base/file.h"

namespace tensormill {

class SharedObject {
public:
  SharedObject() : key_("/tensormill-test-" + std::to_string(::getpid())) {
    ::shm_unlink(key_.c_str());
    file_ = FileDescriptor(::shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    std::array<char, 64> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    EXPECT_EQ(::pwrite(file_.get(), bytes.data(), bytes.size(), 0), 64);
  }
  ~SharedObject() { ::shm_unlink(key_.c_str()); }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  const std::string& key() const { return key_; }
  /// For the stand-in: of the object from that byte on.
  std::string handle(size_t offset = 0) const {
    std::string text = key_ + (offset == 0 ? "" : "@" + std::to_string(offset));
    text.resize(shared::kIpcHandleBytes);
    return text;
  }
  void resize(off_t size) { EXPECT_EQ(::ftruncate(file_.get(), size), 0); }
  off_t size() { return ::lseek(file_.get(), 0, SEEK_END); }
  char at(off_t place) {
    char value = 0;
    EXPECT_EQ(::pread(file_.get(), &value, 1, place), 1);
    return value;
  }

private:
  std::string key_;
  FileDescriptor file_;
};

/// What the stand-in counts: "standin_opened" handles, or "standin_retained" contexts.
inline int cuda_standin_count(const char* of_what) {
  void* library = ::dlopen(TM_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
  const auto count = library == nullptr ? nullptr : reinterpret_cast<int (*)()>(::dlsym(library, of_what));
  EXPECT_NE(count, nullptr) << of_what;
  return count == nullptr ? -1 : count();
}

}  // namespace tensormill
