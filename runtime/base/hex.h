/// Bytes as hexadecimal text, and back. Thread-safety: pure functions.
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

/// The value of a lower-case digit; -1 for anything else.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// The value of a digit in either case; -1 for anything else.
constexpr int hex_digit_of_any_case(char c) {
  return hex_digit(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
}

/// Whether lower-case digits are all that it has; true of an empty text.
constexpr bool is_hex(std::string_view text) {
  for (const char c : text) {
    if (hex_digit(c) < 0) return false;
  }
  return true;
}

/// What hex_text makes of bytes as bytes again; false where `text` is not two lower-case digits for each of
/// them, and then they are anything.
inline bool hex_bytes(std::string_view text, std::span<uint8_t> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

}  // namespace tensormill
