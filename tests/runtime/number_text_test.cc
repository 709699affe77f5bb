// Numbers as text: every type, at and past the ends of its range. Nothing wraps.
#include "runtime/base/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/narrow.h"
#include "runtime/base/tensor.h"

namespace tensormill {
namespace {

struct Case {
  DType dtype;
  std::vector<const char*> fit, out_of_range, not_of_type;
};

const std::vector<Case> kCases = {
    {DType::kBool,
     {"true", "false", "0", "1"},
     {"2", "-1", "256", "18446744073709551616"},
     {"1.0", "0.5", "1e0", "x", ""}},
    {DType::kInt8,
     {"-128", "127", "0", "-0"},
     {"300", "128", "-129", "1000000000000000000000"},
     {"1.5", "1e1", "true"}},
    {DType::kUInt8, {"0", "255", "-0"}, {"256", "-1"}, {"0.0"}},
    {DType::kInt16, {"-32768", "32767"}, {"32768", "-32769"}, {"1.5"}},
    {DType::kUInt16, {"65535"}, {"65536", "-1"}, {"1.5"}},
    {DType::kInt32, {"-2147483648", "2147483647"}, {"2147483648", "-2147483649"}, {"1.5", "false"}},
    {DType::kUInt32, {"4294967295"}, {"4294967296", "-1"}, {"1.5"}},
    {DType::kInt64,
     {"-9223372036854775808", "9223372036854775807"},
     {"9223372036854775808", "-9223372036854775809"},
     {"1e3"}},
    {DType::kUInt64,
     {"18446744073709551615", "-0"},
     {"18446744073709551616", "-1", "-9223372036854775809"},
     {"1.5"}},
    {kInt4, {"-8", "7"}, {"8", "-9"}, {"1.5"}},
    {kUInt4, {"15"}, {"16", "-1"}, {"1.5"}},
    {kInt2, {"-2", "1"}, {"2", "-3"}, {"0.5"}},
    {kUInt2, {"3"}, {"4", "-1"}, {"0.5"}},
    {DType::kFloat32,
     {"3.4028234663852886e38", "3.40282356e38", "1e-50", "-0", "16777217"},
     {"1e39", "-1e39", "3.4028235677973367e38", "1e400"},
     {"true", "nan", "inf", ""}},
    {DType::kFloat64,
     {"1.7976931348623157e308", "1e-400", "9007199254740993"},
     {"1e309", "-1e400"},
     {"true", "x"}},
    {DType::kFloat16, {"65504", "65519.9", "-65504", "1e-30"}, {"65520", "1e5", "-70000", "1e400"}, {"true"}},
    {DType::kBFloat16, {"3.3895313892515355e38", "1e-45"}, {"3.4e38", "1e39"}, {"true"}},
    {kFloat8E4M3FN, {"448", "464", "-448"}, {"465", "1e10"}, {"true"}},
    {kFloat8E4M3FNUZ, {"240"}, {"248", "-1e10"}, {"true"}},
    {kFloat8E5M2, {"57344"}, {"61440", "1e30"}, {"true"}},
    {kFloat8E5M2FNUZ, {"57344"}, {"61440"}, {"true"}},
    {kFloat8E8M0, {"1", "0.25"}, {"1e40", "-1"}, {"true"}},
    {kFloat4E2M1, {"6", "6.9", "-6"}, {"7", "8", "-100"}, {"true"}},
    {kString, {}, {}, {"1", "x"}},
};

TEST(NumberText, EveryTypeAtTheEndsOfItsRange) {
  std::set<DType> seen;
  for (const Case& one : kCases) {
    seen.insert(one.dtype);
    const std::string type(dtype_name(one.dtype));
    for (const char* text : one.fit)
      EXPECT_EQ(number_fit(one.dtype, text), NumberFit::kFits) << type << " " << text;
    for (const char* text : one.out_of_range)
      EXPECT_EQ(number_fit(one.dtype, text), NumberFit::kOutOfRange) << type << " " << text;
    for (const char* text : one.not_of_type)
      EXPECT_EQ(number_fit(one.dtype, text), NumberFit::kNotOfType) << type << " " << text;
  }
  for (const DTypeInfo& info : all_dtypes()) EXPECT_TRUE(seen.contains(info.dtype)) << info.name;
}

TEST(NumberText, WhatFitsIsStored) {
  const auto stored = [](DType dtype, const char* text) {
    Tensor tensor = Tensor::zeros(dtype, {2});
    EXPECT_EQ(store_number(dtype, text, tensor.data()), NumberFit::kFits) << text;
    EXPECT_EQ(tensor.element_as_double(1), 0) << "the neighbour of " << text;
    return tensor;
  };
  EXPECT_EQ(stored(DType::kInt8, "-128").element_as_int(0), -128);
  EXPECT_EQ(stored(DType::kInt64, "-9223372036854775808").element_as_int(0),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(stored(DType::kUInt64, "18446744073709551615").element_as_int(0), -1);
  EXPECT_EQ(stored(DType::kBool, "true").element_as_int(0), 1);
  EXPECT_EQ(stored(kInt4, "-8").element_as_int(0), -8);
  EXPECT_TRUE(std::signbit(stored(DType::kFloat32, "-0").element_as_double(0)));
  EXPECT_EQ(stored(DType::kFloat32, "0.1").element_as_double(0), 0.1f);
  EXPECT_EQ(stored(DType::kFloat64, "1e-400").element_as_double(0), 0);
  EXPECT_EQ(stored(DType::kFloat64, "4.9e-324").element_as_double(0), 5e-324);
  // One rounding: through the double next to it these would be ties, and through float32 the half as well.
  EXPECT_EQ(stored(DType::kFloat32, "1.00000005960464477540").element_as_double(0), 1.00000012f);
  EXPECT_EQ(stored(DType::kFloat16, "1.00048828126").element_as_double(0), 1.0009765625);
  EXPECT_EQ(stored(DType::kBFloat16, "1.00390625001").element_as_double(0), 1.0078125);
}

TEST(NumberText, MisfitsAreDescribed) {
  EXPECT_EQ(describe_misfit(DType::kInt8, "300", NumberFit::kOutOfRange),
            "is 300, which is outside the range of INT8, -128 to 127");
  EXPECT_EQ(describe_misfit(DType::kFloat32, "1e39", NumberFit::kOutOfRange),
            "is 1e39, which is outside the range of FP32");
  EXPECT_EQ(describe_misfit(DType::kInt32, "1.5", NumberFit::kNotOfType), "is 1.5, not a value of INT32");
  EXPECT_LT(describe_misfit(DType::kInt32, std::string(4000, '1'), NumberFit::kOutOfRange).size(), 200u);
}

TEST(NumberText, BytesThatAreNoValues) {
  for (const DTypeInfo& info : all_dtypes()) {
    std::vector<uint8_t> bytes(256 * dtype_bytes(info.dtype));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
    const auto first = first_misfit(info.dtype, bytes.data(), 256);
    const std::optional<int64_t> expected = info.dtype == DType::kBool ? 2
                                            : info.dtype == kInt4      ? 8
                                            : info.dtype == kInt2      ? 2
                                            : info.dtype == kUInt2     ? 4
                                            : info.dtype == kUInt4 || info.dtype == kFloat4E2M1
                                                ? 16
                                                : std::optional<int64_t>();
    EXPECT_EQ(first, expected) << info.name;
  }
  const uint8_t minus_eight = 0xf8;
  EXPECT_EQ(first_misfit(kInt4, &minus_eight, 1), std::nullopt);
}

}  // namespace
}  // namespace tensormill
