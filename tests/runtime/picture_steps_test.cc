#include "runtime/host_ops/picture_steps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::host_ops {
namespace {

/// Two rows of three gray samples in Netpbm's binary form.
const std::string kFile = std::string("P5 3 2 255\n") + "abcdef";

TensorView file_of(const std::string& bytes) {
  return {DType::kUInt8, {static_cast<int64_t>(bytes.size())}, bytes.data()};
}

std::vector<int64_t> extents_of(const TensorView& file, bool common_pictures = false) {
  std::vector<int64_t> extents(2, -1);
  const std::vector<TensorView> inputs = {file};
  const std::vector<void*> outputs = {extents.data()};
  const std::vector<size_t> bytes = {2 * sizeof(int64_t)};
  picture_extents({inputs, outputs, bytes, "{}", common_pictures});
  return extents;
}

/// The picture on a canvas of dots.
std::string painted(const TensorView& file, const Shape& shape, const char* attributes, DType dtype) {
  const std::string canvas(static_cast<size_t>(num_elements(shape)), '.');
  std::string result(canvas.size(), '!');
  const std::vector<TensorView> inputs = {file, {dtype, shape, canvas.data()}};
  const std::vector<void*> outputs = {result.data()};
  const std::vector<size_t> bytes = {result.size()};
  decode_picture({inputs, outputs, bytes, attributes});
  return result;
}

std::string painted(const std::string& file, const Shape& shape) {
  return painted(file_of(file), shape, R"({"reversed":0})", DType::kUInt8);
}

TEST(PictureSteps, APictureIsCutToTheCanvas) {
  EXPECT_EQ(extents_of(file_of(kFile)), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(painted(kFile, {2, 3, 1}), "abcdef");
  EXPECT_EQ(painted(kFile, {3, 4, 1}), "abc.def.....");
  EXPECT_EQ(painted(kFile, {1, 2, 1}), "ab");
  EXPECT_EQ(painted(kFile, {1, 2, 3}), "aaabbb");
  EXPECT_EQ(painted(kFile, {0, 2, 3}), "");
  const std::string colors = std::string("P6 1 1 255\n") + "rgb";
  EXPECT_EQ(painted(file_of(colors), {1, 1, 3}, R"({"reversed":1})", DType::kUInt8), "bgr");
}

TEST(PictureSteps, WhatIsNoPictureIsEmpty) {
  for (const std::string file : {"", "no picture", "P5 3 2 255\nabc", "P5 0 2 255\n"}) {
    EXPECT_EQ(extents_of(file_of(file)), (std::vector<int64_t>{0, 0})) << file;
    EXPECT_EQ(painted(file, {1, 2, 1}), "..") << file;
  }
}

TEST(PictureSteps, AClaimOfTooManyPixelsIsAnError) {
  EXPECT_THROW(extents_of(file_of("P5 60000 60000 255\nabc")), Error);
}

TEST(PictureSteps, ADeploymentDecodesCommonFilesAlone) {
  EXPECT_EQ(extents_of(file_of(kFile), true), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(extents_of(file_of("no picture"), true), (std::vector<int64_t>{0, 0}));
  const std::string tiff("II*\0....", 8), jpeg2000("\xff\x4f\xff\x51....");
  for (const std::string& file : {tiff, jpeg2000, std::string("RIFF....WEBP")}) {
    EXPECT_EQ(extents_of(file_of(file)), (std::vector<int64_t>{0, 0})) << file;
    EXPECT_THROW(extents_of(file_of(file), true), Error) << file;
  }
}

TEST(PictureSteps, PlansThatNoCompilerWritesAreRefused) {
  const TensorView rows = {DType::kUInt8, {1, static_cast<int64_t>(kFile.size())}, kFile.data()};
  EXPECT_THROW(extents_of(rows), Error);
  EXPECT_THROW(painted(rows, {2, 3, 1}, R"({"reversed":0})", DType::kUInt8), Error);
  EXPECT_THROW(painted(kFile, {2, 3, 2}), Error);
  EXPECT_THROW(painted(kFile, {6, 1}), Error);
  EXPECT_THROW(painted(file_of(kFile), {2, 3, 1}, "{}", DType::kUInt8), Error);
  EXPECT_THROW(painted(file_of(kFile), {2, 3, 1}, R"({"reversed":0})", DType::kInt8), Error);
}

}  // namespace
}  // namespace tensormill::host_ops
