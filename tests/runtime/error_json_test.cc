// Errors between processes; names and hexadecimal text, which all rooms share.
#include "runtime/base/error_json.h"

#include <gtest/gtest.h>

#include <array>

#include "runtime/base/hex.h"
#include "runtime/base/json.h"
#include "runtime/base/names.h"

namespace tensormill {
namespace {

TEST(ErrorJson, SaysAllOfAnError) {
  Error error(ErrorCode::kOperatorNotImplemented, "no Foo", {{"/node/3", "Foo"}, {"/node/4", "Bar"}});
  error.set_extra_json(R"({"model":{"ops":{"Foo":1}}})");
  const Error back = error_from_json(parse_json(error_to_json(error)));
  EXPECT_EQ(back.code(), error.code());
  EXPECT_EQ(back.message(), error.message());
  EXPECT_EQ(back.extra_json(), error.extra_json());
  ASSERT_EQ(back.details().size(), 2u);
  EXPECT_EQ(back.details()[1].pointer, "/node/4");
  EXPECT_EQ(back.details()[1].detail, "Bar");
}

TEST(ErrorJson, WordsNeedNotBeUtf8NorKnown) {
  EXPECT_EQ(error_from_json(parse_json(error_to_json(Error(ErrorCode::kIo, "a\xff")))).message(),
            "a\xef\xbf\xbd");
  EXPECT_EQ(error_from_json(parse_json(R"({"code":"of_tomorrow","message":""})")).code(),
            ErrorCode::kInternal);
  for (const char* text : {"{}", "[]", R"({"code":1,"message":"m"})", R"({"code":"io_error"})",
                           R"({"code":"io_error","message":"m","details":[1]})"})
    EXPECT_THROW(error_from_json(parse_json(text)), Json::exception) << text;
}

TEST(Names, AreOneKind) {
  EXPECT_TRUE(is_name("resnet-50_v1.5"));
  EXPECT_TRUE(is_name("7"));
  EXPECT_TRUE(is_name(std::string(128, 'a')));
  for (const std::string& bad :
       {std::string(), std::string(129, 'a'), std::string(".a"), std::string("-a"), std::string("_a"),
        std::string("a/b"), std::string("a b"), std::string("a\0", 2), std::string("\xc3\xa9")})
    EXPECT_FALSE(is_name(bad)) << bad;
}

TEST(Hex, TwoDigitsAByte) {
  const std::array<uint8_t, 4> bytes = {0x00, 0x0f, 0xa0, 0xff};
  EXPECT_EQ(hex_text(bytes), "000fa0ff");
  EXPECT_EQ(hex_text({}), "");
}

}  // namespace
}  // namespace tensormill
