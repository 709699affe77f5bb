// KServe v2 requests as they are read: values at the ends of their types, members in any order, texts without
// end.
#include "api/endpoints/v2_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/text.h"
#include "tests/expect_error.h"

namespace tensormill::endpoints {
namespace {

using testing::HasSubstr;

constexpr uint64_t kTensorBytes = uint64_t{1} << 20;

V2Limits limits(uint64_t elements = std::numeric_limits<uint64_t>::max()) {
  return {kTensorBytes, [elements] { return elements; }};
}

/// A text that is read in pieces of `size` bytes.
class Sliced : public JsonText {
public:
  Sliced(std::string_view text, size_t size) : text_(text), size_(size) {}
  std::string_view next() override {
    const std::string_view piece = text_.substr(0, size_);
    text_.remove_prefix(piece.size());
    return piece;
  }

private:
  std::string_view text_;
  size_t size_;
};

/// `head`, and then `unit` for ever.
class Unending : public JsonText {
public:
  Unending(std::string head, std::string_view unit) : head_(std::move(head)) {
    while (unit_.size() < 65536) unit_ += unit;
  }
  std::string_view next() override { return pieces++ == 0 ? head_ : unit_; }
  uint64_t pieces = 0;

private:
  std::string head_, unit_;
};

V2Request read(std::string_view text, size_t piece = 65536, const V2Limits& within = limits()) {
  Sliced sliced(text, piece);
  return read_v2_request(sliced, within, [] { return http::TensorBody(); });
}

std::string input(const std::string& dtype, const std::string& data, const std::string& shape = "[3]") {
  return R"({"inputs":[{"name":"x","shape":)" + shape + R"(,"datatype":")" + dtype + R"(","data":)" + data +
         "}]}";
}

std::string message_of(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(V2Reader, NumbersOutsideTheirTypesRangeAreRefused) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused = {
      {"BOOL", {"2", "-1", "1.0", "null", "\"true\""}},
      {"INT8", {"300", "128", "-129", "1.5", "1e1", "true", "\"1\"", "{}"}},
      {"UINT8", {"256", "-1", "false"}},
      {"INT16", {"32768", "-32769"}},
      {"UINT16", {"65536", "-1"}},
      {"INT32", {"2147483648", "1.5", "1e400"}},
      {"UINT32", {"4294967296", "-1"}},
      {"INT64", {"9223372036854775808", "1e3", "-9223372036854775809"}},
      {"UINT64", {"-1", "18446744073709551616"}},
      {"FP16", {"65520", "-1e5", "true"}},
      {"BF16", {"3.4e38"}},
      {"FP32", {"1e39", "-3.5e38", "null", "\"1\"", "false"}},
      {"FP64", {"1.8e308", "true"}},
      {"FP8_E4M3FN", {"465", "-1e9"}},
      {"FP8_E5M2", {"61440"}},
      {"FP4_E2M1", {"7"}},
      {"INT4", {"8", "-9"}},
      {"UINT4", {"16"}},
      {"INT2", {"2"}},
      {"UINT2", {"4"}},
      {"BYTES", {"1", "true", "null"}},
  };
  for (const auto& [type, values] : refused) {
    for (const std::string& value : values) {
      const std::string good = type == "BYTES" ? "\"a\"" : "1";
      const std::string data = "[[" + good + "]," + value + "," + good + "]";
      const std::string message = message_of(input(type, data));
      if (value == "1e400" || value == "1.8e308") {
        EXPECT_NE(message, "none") << type << " " << value;
        continue;
      }
      EXPECT_THAT(message, HasSubstr("input \"x\": element 1 is ")) << type << " " << value;
      // The same where the type comes after the data.
      const std::string late =
          R"({"inputs":[{"data":)" + data + R"(,"name":"x","datatype":")" + type + R"(","shape":[3]}]})";
      if (value == "{}") continue;
      EXPECT_EQ(message_of(late), message);
    }
  }
  EXPECT_THAT(message_of(input("INT8", "[1,1,300]")),
              HasSubstr("element 2 is 300, which is outside the range of INT8, -128 to 127"));
}

TEST(V2Reader, DimsAndSizesOutsideTheirRangeAreRefused) {
  for (const char* shape : {"[-1]", "[1.5]", "[1e2]", "[18446744073709551615]", "[9223372036854775808]",
                            "[true]", "[\"3\"]", "[null]", "3", "[4611686018427387904,4]", "[[3]]"}) {
    EXPECT_THROW(read(input("FP32", "[1,2,3]", shape)), Error) << shape;
  }
  for (const char* member : {R"("parameters":{"timeout":-1})", R"("parameters":{"timeout":1.5})",
                             R"("parameters":{"priority":-2})", R"("parameters":{"timeout":1e400})",
                             R"("outputs":[{"name":"y","parameters":{"classification":-1}}])",
                             R"("outputs":[{"name":"y","parameters":{"classification":0.5}}])"}) {
    std::string text = input("FP32", "[1,2,3]");
    text.insert(1, std::string(member) + ",");
    EXPECT_THROW(read(text), Error) << member;
  }
}

TEST(V2Reader, MembersComeInAnyOrderAndPieces) {
  const std::string members[] = {R"("name":"x")", R"("shape":[2,2])", R"("datatype":"INT16")",
                                 R"("data":[[-1,32767],[12345,0]])", R"("parameters":{"a":1})"};
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  do {
    std::string text = R"({"id":"7","inputs":[{)";
    for (const size_t i : order) text += (text.back() == '{' ? "" : ",") + members[i];
    text += R"(}],"parameters":{"binary_data_output":true},"outputs":[{"name":"y"}]})";
    for (const size_t piece : {size_t{1}, size_t{7}, text.size()}) {
      const V2Request request = read(text, piece);
      ASSERT_EQ(request.inputs.size(), 1u);
      const Tensor& tensor = request.inputs[0].second;
      EXPECT_EQ(request.inputs[0].first, "x");
      EXPECT_EQ(request.id, "7");
      EXPECT_TRUE(request.outputs.at(0).binary);
      EXPECT_EQ(tensor.shape(), (Shape{2, 2}));
      EXPECT_THAT(tensor.values<int16_t>(), testing::ElementsAre(-1, 32767, 12345, 0));
    }
  } while (std::next_permutation(order.begin(), order.end()));
  const V2Request texts =
      read(R"({"inputs":[{"data":[["a"],["\u20ac"]],"shape":[2,1],"datatype":"BYTES","name":"s"}]})", 3);
  const Tensor& tensor = texts.inputs.at(0).second;
  EXPECT_EQ(Texts({tensor.dtype(), tensor.shape(), tensor.data()})[1], "€");
  EXPECT_EQ(read(input("FP32", "[]", "[0,5]")).inputs.at(0).second.num_elements(), 0);
  EXPECT_EQ(read(input("FP32", "[[],[]]", "[2,0]")).inputs.at(0).second.num_elements(), 0);
}

TEST(V2Reader, CountsAreChecked) {
  EXPECT_THAT(message_of(input("FP32", "[1,2]")), HasSubstr("data has 2 elements, the shape 3"));
  EXPECT_THAT(message_of(input("FP32", "[1,2,3,4]")), HasSubstr("more elements than the shape, which has 3"));
  EXPECT_THAT(message_of(input("BYTES", R"(["a","b","c","d"])")), HasSubstr("more elements than the shape"));
  EXPECT_THAT(message_of(R"({"inputs":[{"data":[1,2,3,4],"shape":[3],"datatype":"FP32","name":"x"}]})"),
              HasSubstr("data has 4 elements, the shape 3"));
  EXPECT_THAT(message_of(input("FP64", "[1]", "[1099511627776]")), Not(HasSubstr("none")));
  EXPECT_THAT(message_of(R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":7}]})"),
              HasSubstr("data has the wrong type"));
  EXPECT_THAT(message_of(R"({"inputs":[7]})"), HasSubstr("an input is no object"));
  EXPECT_THAT(message_of(R"({"inputs":{"a":1}})"), HasSubstr("inputs has the wrong type"));
  EXPECT_THAT(message_of("[1]"), HasSubstr("the request is no object"));
  EXPECT_THAT(message_of("7"), HasSubstr("the request is no object"));
  EXPECT_THAT(message_of("{}"), HasSubstr("inputs is missing"));
  EXPECT_THAT(message_of(input("FP32", "[1,2,3]") + "x"), HasSubstr("cannot be parsed"));
  EXPECT_THAT(message_of(R"({"inputs":[{"name":"x","name":"y"}]})"), HasSubstr("the member \"name\" twice"));
}

// A few bytes of a compressed body unfold to such texts. Each is left after a bounded part, which is what
// bounds time and memory: elements and members that are not wanted at once, data with the tensor that it may
// become.
TEST(V2Reader, TextsWithoutEndAreLeftEarly) {
  constexpr uint64_t kPiece = 65536;
  const std::string x = R"({"inputs":[{"name":"x","shape":[3],"datatype":"FP32","data":[)";
  const std::string wide = R"({"inputs":[{"name":"x","shape":[100000000],"datatype":"UINT8","data":[)";
  const std::string late = R"({"inputs":[{"data":[)";
  const std::string texts = R"({"inputs":[{"name":"x","shape":[100000000],"datatype":"BYTES","data":[)";
  struct Hostile {
    std::string head, unit;
    uint64_t bytes;  ///< of it that may be read
  };
  const uint64_t some = uint64_t{2} << 20, json = kV2JsonBytes + 4 * kPiece;
  const std::vector<Hostile> all = {
      {R"({"inputs":[)", "{},", some},
      {R"({"inputs":[)", "[],", some},
      {R"({"inputs":[)", "1,", some},
      {R"({"inputs":[)", R"({"name":"x","shape":[0],"datatype":"FP32","data":[]},)", json},
      {"[", "{},", some},
      {"{\"a\":", "[", some},
      {"{\"a\":[", "{},", some},
      {"{\"a\":[", "0,", some},
      {"{\"a\":[", "\"\",", some},
      {"{\"a\":{\"b\":", "{\"b\":", some},
      {"{\"", "a", json + json},
      {"{\"a\":\"", "a", json + json},
      {"{\"a\":\"", "\\u00e9", json + json},
      {"{\"a\":1", "0", json + json},
      {"", " ", json + json},
      {"{\"parameters\":{\"a\":", "\n", json + json},
      {"{\"outputs\":[", "{\"name\":\"y\"},", some},
      {x, "1,", some},
      {x, "[],", some},
      {x, "[", some},
      {x, "[[[],[]]],", some},
      {x + "1", "1", json + json},
      {x, " ", json + json},
      {x, "\"a\",", some},
      {wide, "1,", 3 * kTensorBytes},
      {wide, "[1],", 6 * kTensorBytes},
      {wide, "[],", some},
      {late, "1,", 3 * kTensorBytes},
      {late, "[],", some},
      {late, "\"\",", 4 * kTensorBytes},
      {texts, "\"\",", 4 * kTensorBytes},
      {texts + "\"", "a", json + json},
  };
  for (const Hostile& one : all) {
    Unending text(one.head, one.unit);
    EXPECT_THROW(read_v2_request(text, limits(), [] { return http::TensorBody(); }), Error)
        << one.head << one.unit;
    EXPECT_LE(text.pieces * kPiece, one.bytes + kPiece) << one.head << one.unit;
  }
  // Where the model's inputs are small, so is what is read for them.
  for (const std::string& head : {wide, late}) {
    Unending text(head, "1,");
    EXPECT_THROW(read_v2_request(text, limits(784), [] { return http::TensorBody(); }), Error);
    EXPECT_LE(text.pieces, 5u);
  }
}

TEST(V2Reader, LimitsOfTensorsHoldForAllInputsTogether) {
  std::string data = "[0";
  for (uint64_t i = 1; i < kTensorBytes / 8; ++i) data += ",0";
  data += "]";
  const std::string half = R"({"name":"x","shape":[)" + std::to_string(kTensorBytes / 8) +
                           R"(],"datatype":"FP32","data":)" + data + "}";
  EXPECT_EQ(read("{\"inputs\":[" + half + "," + half + "]}").inputs.size(), 2u);
  expect_error(ErrorCode::kTooLarge, "limits.tensor_bytes",
               [&] { read("{\"inputs\":[" + half + "," + half + "," + half + "]}"); });
}

// Many inputs below what is asked about are many elements as well.
TEST(V2Reader, ElementsOfAllInputsCountTogether) {
  std::string text = "{\"inputs\":[";
  std::string data = "[1";
  for (int i = 1; i < 1000; ++i) data += ",1";
  for (int i = 0; i < 80; ++i) {
    text += std::string(i == 0 ? "" : ",") + R"({"name":"x)" + std::to_string(i) +
            R"(","shape":[1000],"datatype":"UINT8","data":)" + data + "]}";
  }
  text += "]}";
  EXPECT_EQ(read(text, 65536, limits(80000)).inputs.size(), 80u);
  expect_error(ErrorCode::kInvalidTensor,
               "input \"x70\": data has more elements than the inputs of the model",
               [&] { read(text, 65536, limits(70000)); });
}

TEST(V2Reader, WhatStandsBehindTheJsonIsReadOnceAfterIt) {
  int calls = 0;
  const auto rest = [&] {
    ++calls;
    http::TensorBody body;
    body.owner = allocate_aligned(64);
    body.data = static_cast<std::byte*>(body.owner.get());
    body.size = 4;
    return body;
  };
  Sliced good(
      R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}}]})", 9);
  EXPECT_EQ(read_v2_request(good, limits(), rest).inputs.size(), 1u);
  EXPECT_EQ(calls, 1);
  Sliced broken(
      R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP33","parameters":{"binary_data_size":4}}]})", 9);
  EXPECT_THROW(read_v2_request(broken, limits(), rest), Error);
  EXPECT_EQ(calls, 1) << "a request that is refused is not read on";
}

}  // namespace
}  // namespace tensormill::endpoints
