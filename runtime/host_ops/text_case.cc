#include "runtime/host_ops/text_case.h"

#include <array>

#include "runtime/base/text.h"

namespace tensormill::host_ops {

namespace {

/// Upper case letters first ... last; the lower case one of each is `distance` further. In a row of pairs
/// every second code point is an upper case letter.
struct Letters {
  char32_t first, last, distance;
  bool pairs;
};

constexpr std::array<Letters, 18> kLetters = {{
    {U'A', U'Z', 32, false},
    {0xc0, 0xd6, 32, false},
    {0xd8, 0xde, 32, false},
    {0x100, 0x12e, 1, true},
    {0x132, 0x136, 1, true},
    {0x139, 0x147, 1, true},
    {0x14a, 0x176, 1, true},
    {0x179, 0x17d, 1, true},
    {0x386, 0x386, 38, false},
    {0x388, 0x38a, 37, false},
    {0x38c, 0x38c, 64, false},
    {0x38e, 0x38f, 63, false},
    {0x391, 0x3a1, 32, false},
    {0x3a3, 0x3ab, 32, false},
    {0x400, 0x40f, 80, false},
    {0x410, 0x42f, 32, false},
    {0x460, 0x480, 1, true},
    {0x48a, 0x4be, 1, true},
}};

bool holds(const Letters& row, char32_t upper) {
  return upper >= row.first && upper <= row.last && (!row.pairs || (upper - row.first) % 2 == 0);
}

std::string mapped(std::string_view text, char32_t (*map)(char32_t)) {
  std::string result;
  for (const char32_t point : code_points(text)) append_utf8(result, map(point));
  return result;
}

}  // namespace

char32_t lower_point(char32_t point) {
  if (point == 0x178) return 0xff;
  for (const Letters& row : kLetters) {
    if (holds(row, point)) return point + row.distance;
  }
  return point;
}

char32_t upper_point(char32_t point) {
  if (point == 0xff) return 0x178;
  for (const Letters& row : kLetters) {
    if (point >= row.distance && holds(row, point - row.distance)) return point - row.distance;
  }
  return point;
}

std::string lower_case(std::string_view text) { return mapped(text, &lower_point); }
std::string upper_case(std::string_view text) { return mapped(text, &upper_point); }

}  // namespace tensormill::host_ops
