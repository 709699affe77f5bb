#include "runtime/base/base64.h"

#include <cstdint>

namespace tensormill {
namespace {

int value_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  if (letter == '+' || letter == '-') return 62;
  return letter == '/' || letter == '_' ? 63 : -1;
}

}  // namespace

std::string from_base64(std::string_view text, ErrorCode wrong) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int value = value_of(text[i]);
    if (value < 0) throw Error(wrong, "letter " + std::to_string(i) + " of a text is not of base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  if (count == 6) throw Error(wrong, "a text of base64 is cut off");
  return bytes;
}

}  // namespace tensormill
