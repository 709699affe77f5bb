/// Percent-encoding of RFC 3986. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/hex.h"

namespace tensormill {

/// Everything but unreserved characters (A-Z a-z 0-9 - . _ ~) and those of `kept` becomes %XX.
inline std::string percent_encode(std::string_view text, std::string_view kept = {}) {
  constexpr std::string_view kUpperDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '.' || c == '_' || c == '~' ||
                          kept.find(c) != std::string_view::npos;
    if (is_plain) {
      encoded += c;
    } else {
      encoded += '%';
      append_hex(encoded, static_cast<uint8_t>(c), kUpperDigits);
    }
  }
  return encoded;
}

}  // namespace tensormill
