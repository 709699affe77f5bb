// The JSON reader: strict, linear, in pieces, within limits.
#include "runtime/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "runtime/base/error.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/own_json.h"
#include "tests/expect_error.h"

namespace tensormill {
namespace {

using testing::HasSubstr;

std::string message_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, limits);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

/// Pieces of `size` bytes.
class PiecesOf : public JsonText {
public:
  PiecesOf(std::string_view text, size_t size) : text_(text), size_(size) {}
  std::string_view next() override {
    // Each piece where it is alone, so that a sanitizer sees a read past it.
    piece_ = std::string(text_.substr(0, size_));
    text_.remove_prefix(piece_.size());
    return piece_;
  }

private:
  std::string_view text_;
  size_t size_;
  std::string piece_;
};

/// `head`, then `unit` as often as it is asked for, which counts.
class Endless : public JsonText {
public:
  Endless(std::string head, const std::string& unit) : head_(std::move(head)) {
    while (unit_.size() < 65536) unit_ += unit;
  }
  std::string_view next() override {
    if (pieces++ == 0) return head_;
    return unit_;
  }
  size_t pieces = 0;

private:
  std::string head_, unit_;
};

Json in_pieces(std::string_view text, size_t size) {
  PiecesOf pieces(text, size);
  JsonBuilder builder;
  JsonReader(pieces, builder).read();
  return builder.take();
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

const std::vector<std::string> kGood = {
    "null",
    "true",
    " [ ] ",
    "{}",
    "0",
    "-0",
    "-0.0",
    "18446744073709551615",
    "-9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "1e308",
    "1.7976931348623157e308",
    "5e-324",
    "1e-400",
    "0.1",
    "123456789012345678901234567890e-25",
    "[1.5,2E+3,-4e-2,1e5]",
    R"({"a":[{"b":[[],{},[1,"x"]]}],"c":"\u00e9\ud83d\ude00\n\/","":0,"a~/":"é😀"})",
    "[[1,2],[3,4],\n\t [true,false,null]]\r\n",
    R"("\u0000")",
};

const std::vector<std::string> kBad = {
    "",
    " ",
    "[",
    "[1,]",
    "[,1]",
    "{\"a\":1,}",
    "{\"a\"}",
    "{a:1}",
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "--1",
    "NaN",
    "[Infinity]",
    "-Infinity",
    "nul",
    "truex",
    "1 2",
    "{} x",
    "[1]]",
    "'a'",
    "\"a",
    "\"\\x\"",
    "\"\\u12\"",
    "\"a\tb\"",
    R"("\ud800")",
    R"("\udc00")",
    R"("\ud800\u0041")",
    "\"\xff\"",
    "\"\xc0\xaf\"",
    "\"\xed\xa0\x80\"",
    "\"\xf4\x90\x80\x80\"",
    R"({"a":1,"a":2})",
    R"([{"b":{"x":1,"y":2,"x":3}}])",
    R"({"a":1,"\u0061":2})",
    "1e400",
    "-1e309",
    "[1,2//\n]",
    "/**/1",
    "\xef[1]",
    "\xef\xbb[1]",
};

TEST(Json, ReadsWhatTheLibraryOfTheDomReads) {
  for (const std::string& text : kGood) {
    const Json expected = Json::parse(text);
    const Json read = parse_json(text);
    EXPECT_EQ(read, expected) << text;
    EXPECT_EQ(read.type(), expected.type()) << text;
    EXPECT_EQ(read.dump(), expected.dump()) << text;
  }
  EXPECT_EQ(parse_json("\xef\xbb\xbf[1]").dump(), "[1]");
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const std::string& text : kBad) {
    EXPECT_THROW(parse_json(text), Error) << text;
    for (const size_t size : {1, 2, 3}) EXPECT_THROW(in_pieces(text, size), Error) << text;
  }
  // A zero byte looks like the end to a reader of C strings.
  for (const std::string& text :
       {std::string("1\0", 2), std::string("[1]\0[", 5), std::string("[1\0]", 4), std::string("\"\0\"", 3)})
    EXPECT_THROW(parse_json(text), Error);
}

TEST(Json, PiecesChangeNothing) {
  for (const std::string& text : kGood) {
    for (const size_t size : {1, 2, 3, 5, 7}) EXPECT_EQ(in_pieces(text, size), Json::parse(text)) << text;
  }
}

TEST(Json, ErrorsSayWhere) {
  EXPECT_THAT(message_of("[1,\n2,x]"), HasSubstr("at byte 6 (/2)"));
  EXPECT_THAT(message_of(R"({"a":[1,{"b~/":tru}]})"), HasSubstr("(/a/1/b~0~1)"));
  EXPECT_THAT(message_of(R"({"a":[{"b":1,"b":2}]})"),
              HasSubstr("the member \"b\" twice at byte 16 (/a/0/b)"));
  EXPECT_THAT(message_of("{\"a\":1e999}"), HasSubstr("a number outside the range of doubles at byte"));
  EXPECT_THAT(message_of("[1,[2,1e999]]"), HasSubstr("(/1/1)"));
  EXPECT_THAT(message_of("[1,2 x]"), HasSubstr("at byte 5 (/1)"));
  EXPECT_THAT(message_of("[\"\xff\"]"), HasSubstr("not UTF-8"));
  EXPECT_LT(message_of("{\"" + std::string(1 << 20, 'k') + "\":x}").size(), 2u << 20);
}

TEST(Json, LimitsAreKept) {
  JsonLimits limits;
  limits.depth = 3;
  EXPECT_EQ(parse_json("[[[1]]]", limits).dump(), "[[[1]]]");
  EXPECT_THAT(message_of("[[[[1]]]]", limits), HasSubstr("deeper than 3 at byte"));
  EXPECT_THAT(message_of(R"({"a":{"b":[{}]}})", limits), HasSubstr("deeper than 3"));
  limits = {};
  limits.values = 4;
  EXPECT_EQ(parse_json("[1,2,3]", limits).size(), 3u);
  EXPECT_THAT(message_of("[1,2,3,4]", limits), HasSubstr("more than 4 values"));
  limits = {};
  limits.bytes = 8;
  EXPECT_EQ(parse_json("[1,2,34]", limits).size(), 3u);
  EXPECT_THAT(message_of("[1,2,345]", limits), HasSubstr("more than 8 bytes"));
  const std::string digits(kMaxNumberBytes - 2, '1');
  EXPECT_EQ(parse_json("[0." + digits + "]").size(), 1u);
  for (const std::string& text : {"[0." + digits + "1]", "[0." + digits + digits + digits + digits + "]"}) {
    EXPECT_THAT(message_of(text), HasSubstr("a number of more than 4096 characters"));
    for (const size_t size : {1, 1000, 5000}) EXPECT_THROW(in_pieces(text, size), Error);
  }
}

// Past a limit nothing more is read: these texts have no end.
TEST(Json, WhatTheProcessPrintedItselfHasNoBound) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  expect_error(ErrorCode::kInvalidJson, "", [&] { parse_json(deep); });
  EXPECT_EQ(parse_own_json(deep).dump(), deep);
  for (const char* broken : {"", "[1,2", "{} {}", "NaN", "[1,]", "\"\xff\""})
    EXPECT_THROW(parse_own_json(broken), Json::parse_error) << broken;
}

TEST(Json, EndlessTextsAreLeftEarly) {
  JsonLimits limits;
  limits.token_bytes = 1 << 20;
  limits.values = 100000;
  limits.bytes = 1 << 23;
  const std::pair<const char*, const char*> texts[] = {
      {"[", "{},"},   {"[", "[],"},   {"[", "0,"},  {"[", "["}, {"{\"a\":", "{\"a\":"},
      {"\"", "xyz"},  {"[\"", "\\n"}, {"[1", "0"},  {"[", " "}, {"[1.", "5"},
      {"[", "\"\","}, {"{\"k", "k"},  {"1e-", "1"}, {"", "\n"}};
  for (const auto& [head, unit] : texts) {
    Endless text(head, unit);
    JsonBuilder builder;
    const double before = cpu_seconds();
    EXPECT_THROW(JsonReader(text, builder, limits).read(), Error) << head << unit;
    EXPECT_LE(text.pieces, 130u) << head << unit;
    EXPECT_LT(cpu_seconds() - before, 30) << "an end for what hangs";
  }
}

// The work for n elements must not grow as n * n: a reader that did took minutes for these.
TEST(Json, ManyElementsAndMembers) {
  std::string wide = "[", members = "{", nested = "[";
  for (int i = 0; i < 100000; ++i) {
    wide += "{},";
    nested += "[{\"a\":0}],";
    members += "\"k" + std::to_string(i) + "\":0,";
  }
  EXPECT_EQ(parse_json(wide + "{}]").size(), 100001u);
  EXPECT_EQ(parse_json(nested + "0]").size(), 100001u);
  EXPECT_EQ(parse_json(members + "\"l\":0}").size(), 100001u);
  EXPECT_THROW(parse_json(members + "\"k0\":0}"), Error);
}

// What a text throws, as when a client goes away, ends the reading.
TEST(Json, ATextMayGiveUp) {
  class Gone : public JsonText {
  public:
    std::string_view next() override {
      if (++calls_ > 3) throw Error(ErrorCode::kCancelled, "gone");
      return "[1],";
    }

  private:
    int calls_ = 0;
  };
  Gone gone;
  class Nothing : public JsonBuilder {
  } events;
  expect_error(ErrorCode::kInvalidJson, "cannot be parsed", [&] { JsonReader(gone, events).read(); });
  class GoneInside : public JsonText {
  public:
    std::string_view next() override {
      if (++calls_ > 3) throw Error(ErrorCode::kCancelled, "gone");
      return calls_ == 1 ? "[1" : ",1";
    }

  private:
    int calls_ = 0;
  } inside;
  JsonBuilder builder;
  expect_error(ErrorCode::kCancelled, "gone", [&] { JsonReader(inside, builder).read(); });
}

TEST(Json, CanonicalTextIsStable) {
  const std::string text = R"({"a":[1,-2,0.1,1e+300],"b":{"c":"é","d":null}})";
  EXPECT_EQ(canonical_json(parse_json(text)), text);
  EXPECT_EQ(canonical_json(parse_json(R"( {"b":{"d":null,"c":"\u00e9"},"a":[1,-2,1e-1,1E300]} )")), text);
}

}  // namespace
}  // namespace tensormill
