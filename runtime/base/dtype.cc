#include "runtime/base/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/narrow.h"

namespace tensormill {

const std::vector<DTypeInfo>& all_dtypes() {
  static const std::vector<DTypeInfo> rows = {
#define TM_DTYPE(enumerator, name, numpy, bits, is_float, is_signed) \
  {DType::enumerator, name, numpy, bits, is_float, is_signed},
#include "runtime/base/dtype.def"
#undef TM_DTYPE
#define TM_NARROW(constant, name, numpy, is_float, is_signed, long_name, v2_name) \
  {constant, name, numpy, 8, is_float, is_signed},
#include "runtime/base/narrow.def"
#undef TM_NARROW
  };
  return rows;
}

const DTypeInfo& dtype_info(DType dtype) { return all_dtypes()[static_cast<size_t>(dtype)]; }

namespace {

struct LongNames {
  DType dtype;
  std::string_view long_name;
  std::string_view v2_name;
};

constexpr std::array<LongNames, 24> kLongNames = {{
    {DType::kFloat32, "float32", "FP32"},
    {DType::kFloat64, "float64", "FP64"},
    {DType::kFloat16, "float16", "FP16"},
    {DType::kBFloat16, "bfloat16", "BF16"},
    {DType::kInt8, "int8", "INT8"},
    {DType::kInt16, "int16", "INT16"},
    {DType::kInt32, "int32", "INT32"},
    {DType::kInt64, "int64", "INT64"},
    {DType::kUInt8, "uint8", "UINT8"},
    {DType::kUInt16, "uint16", "UINT16"},
    {DType::kUInt32, "uint32", "UINT32"},
    {DType::kUInt64, "uint64", "UINT64"},
    {DType::kBool, "bool", "BOOL"},
#define TM_NARROW(constant, name, numpy, is_float, is_signed, long_name, v2_name) \
  {constant, long_name, v2_name},
#include "runtime/base/narrow.def"
#undef TM_NARROW
}};

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string_view dtype_v2_name(DType dtype) { return kLongNames[static_cast<size_t>(dtype)].v2_name; }

std::optional<DType> dtype_from_v2_name(std::string_view name) {
  for (const LongNames& row : kLongNames) {
    if (row.v2_name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string_view dtype_long_name(DType dtype) { return kLongNames[static_cast<size_t>(dtype)].long_name; }

std::optional<DType> dtype_from_long_name(std::string_view name) {
  for (const LongNames& row : kLongNames) {
    if (row.long_name == name) return row.dtype;
  }
  return std::nullopt;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  // 65520 is the first float that rounds to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Denormal half: the addition of 0.5 aligns the mantissa and rounds half to even in hardware.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace tensormill
