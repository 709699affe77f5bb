#include "api/endpoints/shared_regions.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/expect_error.h"

namespace tensormill::endpoints {
namespace {

/// A shared memory object of this process's own, of 64 bytes, whose values are their places.
class Object {
public:
  Object() : key_("/tensormill-test-" + std::to_string(::getpid())) {
    ::shm_unlink(key_.c_str());
    file_ = FileDescriptor(::shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    std::array<char, 64> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    EXPECT_EQ(::pwrite(file_.get(), bytes.data(), bytes.size(), 0), 64);
  }
  ~Object() { ::shm_unlink(key_.c_str()); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  const std::string& key() const { return key_; }
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

class SharedRegionsTest : public testing::Test {
protected:
  Object object_;
  SharedRegions regions_;
  std::array<std::byte, 8> bytes_{};
};

TEST_F(SharedRegionsTest, CopiesWhatIsInARegion) {
  regions_.add({"in", object_.key(), 16, 32});
  regions_.read({"in", 4, 8}, bytes_);
  EXPECT_EQ(bytes_[0], std::byte{20});
  EXPECT_EQ(bytes_[7], std::byte{27});
  bytes_.fill(std::byte{99});
  regions_.write({"in", 24, 8}, bytes_);
  EXPECT_EQ(object_.at(39), 39);
  EXPECT_EQ(object_.at(40), 99);
  EXPECT_EQ(object_.at(47), 99);
  EXPECT_EQ(object_.at(48), 48);
  EXPECT_EQ(regions_.list(std::nullopt).size(), 1U);
  expect_error(ErrorCode::kNameTaken, "", [&] { regions_.add({"in", object_.key(), 0, 8}); });
  regions_.remove("in");
  expect_error(ErrorCode::kNotFound, "", [&] { regions_.list("in"); });
  expect_error(ErrorCode::kNotFound, "", [&] { regions_.remove("in"); });
  expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.read({"in", 0, 8}, bytes_); });
  regions_.remove(std::nullopt);
}

TEST_F(SharedRegionsTest, NothingOutsideOfARegionIsReadOrWritten) {
  regions_.add({"in", object_.key(), 16, 32});
  for (const uint64_t offset : {uint64_t{25}, uint64_t{32}, uint64_t{33}, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.read({"in", offset, 8}, bytes_); });
    expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.write({"in", offset, 8}, bytes_); });
  }
}

TEST_F(SharedRegionsTest, OnlyObjectsOfOurPrefixThatAreThereAreNamed) {
  for (const char* key : {"", "/", "/other", "tensormill-x", "/tensormill-", "/tensormill-../x",
                          "/tensormill-a/b", "/tensormill-there-is-none"})
    expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"r", key, 0, 8}); });
  expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"a/b", object_.key(), 0, 8}); });
  expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"r", object_.key(), 0, 65}); });
  expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"r", object_.key(), 65, 1}); });
  expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"r", object_.key(), ~uint64_t{0}, 8}); });
  expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"r", object_.key(), 0, 0}); });
  SharedRegions others({"tensormill-tes", "other"});
  others.add({"mine", object_.key(), 0, 8});
  expect_error(ErrorCode::kInvalidArgument, "begins with none of /tensormill-tes, /other", [&] {
    others.add({"in", "/tensormill-x", 0, 8});
  });
  const std::string link = "/dev/shm/tensormill-link-" + std::to_string(::getpid());
  ASSERT_EQ(::symlink("/etc/passwd", link.c_str()), 0);
  expect_error(ErrorCode::kInvalidArgument, "", [&] { regions_.add({"r", link.substr(8), 0, 8}); });
  ::unlink(link.c_str());
  EXPECT_TRUE(regions_.list(std::nullopt).empty());
}

TEST_F(SharedRegionsTest, AnObjectThatGetsShorterIsTheRequestsErrorAndStaysAsItIs) {
  regions_.add({"in", object_.key(), 0, 64});
  object_.resize(10);
  expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.read({"in", 8, 8}, bytes_); });
  expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.write({"in", 8, 8}, bytes_); });
  EXPECT_EQ(object_.size(), 10);
  regions_.read({"in", 0, 8}, bytes_);
}

}  // namespace
}  // namespace tensormill::endpoints
