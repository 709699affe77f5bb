#include "api/endpoints/shared_regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "runtime/base/error.h"
#include "tests/api/shared_object.h"
#include "tests/expect_error.h"

namespace tensormill::endpoints {
namespace {

constexpr RegionKind kSystem = RegionKind::kSystem, kCuda = RegionKind::kCuda;

class SharedRegionsTest : public testing::Test {
protected:
  SharedObject object_;
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
  EXPECT_EQ(regions_.list(kSystem, std::nullopt).size(), 1U);
  expect_error(ErrorCode::kNameTaken, "", [&] { regions_.add({"in", object_.key(), 0, 8}); });
  regions_.remove(kSystem, "in");
  expect_error(ErrorCode::kNotFound, "", [&] { regions_.list(kSystem, "in"); });
  expect_error(ErrorCode::kNotFound, "", [&] { regions_.remove(kSystem, "in"); });
  expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.read({"in", 0, 8}, bytes_); });
  regions_.remove(kSystem, std::nullopt);
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
  EXPECT_TRUE(regions_.list(kSystem, std::nullopt).empty());
}

TEST_F(SharedRegionsTest, AnObjectThatGetsShorterIsTheRequestsErrorAndStaysAsItIs) {
  regions_.add({"in", object_.key(), 0, 64});
  object_.resize(10);
  expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.read({"in", 8, 8}, bytes_); });
  expect_error(ErrorCode::kInvalidTensor, "", [&] { regions_.write({"in", 8, 8}, bytes_); });
  EXPECT_EQ(object_.size(), 10);
  regions_.read({"in", 0, 8}, bytes_);
}

class CudaRegionsTest : public testing::Test {
protected:
  ~CudaRegionsTest() override {
    regions_.remove(kCuda, std::nullopt);
    EXPECT_EQ(cuda_standin_count("standin_opened"), 0);
    EXPECT_EQ(cuda_standin_count("standin_retained"), 0);
  }
  SharedRegion region(const std::string& name, uint64_t byte_size, size_t offset = 0) const {
    return {name, object_.handle(offset), 0, byte_size, kCuda, 1};
  }
  SharedObject object_;
  SharedRegions regions_{{"tensormill-"}, TM_TEST_CUDA_DRIVER};
  std::array<std::byte, 8> bytes_{};
};

TEST_F(CudaRegionsTest, CopiesWhatIsInARegionAndNothingOutsideOfIt) {
  regions_.add(region("gpu", 32, 16));
  regions_.read({"gpu", 4, 8}, bytes_);
  EXPECT_EQ(bytes_[0], std::byte{20});
  bytes_.fill(std::byte{99});
  regions_.write({"gpu", 24, 8}, bytes_);
  EXPECT_EQ(object_.at(39), 39);
  EXPECT_EQ(object_.at(40), 99);
  EXPECT_EQ(object_.at(47), 99);
  EXPECT_EQ(object_.at(48), 48);
  for (const uint64_t offset : {uint64_t{25}, uint64_t{32}, uint64_t{33}, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    expect_error(ErrorCode::kInvalidTensor, "region \"gpu\": 8 bytes from offset", [&] {
      regions_.read({"gpu", offset, 8}, bytes_);
    });
    expect_error(ErrorCode::kInvalidTensor, "are not in its 32", [&] {
      regions_.write({"gpu", offset, 8}, bytes_);
    });
  }
}

TEST_F(CudaRegionsTest, ARegionLiesInItsAllocation) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{49}, ~uint64_t{0}})
    expect_error(ErrorCode::kInvalidArgument,
                 "region \"gpu\": byte_size " + std::to_string(size) +
                     " from offset 0 is not in the 48 bytes of the GPU's allocation",
                 [&] { regions_.add(region("gpu", size, 16)); });
  expect_error(ErrorCode::kInvalidArgument, "the name is none", [&] { regions_.add(region("a/b", 8)); });
  SharedRegion wrong = region("gpu", 8);
  wrong.device_id = 2;
  expect_error(ErrorCode::kInvalidArgument, "region \"gpu\": device_id 2", [&] { regions_.add(wrong); });
  wrong.key = std::string(64, 'x');
  wrong.device_id = 0;
  expect_error(ErrorCode::kInvalidArgument, "region \"gpu\": cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE",
               [&] { regions_.add(wrong); });
  EXPECT_TRUE(regions_.list(kCuda, std::nullopt).empty());
  SharedRegions without({}, "/nowhere/libcuda.so.1");
  expect_error(ErrorCode::kNotSupported, "region \"gpu\": memory of a GPU needs",
               [&] { without.add(region("gpu", 8)); });
}

TEST_F(CudaRegionsTest, ANameIsTakenOnceOverBothKinds) {
  regions_.add(region("gpu", 8));
  regions_.add({"object", object_.key(), 0, 8});
  expect_error(ErrorCode::kNameTaken, "gpu", [&] { regions_.add({"gpu", object_.key(), 0, 8}); });
  expect_error(ErrorCode::kNameTaken, "object", [&] { regions_.add(region("object", 8)); });
  expect_error(ErrorCode::kNotFound, "gpu", [&] { regions_.remove(kSystem, "gpu"); });
  expect_error(ErrorCode::kNotFound, "object", [&] { regions_.list(kCuda, "object"); });
  EXPECT_EQ(regions_.list(kCuda, std::nullopt).at(0).device_id, 1);
  // All of one kind are not those of the other.
  regions_.remove(kCuda, std::nullopt);
  EXPECT_EQ(regions_.list(kSystem, std::nullopt).size(), 1U);
  expect_error(ErrorCode::kInvalidTensor, "is not registered", [&] { regions_.read({"gpu", 0, 8}, bytes_); });
}

TEST_F(CudaRegionsTest, ThereAreSoManyOfBothKindsTogether) {
  for (int i = 0; i < 1024; ++i) regions_.add(region(std::to_string(i), 8));
  expect_error(ErrorCode::kUnavailable, "1024 regions", [&] { regions_.add(region("more", 8)); });
  expect_error(ErrorCode::kUnavailable, "1024 regions", [&] { regions_.add({"more", object_.key(), 0, 8}); });
}

TEST_F(CudaRegionsTest, ARegionThatIsForgottenWhileItIsCopiedStaysOpenUntilThen) {
  std::jthread reader([&](const std::stop_token& stop) {
    std::array<std::byte, 64> copy{};
    while (!stop.stop_requested()) {
      try {
        regions_.read({"gpu", 0, 64}, copy);
        EXPECT_EQ(copy[63], std::byte{63});
      } catch (const Error& error) {
        EXPECT_THAT(error.message(), testing::HasSubstr("is not registered"));
      }
    }
  });
  for (int time = 0; time < 2000; ++time) {
    regions_.add(region("gpu", 64));
    regions_.remove(kCuda, "gpu");
  }
}

}  // namespace
}  // namespace tensormill::endpoints
