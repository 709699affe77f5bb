#include "runtime/base/text.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/host_ops/text_case.h"
#include "runtime/npz/npz.h"

namespace tensormill {
namespace {

TensorView view_of(const Tensor& tensor) { return {tensor.dtype(), tensor.shape(), tensor.data()}; }

std::vector<std::string> strings_of(const Tensor& tensor) {
  const Texts texts(view_of(tensor));
  std::vector<std::string> all;
  for (int64_t i = 0; i < texts.count(); ++i) all.emplace_back(texts[i]);
  return all;
}

TEST(Text, TellsUtf8) {
  for (const char* good :
       {"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8c\xb2", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  // A lone continuation, overlong forms, a surrogate, past U+10FFFF, cut short.
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xc3", "\xe2\x82", "\xff"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

TEST(Text, PointsAndBytesAreTheSame) {
  const std::string text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\xb2";
  const std::u32string points = code_points(text);
  EXPECT_EQ(points, U"a\u00e4\u20ac\U0001f332");
  std::string back;
  for (const char32_t point : points) append_utf8(back, point);
  EXPECT_EQ(back, text);
  EXPECT_THROW(append_utf8(back, 0xd800), Error);
  EXPECT_THROW(append_utf8(back, 0x110000), Error);
  EXPECT_THROW(code_points("\xff"), Error);
}

TEST(Text, TensorsAreAsWideAsTheirLongestString) {
  const std::vector<std::string> texts{"one", "", "three", "\xc3\xa4"};
  const Tensor tensor = text_tensor({2, 2}, texts);
  EXPECT_EQ(tensor.shape(), (Shape{2, 2, 5}));
  EXPECT_EQ(shown_shape(tensor.dtype(), tensor.shape()), (Shape{2, 2}));
  EXPECT_EQ(strings_of(tensor), texts);
  EXPECT_EQ(strings_of(fitted_text(view_of(tensor), 9)), texts);
  EXPECT_THROW(fitted_text(view_of(tensor), 4), Error);
  EXPECT_THROW(text_tensor({1}, std::vector<std::string>{"\xff"}), Error);
  EXPECT_THROW(text_tensor({1}, std::vector<std::string>{std::string("a\0", 2)}), Error);
  std::vector<std::string> many(4097);
  many.back().assign(size_t{1} << 20, 'x');
  EXPECT_THROW(text_tensor({4097}, many), Error);
  EXPECT_EQ(text_tensor({0}, std::vector<std::string>{}).shape(), (Shape{0, 1}));
}

TEST(Text, NpzKeepsStrings) {
  const std::vector<std::string> texts{"one", "", "\xf0\x9f\x8c\xb2", "\xe2\x82\xac!"};
  const std::string file =
      npz::write_npz({{"t", text_tensor({4}, texts)}, {"s", text_tensor({}, std::vector<std::string>{""})}});
  const auto read = npz::read_npz(std::as_bytes(std::span(file)));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].tensor.dtype(), kString);
  EXPECT_EQ(strings_of(read[0].tensor), texts);
  EXPECT_EQ(shown_shape(kString, read[1].tensor.shape()), Shape{});
  EXPECT_EQ(strings_of(read[1].tensor), std::vector<std::string>{""});
}

TEST(Text, ChangesTheCaseOfLetters) {
  EXPECT_EQ(host_ops::upper_case("straw \xc3\xa4\xc3\xb7 \xce\xbb \xd1\x8f\xd1\x91 \xc5\xbe"),
            "STRAW \xc3\x84\xc3\xb7 \xce\x9b \xd0\xaf\xd0\x81 \xc5\xbd");
  EXPECT_EQ(host_ops::lower_case("\xc5\xb8 \xc4\xbf\xc3\x97"), "\xc3\xbf \xc5\x80\xc3\x97");
}

}  // namespace
}  // namespace tensormill
