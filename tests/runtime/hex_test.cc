// Hexadecimal text and percent-encoding.
#include "runtime/base/hex.h"

#include <gtest/gtest.h>

#include <array>

#include "runtime/base/percent.h"

namespace tensormill {
namespace {

TEST(Hex, IsReadAsItIsWritten) {
  const std::array<uint8_t, 3> bytes = {0x00, 0x9a, 0xff};
  EXPECT_EQ(hex_text(bytes), "009aff");
  std::array<uint8_t, 3> read{};
  EXPECT_TRUE(hex_bytes("009aff", read));
  EXPECT_EQ(read, bytes);
  for (const char* wrong : {"", "009af", "009aff0", "009aff00", "009aFF", "009afg", "009a f", "-09aff"})
    EXPECT_FALSE(hex_bytes(wrong, read)) << wrong;
}

TEST(Hex, DigitsHaveACaseUnlessToldOtherwise) {
  EXPECT_EQ(hex_digit('f'), 15);
  EXPECT_EQ(hex_digit('F'), -1);
  EXPECT_EQ(hex_digit_of_any_case('F'), 15);
  EXPECT_EQ(hex_digit_of_any_case('a'), 10);
  for (const char wrong : {'g', 'G', '/', ':', '@', '`', ' ', '\0'}) {
    EXPECT_EQ(hex_digit(wrong), -1) << wrong;
    EXPECT_EQ(hex_digit_of_any_case(wrong), -1) << wrong;
  }
}

TEST(Hex, IsTextOfLowerCaseDigitsAlone) {
  for (const char* right : {"", "0", "0123456789abcdef"}) EXPECT_TRUE(is_hex(right)) << right;
  for (const char* wrong : {"A", "0g", "/0", "0:", "a`", " 0"}) EXPECT_FALSE(is_hex(wrong)) << wrong;
}

TEST(Percent, LeavesUnreservedCharactersAndThoseThatAreKept) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("a b/\xC3\xA9%+"), "a%20b%2F%C3%A9%25%2B");
  EXPECT_EQ(percent_encode("a b/c", "/"), "a%20b/c");
}

}  // namespace
}  // namespace tensormill
