/// Bytes as hexadecimal text. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tensormill {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

/// Appends two digits.
inline void append_hex(std::string& text, uint8_t byte, std::string_view digits = kHexDigits) {
  text += digits[byte >> 4];
  text += digits[byte & 15];
}

/// Two lower-case digits for each byte.
inline std::string hex_text(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) append_hex(text, byte);
  return text;
}

}  // namespace tensormill
