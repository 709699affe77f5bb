#include "storage/catalog/uuid7.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/base/hex.h"

namespace tensormill::storage {

std::string make_uuid7(int64_t unix_ms) {
  std::array<uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw_errno(errno, "cannot get random bytes");
  }
  for (int i = 0; i < 6; ++i) bytes[i] = static_cast<uint8_t>(unix_ms >> (8 * (5 - i)));
  bytes[6] = static_cast<uint8_t>(0x70 | (bytes[6] & 0x0f));
  bytes[8] = static_cast<uint8_t>(0x80 | (bytes[8] & 0x3f));
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    append_hex(text, bytes[i]);
  }
  return text;
}

bool is_uuid7(std::string_view text) {
  if (text.size() != 36 || text[14] != '7') return false;
  if (text[19] != '8' && text[19] != '9' && text[19] != 'a' && text[19] != 'b') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : kHexDigits.find(text[i]) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace tensormill::storage
