/// Codes of the narrow types against their definitions.
#include "runtime/base/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/tensor.h"

namespace tensormill {
namespace {

constexpr DType kSigned[] = {kFloat8E4M3FN, kFloat8E4M3FNUZ, kFloat8E5M2, kFloat8E5M2FNUZ, kFloat4E2M1};

TEST(Narrow, EveryCodeIsItsOwnValue) {
  for (const DType dtype : kSigned) {
    for (int code = 0; code < 1 << value_bits(dtype); ++code) {
      const double value = decode_narrow(dtype, static_cast<uint8_t>(code));
      const uint8_t again = encode_narrow(dtype, value, false);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode_narrow(dtype, again))) << code;
      } else {
        EXPECT_EQ(again, code) << dtype_name(dtype);
      }
    }
  }
}

TEST(Narrow, KnownValues) {
  EXPECT_EQ(decode_narrow(kFloat8E4M3FN, 0x7e), 448);
  EXPECT_EQ(decode_narrow(kFloat8E4M3FN, 0x01), 0x1p-9);
  EXPECT_EQ(decode_narrow(kFloat8E4M3FNUZ, 0x7f), 240);
  EXPECT_EQ(decode_narrow(kFloat8E5M2, 0x7b), 57344);
  EXPECT_EQ(decode_narrow(kFloat8E5M2, 0xfc), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(decode_narrow(kFloat8E5M2FNUZ, 0x01), 0x1p-17);
  EXPECT_EQ(decode_narrow(kFloat4E2M1, 0x0f), -6);
  EXPECT_EQ(decode_narrow(kFloat8E8M0, 0x7f), 1);
  EXPECT_EQ(decode_narrow(kInt4, 0x78), -8);
  EXPECT_EQ(decode_narrow(kUInt4, 0xff), 15);
}

TEST(Narrow, WhatIsTooLargeSaturatesOrDoesNot) {
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, -1e9), 0xfe);
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, -1e9, false), 0xff);
  EXPECT_EQ(encode_narrow(kFloat8E5M2, 1e300, false), 0x7c);
  EXPECT_EQ(encode_narrow(kFloat8E4M3FNUZ, 1e300, false), 0x80);
  EXPECT_EQ(encode_narrow(kFloat4E2M1, std::nan("")), 7);
  EXPECT_EQ(encode_narrow(kFloat8E5M2FNUZ, -0.0), 0);
}

TEST(Narrow, HalvesGoToEvenAndDoublesRoundOnce) {
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, 1.0625), 0x38);
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, 1.1875), 0x3a);
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, 1.0625 + 0x1p-40), 0x39);
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, 0x1p-10), 0);
  EXPECT_EQ(encode_narrow(kFloat8E4M3FN, 0x1p-10 * 1.5), 1);
}

TEST(Narrow, ElementsOfTensors) {
  Tensor tensor(kInt4, {3});
  EXPECT_EQ(tensor.num_bytes(), 3u);
  tensor.set_element_int(0, 9);
  tensor.set_element(1, -3.0);
  tensor.set_element_int(2, 0x105);
  EXPECT_EQ(tensor.element_as_int(0), -7);
  EXPECT_EQ(tensor.element_as_int(1), -3);
  EXPECT_EQ(tensor.element_as_int(2), 5);
  Tensor eighths(kFloat8E5M2, {1});
  eighths.set_element(0, 1.25);
  EXPECT_EQ(eighths.element_as_double(0), 1.25);
}

TEST(Narrow, BytesFitWhereNumpyHasNoName) {
  EXPECT_TRUE(dtype_fits(kFloat8E5M2, DType::kUInt8));
  EXPECT_TRUE(dtype_fits(kInt4, kFloat8E4M3FN));
  EXPECT_FALSE(dtype_fits(DType::kUInt8, kFloat8E5M2));
  EXPECT_FALSE(dtype_fits(kUInt4, DType::kBool));
}

}  // namespace
}  // namespace tensormill
