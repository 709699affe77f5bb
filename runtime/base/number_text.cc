#include "runtime/base/number_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/round_to_odd.h"

namespace tensormill {
namespace {

/// Integers of `dtype`, or of the byte of a narrow type.
struct Range {
  int64_t low = 0;
  uint64_t high = 0;
};

Range range_of(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  const int bits = value_bits(dtype);
  if (!dtype_info(dtype).is_signed) return {0, std::numeric_limits<uint64_t>::max() >> (64 - bits)};
  const uint64_t high = (uint64_t{1} << (bits - 1)) - 1;
  return {-static_cast<int64_t>(high) - 1, high};
}

bool is_whole(std::string_view text) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  return text.size() > first && std::all_of(text.begin() + static_cast<int64_t>(first), text.end(),
                                            [](char c) { return c >= '0' && c <= '9'; });
}

/// An integer of 64 bits, as two's complement, which it is in all that they have.
std::optional<uint64_t> whole_within(const Range& range, std::string_view text) {
  const char* end = text.data() + text.size();
  if (text.front() == '-') {
    int64_t value = 0;
    const bool read = std::from_chars(text.data(), end, value).ec == std::errc();
    if (!read || value < range.low) return std::nullopt;
    return static_cast<uint64_t>(value);
  }
  uint64_t value = 0;
  const bool read = std::from_chars(text.data(), end, value).ec == std::errc();
  if (!read || value > range.high) return std::nullopt;
  return value;
}

NumberFit store_whole(DType dtype, std::string_view text, void* element) {
  if (dtype == DType::kBool && (text == "true" || text == "false")) text = text == "true" ? "1" : "0";
  if (!is_whole(text)) return NumberFit::kNotOfType;
  const std::optional<uint64_t> value = whole_within(range_of(dtype), text);
  if (!value) return NumberFit::kOutOfRange;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(element, &*value, dtype_bytes(dtype));
  return NumberFit::kFits;
}

template <typename T>
std::optional<T> nearest(std::string_view text) {
  if (text.empty()) return std::nullopt;
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return std::isfinite(value) ? std::optional<T>(value) : std::nullopt;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  // Too large and too small are one error there; C tells them apart.
  const std::string copy(text);
  if constexpr (sizeof(T) == sizeof(float)) {
    value = std::strtof(copy.c_str(), nullptr);
  } else {
    value = std::strtod(copy.c_str(), nullptr);
  }
  return std::isfinite(value) ? std::optional<T>(value) : std::nullopt;
}

/// A narrow float that is neither the type's infinity nor its NaN; what only rounds down to the largest is
/// one.
std::optional<uint8_t> narrow_within(DType dtype, double value) {
  if (dtype == kFloat8E8M0 && std::signbit(value) && value != 0) return std::nullopt;
  const uint8_t code = encode_narrow(dtype, value, false);
  const double back = decode_narrow(dtype, code);
  if (!std::isfinite(back)) return std::nullopt;
  if (dtype == kFloat4E2M1) {
    // Without infinity and NaN, what is too large ends at the largest, 6; 7 would be its tie with 8.
    constexpr double kTie = 7;
    if (std::abs(value) >= kTie) return std::nullopt;
  }
  return code;
}

NumberFit store_real(DType dtype, std::string_view text, void* element) {
  const std::optional<double> exact = nearest<double>(text);
  if (!exact) {
    const bool is_number =
        !text.empty() && text.find_first_not_of("+-.eE0123456789") == std::string_view::npos;
    return is_number ? NumberFit::kOutOfRange : NumberFit::kNotOfType;
  }
  if (is_narrow(dtype)) {
    const std::optional<uint8_t> code = narrow_within(dtype, *exact);
    if (!code) return NumberFit::kOutOfRange;
    std::memcpy(element, &*code, sizeof *code);
    return NumberFit::kFits;
  }
  if (dtype == DType::kFloat64) {
    std::memcpy(element, &*exact, sizeof *exact);
    return NumberFit::kFits;
  }
  const bool half = dtype == DType::kFloat16;
  const float odd = rounded_to_odd(*exact);
  const uint16_t bits = half ? float_to_half(odd) : float_to_bfloat16(odd);
  if (!std::isfinite(half ? half_to_float(bits) : bfloat16_to_float(bits))) return NumberFit::kOutOfRange;
  std::memcpy(element, &bits, sizeof bits);
  return NumberFit::kFits;
}

}  // namespace

std::optional<double> nearest_double(std::string_view text) { return nearest<double>(text); }

NumberFit store_number(DType dtype, std::string_view text, void* element) {
  if (dtype == DType::kFloat32) {
    if (const std::optional<float> value = nearest<float>(text)) {
      std::memcpy(element, &*value, sizeof *value);
      return NumberFit::kFits;
    }
    return number_fit(DType::kFloat64, text) == NumberFit::kNotOfType ? NumberFit::kNotOfType
                                                                      : NumberFit::kOutOfRange;
  }
  if (dtype == kString) return NumberFit::kNotOfType;
  return is_float(dtype) ? store_real(dtype, text, element) : store_whole(dtype, text, element);
}

NumberFit number_fit(DType dtype, std::string_view text) {
  uint64_t scratch = 0;
  return store_number(dtype, text, &scratch);
}

std::string describe_misfit(DType dtype, std::string_view text, NumberFit fit) {
  constexpr size_t kShown = 40;
  std::string shown = "is " + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
  const std::string type(dtype_v2_name(dtype));
  if (fit != NumberFit::kOutOfRange) return shown + ", not a value of " + type;
  shown += ", which is outside the range of " + type;
  if (is_float(dtype)) return shown;
  const Range range = range_of(dtype);
  return shown + ", " + std::to_string(range.low) + " to " + std::to_string(range.high);
}

std::optional<int64_t> first_misfit(DType dtype, const void* data, int64_t count) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  const auto first = [&](const auto& fits) -> std::optional<int64_t> {
    const uint8_t* found = std::find_if_not(bytes, bytes + count, fits);
    return found == bytes + count ? std::nullopt : std::optional<int64_t>(found - bytes);
  };
  if (dtype == DType::kBool) return first([](uint8_t byte) { return byte <= 1; });
  if (dtype == kFloat4E2M1) return first([](uint8_t byte) { return byte <= 15; });
  if (!is_narrow_integer(dtype)) return std::nullopt;
  return first([dtype](uint8_t byte) {
    return static_cast<uint8_t>(narrow_integer(dtype, static_cast<int64_t>(byte))) == byte;
  });
}

void check_elements(DType dtype, const void* data, int64_t count, const std::string& where) {
  const std::optional<int64_t> misfit = first_misfit(dtype, data, count);
  if (!misfit) return;
  const int byte = static_cast<const uint8_t*>(data)[*misfit];
  throw Error(ErrorCode::kInvalidTensor, where + ": element " + std::to_string(*misfit) + " is byte " +
                                             std::to_string(byte) + ", no value of " +
                                             std::string(dtype_long_name(dtype)));
}

}  // namespace tensormill
