#include "runtime/base/narrow.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/round_to_odd.h"

namespace tensormill {

namespace {

constexpr NarrowFloat kE4M3FN{3, 7, 7, 0x7e, 0x7f, 0x7f, false, true, false};
constexpr NarrowFloat kE4M3FNUZ{3, 8, 7, 0x7f, 0x80, 0x80, false, true, true};
constexpr NarrowFloat kE5M2{2, 15, 7, 0x7b, 0x7c, 0x7e, true, true, false};
constexpr NarrowFloat kE5M2FNUZ{2, 16, 7, 0x7f, 0x80, 0x80, false, true, true};
constexpr NarrowFloat kE2M1{1, 1, 3, 7, 7, 7, false, false, false};

uint8_t encode_power(float value, bool saturate, PowerRounding rounding) {
  const uint32_t bits = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  const uint32_t exponent = bits >> 23, fraction = bits & 0x7fffffu;
  if (exponent == 255) return 255;
  // Of the denormals, those past 2^-127 lie between the two smallest powers.
  const uint32_t exact = exponent == 0 ? 0x400000u : 0;
  const uint32_t half = exponent == 0 ? 0x600000u : 0x400000u;
  const bool up = rounding == PowerRounding::kUp        ? fraction > exact
                  : rounding == PowerRounding::kNearest ? fraction >= half
                                                        : false;
  const uint32_t code = exponent + (up ? 1 : 0);
  return static_cast<uint8_t>(code == 255 && saturate ? 254 : code);
}

}  // namespace

const NarrowFloat& narrow_float(DType dtype) {
  if (dtype == kFloat8E4M3FN) return kE4M3FN;
  if (dtype == kFloat8E4M3FNUZ) return kE4M3FNUZ;
  if (dtype == kFloat8E5M2) return kE5M2;
  if (dtype == kFloat8E5M2FNUZ) return kE5M2FNUZ;
  TM_CHECK(dtype == kFloat4E2M1, std::string(dtype_name(dtype)) + " is no narrow float");
  return kE2M1;
}

int64_t narrow_integer(DType dtype, int64_t bits) {
  const int64_t sign = int64_t{1} << (value_bits(dtype) - 1), low = bits & (2 * sign - 1);
  return dtype_info(dtype).is_signed ? (low ^ sign) - sign : low;
}

double decode_narrow(DType dtype, uint8_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (is_narrow_integer(dtype)) return static_cast<double>(narrow_integer(dtype, bits));
  if (dtype == kString) return bits;
  if (dtype == kFloat8E8M0) return bits == 255 ? kNan : std::ldexp(1.0, bits - 127);
  const NarrowFloat& format = narrow_float(dtype);
  const bool negative = ((bits >> format.sign_bit) & 1u) != 0;
  const int magnitude = bits & ((1 << format.sign_bit) - 1);
  if (format.one_zero && bits == format.nan) return kNan;
  if (magnitude > format.largest) {
    if (!format.has_infinity || magnitude != format.overflow) return kNan;
    const double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  const int exponent = magnitude >> format.mantissa_bits;
  const int fraction = magnitude & ((1 << format.mantissa_bits) - 1);
  const int whole = exponent == 0 ? fraction : fraction + (1 << format.mantissa_bits);
  const double value = std::ldexp(whole, (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

uint8_t encode_narrow(DType dtype, double value, bool saturate, PowerRounding rounding) {
  const float odd = rounded_to_odd(value);
  if (dtype == kFloat8E8M0) return encode_power(odd, saturate, rounding);
  const NarrowFloat& format = narrow_float(dtype);
  const uint32_t bits = std::bit_cast<uint32_t>(odd);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint8_t sign = static_cast<uint8_t>((bits >> 31) << format.sign_bit);
  if (magnitude > 0x7f800000u)
    return format.one_zero || !format.has_nan ? format.nan : static_cast<uint8_t>(format.nan | sign);
  const int shift = 23 - format.mantissa_bits;
  const uint32_t smallest_normal = static_cast<uint32_t>(128 - format.bias) << 23;
  uint32_t code = 0;
  if (magnitude >= smallest_normal) {
    const uint32_t odd_bit = (magnitude >> shift) & 1u;
    const uint32_t rounded = (magnitude + (1u << (shift - 1)) - 1 + odd_bit) >> shift;
    code = rounded - (static_cast<uint32_t>(127 - format.bias) << format.mantissa_bits);
  } else {
    const double unit = std::ldexp(1.0, format.bias - 1 + format.mantissa_bits);
    code = static_cast<uint32_t>(std::nearbyint(std::fabs(static_cast<double>(odd)) * unit));
  }
  if (code > format.largest) {
    if (!saturate && format.has_nan)
      return format.one_zero ? format.nan : static_cast<uint8_t>(format.overflow | sign);
    code = format.largest;
  }
  if (code == 0 && format.one_zero) return 0;
  return static_cast<uint8_t>(code | sign);
}

}  // namespace tensormill
