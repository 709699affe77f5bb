/// Elements of the narrow types: float8 (Micikevicius et al. 2022, "FP8 Formats for Deep Learning"; the fnuz
/// variants: Noune et al. 2022, "8-bit Numerical Formats for Deep Neural Networks"; e8m0 and e2m1: OCP
/// Microscaling Formats 1.0), int4, uint4, int2 and uint2. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tensormill {

/// The narrow types continue the enumeration of dtype.def. They are storage: elements are moved and
/// converted, nothing computes in them. Each takes one byte an element (DTypeInfo::bits is 8): a 4-bit float
/// stands in the low nibble, an int4 or int2 is sign-extended. Kernels see that byte as uint8 or int8.
enum class NarrowIndex : uint8_t {
#define TM_NARROW(constant, name, numpy, is_float, is_signed, long_name, v2_name) constant,
#include "runtime/base/narrow.def"
#undef TM_NARROW
};
inline constexpr uint8_t kFirstNarrow = static_cast<uint8_t>(DType::kBool) + 1;
#define TM_NARROW(constant, name, numpy, is_float, is_signed, long_name, v2_name) \
  inline constexpr DType constant = DType{kFirstNarrow + static_cast<uint8_t>(NarrowIndex::constant)};
#include "runtime/base/narrow.def"
#undef TM_NARROW

/// Whether the type is a float8 variant, has 4 bits, or is that of strings' bytes.
constexpr bool is_narrow(DType dtype) { return dtype > DType::kBool; }
/// Bits that the values of a type have.
inline int value_bits(DType dtype) {
  if (dtype == kInt2 || dtype == kUInt2) return 2;
  return dtype == kInt4 || dtype == kUInt4 || dtype == kFloat4E2M1 ? 4 : dtype_info(dtype).bits;
}
/// Whether the type is an integer of 4 or 2 bits.
constexpr bool is_narrow_integer(DType dtype) {
  return dtype == kInt4 || dtype == kUInt4 || dtype == kInt2 || dtype == kUInt2;
}
/// The value of a narrow integer type that has the low bits of `bits`.
int64_t narrow_integer(DType dtype, int64_t bits);
/// What kernels read and write: the type itself, or the byte of a narrow one.
constexpr DType storage_dtype(DType dtype) {
  if (!is_narrow(dtype)) return dtype;
  return dtype == kInt4 || dtype == kInt2 ? DType::kInt8 : DType::kUInt8;
}
/// Whether bytes announced as `given` may be read as `wanted`: the type itself, or, for a narrow one, bytes
/// of any kind, since numpy has no names for these types.
constexpr bool dtype_fits(DType wanted, DType given) {
  if (wanted == given) return true;
  if (wanted == kString || given == kString) return false;
  const bool is_byte = is_narrow(given) || given == DType::kUInt8 || given == DType::kInt8;
  return is_narrow(wanted) && is_byte;
}

/// A float of a sign, an exponent and `mantissa_bits`, as IEEE 754 lays them out, with these special codes.
struct NarrowFloat {
  int mantissa_bits = 0;
  int bias = 0;
  int sign_bit = 7;
  uint8_t largest = 0;   ///< code of the largest finite value
  uint8_t overflow = 0;  ///< code of what is larger, unsaturated, and of infinity; the sign is added
  uint8_t nan = 0;       ///< of either sign
  bool has_infinity = false;
  bool has_nan = true;
  bool one_zero = false;  ///< fnuz: neither -0 nor signed NaNs
};
/// The format of a float type with a sign: not e8m0.
const NarrowFloat& narrow_float(DType dtype);

/// How a value between two powers of two becomes e8m0; kNearest takes halves up.
enum class PowerRounding : uint8_t { kUp, kDown, kNearest };

/// The value of a byte; bits beyond the type's width are ignored.
double decode_narrow(DType dtype, uint8_t bits);
/// `value` rounded half to even to a narrow float type. What is too large becomes the largest value with its
/// sign when `saturate`, else infinity or NaN, as the type has. float4 has no NaN: a NaN becomes 6. e8m0
/// holds the magnitude; zero is its smallest power.
uint8_t encode_narrow(DType dtype, double value, bool saturate = true,
                      PowerRounding rounding = PowerRounding::kUp);

}  // namespace tensormill
