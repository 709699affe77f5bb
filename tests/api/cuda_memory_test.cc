#include "api/shared/cuda_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "tests/api/shared_object.h"
#include "tests/expect_error.h"

namespace tensormill::shared {
namespace {

class CudaMemoryTest : public testing::Test {
protected:
  SharedObject object_;
  CudaDriver driver_{TM_TEST_CUDA_DRIVER};
  std::array<std::byte, 8> bytes_{};
};

TEST_F(CudaMemoryTest, CopiesFromAnAllocationAndToIt) {
  const auto memory = driver_.open(object_.handle(), 1);
  EXPECT_EQ(memory->size(), 64U);
  memory->read(20, bytes_);
  EXPECT_EQ(bytes_[0], std::byte{20});
  EXPECT_EQ(bytes_[7], std::byte{27});
  bytes_.fill(std::byte{99});
  memory->write(40, bytes_);
  // It is there when the call returns, though the driver's own copy may end later.
  EXPECT_EQ(object_.at(39), 39);
  EXPECT_EQ(object_.at(40), 99);
  EXPECT_EQ(object_.at(47), 99);
  EXPECT_EQ(object_.at(48), 48);
  memory->read(64, std::span(bytes_).first(0));
}

TEST_F(CudaMemoryTest, AnAllocationBeginsWhereItsOwnerSays) {
  const auto memory = driver_.open(object_.handle(16), 0);
  EXPECT_EQ(memory->size(), 48U);
  memory->read(0, bytes_);
  EXPECT_EQ(bytes_[0], std::byte{16});
}

TEST_F(CudaMemoryTest, WhatIsOpenedIsClosedWithItsLastUser) {
  auto memory = driver_.open(object_.handle(), 0);
  auto same = driver_.open(object_.handle(), 0);
  EXPECT_EQ(cuda_standin_count("standin_opened"), 2);
  EXPECT_EQ(cuda_standin_count("standin_retained"), 2);
  memory.reset();
  same->read(0, bytes_);
  EXPECT_EQ(bytes_[7], std::byte{7});
  same.reset();
  EXPECT_EQ(cuda_standin_count("standin_opened"), 0);
  EXPECT_EQ(cuda_standin_count("standin_retained"), 0);
}

TEST_F(CudaMemoryTest, ItsMemoryOutlivesTheDriversObject) {
  auto driver = std::make_unique<CudaDriver>(TM_TEST_CUDA_DRIVER);
  const auto memory = driver->open(object_.handle(), 0);
  driver.reset();
  memory->read(0, bytes_);
  EXPECT_EQ(bytes_[1], std::byte{1});
}

TEST_F(CudaMemoryTest, WhatTheDriverRefusesIsNamed) {
  std::string unknown = "/tensormill-there-is-none";
  unknown.resize(kIpcHandleBytes);
  for (const std::string& handle : {unknown, std::string(kIpcHandleBytes, '\0')})
    expect_error(ErrorCode::kInvalidArgument,
                 "cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE 1 (invalid argument)",
                 [&] { driver_.open(handle, 0); });
  for (const size_t length : {size_t{0}, size_t{63}, size_t{65}})
    expect_error(ErrorCode::kInvalidArgument,
                 "raw_handle has " + std::to_string(length) + " bytes, a cudaIpcMemHandle_t has 64",
                 [&] { driver_.open(std::string(length, 'x'), 0); });
  for (const int64_t device : {int64_t{-1}, int64_t{2}, int64_t{1} << 40})
    expect_error(ErrorCode::kInvalidArgument,
                 "device_id " + std::to_string(device) + " is none of the 2 GPUs",
                 [&] { driver_.open(object_.handle(), device); });
  const auto memory = driver_.open(object_.handle(), 0);
  expect_error(ErrorCode::kIo, "cuMemcpyDtoH: CUDA_ERROR_ILLEGAL_ADDRESS 700",
               [&] { memory->read(60, bytes_); });
  expect_error(ErrorCode::kIo, "cuMemcpyHtoD: CUDA_ERROR_ILLEGAL_ADDRESS 700",
               [&] { memory->write(60, bytes_); });
}

TEST_F(CudaMemoryTest, NothingIsLeftOpenBehindWhatWasRefused) {
  std::string beyond = object_.key() + "@65";
  beyond.resize(kIpcHandleBytes);
  expect_error(ErrorCode::kInvalidArgument, "cuMemGetAddressRange", [&] { driver_.open(beyond, 0); });
  expect_error(ErrorCode::kInvalidArgument, "", [&] { driver_.open(std::string(kIpcHandleBytes, 'x'), 0); });
  EXPECT_EQ(cuda_standin_count("standin_opened"), 0);
  EXPECT_EQ(cuda_standin_count("standin_retained"), 0);
}

TEST_F(CudaMemoryTest, WithoutADriverTheLibraryIsNamed) {
  CudaDriver none("/nowhere/libcuda.so.1");
  // Again and again: it may be installed meanwhile.
  for (int time = 0; time < 2; ++time)
    expect_error(ErrorCode::kNotSupported, "needs the NVIDIA driver's library /nowhere/libcuda.so.1",
                 [&] { none.open(object_.handle(), 0); });
  CudaDriver other("libm.so.6");
  expect_error(ErrorCode::kNotSupported, "cuInit", [&] { other.open(object_.handle(), 0); });
}

}  // namespace
}  // namespace tensormill::shared
