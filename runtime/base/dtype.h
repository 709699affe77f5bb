/// Element types of tensors. A bool is one byte, 0 or 1. Floats are IEEE 754 (bf16: the upper half of f32).
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tensormill {

enum class DType : uint8_t {
#define TM_DTYPE(enumerator, name, numpy, bits, is_float, is_signed) enumerator,
#include "runtime/base/dtype.def"
#undef TM_DTYPE
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;   ///< short name of the IR text form: "f32"
  std::string_view numpy;  ///< numpy's type string without byte order: "f4"
  int bits;
  bool is_float;
  bool is_signed;
};

const DTypeInfo& dtype_info(DType dtype);
const std::vector<DTypeInfo>& all_dtypes();
/// "f32" -> kFloat32; nothing for an unknown name.
std::optional<DType> dtype_from_name(std::string_view name);
/// The name that the HTTP interface and KServe v2 use: "FP32", "INT64", "BOOL", "BF16".
std::string_view dtype_v2_name(DType dtype);
std::optional<DType> dtype_from_v2_name(std::string_view name);
/// numpy-like long name, as metadata shows it: "float32", "int64", "bool".
std::string_view dtype_long_name(DType dtype);
std::optional<DType> dtype_from_long_name(std::string_view name);

inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
inline size_t dtype_bytes(DType dtype) { return static_cast<size_t>(dtype_info(dtype).bits) / 8; }
inline bool is_float(DType dtype) { return dtype_info(dtype).is_float; }
inline bool is_integer(DType dtype) { return !dtype_info(dtype).is_float && dtype != DType::kBool; }

/// Half and bfloat16 conversions, round half to even, NaN stays NaN.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

/// Maps a C++ type to its DType.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kUInt16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kUInt32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kUInt64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

}  // namespace tensormill
