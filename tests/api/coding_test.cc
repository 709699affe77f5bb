// Content codings: what is read, what is refused, what answers are encoded in.
#include "api/http/coding.h"

#include <gtest/gtest.h>

#include "api/http/tensor_body.h"
#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

using http::Coding;

const std::vector<Coding> kCodings = {Coding::kGzip, Coding::kDeflate, Coding::kZstd};

std::string decoded(const std::string& coded, Coding coding) {
  return http::read_all(*http::decoded_body(std::make_shared<http::BytesBody>(coded), coding));
}

http::Headers accepting(const std::string& value) {
  http::Headers headers;
  headers.add("Accept-Encoding", value);
  return headers;
}

TEST(Coding, WhatIsEncodedIsDecoded) {
  std::string large(300'000, 'a');
  for (size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>(i * 31 >> 3);
  for (const Coding coding : kCodings) {
    for (const std::string& bytes : {std::string(), std::string("x"), large}) {
      EXPECT_EQ(decoded(http::encode(bytes, coding), coding), bytes) << http::coding_name(coding);
    }
  }
}

TEST(Coding, KnownBytesAreRead) {
  // Made by Python's gzip, zlib and by zstd's command.
  const std::string gzip(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00",
      25);
  const std::string deflate("\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15", 13);
  const std::string zstd("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello", 14);
  EXPECT_EQ(decoded(gzip, Coding::kGzip), "hello");
  EXPECT_EQ(decoded(deflate, Coding::kDeflate), "hello");
  EXPECT_EQ(decoded(zstd, Coding::kZstd), "hello");
  EXPECT_EQ(decoded(gzip + gzip, Coding::kGzip), "hellohello") << "members of one file";
}

TEST(Coding, BrokenBytesAreRefused) {
  for (const Coding coding : kCodings) {
    const std::string good = http::encode("hello, hello, hello, hello", coding);
    for (const std::string& bad : {good.substr(0, good.size() - 1), std::string("hello"), good + "x"}) {
      EXPECT_THROW(decoded(bad, coding), Error) << http::coding_name(coding) << " of " << bad.size();
    }
  }
}

TEST(Coding, EachNameIsItsOwnFormatAlone) {
  for (const Coding made : kCodings) {
    for (const Coding named : kCodings) {
      if (made == named) continue;
      EXPECT_THROW(decoded(http::encode("hello, hello", made), named), Error)
          << http::coding_name(made) << " as " << http::coding_name(named);
    }
  }
}

TEST(Coding, WhatUnfoldsToFarMoreThanItIsIsRefused) {
  // Run-length blocks of 128 KiB: 400 MiB in 13 KB.
  std::string frame("\x28\xb5\x2f\xfd\x00\x38", 6);
  for (int i = 0; i < 3200; ++i) {
    const uint32_t head = 1u << 20 | 1u << 1 | (i == 3199 ? 1u : 0u);
    for (int k = 0; k < 3; ++k) frame += static_cast<char>(head >> (8 * k) & 0xff);
    frame += '\0';
  }
  const auto body = http::decoded_body(std::make_shared<http::BytesBody>(frame), Coding::kZstd);
  std::vector<std::byte> piece(1 << 20);
  uint64_t came = 0;
  try {
    while (const size_t count = body->read(piece)) came += count;
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTooLarge) << error.message();
  }
  EXPECT_GE(came, uint64_t{250} << 20);
  EXPECT_LE(came, uint64_t{256} << 20);
}

TEST(Coding, AZstdWindowIsBounded) {
  // A frame header that asks for a window of 1 GiB.
  const std::string frame("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", 9);
  EXPECT_THROW(decoded(frame, Coding::kZstd), Error);
}

TEST(Coding, TheClientChooses) {
  EXPECT_EQ(http::accepted_coding({}), Coding::kIdentity);
  EXPECT_EQ(http::accepted_coding(accepting("gzip")), Coding::kGzip);
  EXPECT_EQ(http::accepted_coding(accepting("gzip, deflate")), Coding::kGzip);
  EXPECT_EQ(http::accepted_coding(accepting("gzip;q=0.5, deflate;q=0.8")), Coding::kDeflate);
  EXPECT_EQ(http::accepted_coding(accepting("gzip, zstd, br")), Coding::kZstd);
  EXPECT_EQ(http::accepted_coding(accepting("br")), Coding::kIdentity);
  EXPECT_EQ(http::accepted_coding(accepting("gzip;q=0, identity")), Coding::kIdentity);
  EXPECT_EQ(http::accepted_coding(accepting("*;q=0.1, zstd;q=0")), Coding::kGzip);
}

class Codings : public ApiTest {};

TEST_F(Codings, RequestsAreDecodedAndBounded) {
  const std::string body = R"({"kind":"compile","model":"m","target":"llvm"})";
  for (const Coding coding : kCodings) {
    const std::string field = "Content-Encoding: " + std::string(http::coding_name(coding));
    EXPECT_EQ(post_json("/v1/jobs", http::encode(body, coding), {field}).status, 202);
    expect_problem(post_json("/v1/jobs", body, {field}), 400, "invalid_request");
  }
  EXPECT_EQ(jobs_.request.model, "m");
  // What unfolds past the limit is cut off while it unfolds.
  const std::string bomb = http::encode(std::string(4 << 20, ' '), Coding::kGzip);
  ASSERT_LT(bomb.size(), 100'000U);
  expect_problem(post_json("/v1/jobs", bomb, {"Content-Encoding: gzip"}), 413, "too_large");
  expect_problem(post_json("/v1/jobs", body, {"Content-Encoding: br"}), 415, "unsupported_media_type");
  expect_problem(post_json("/v1/jobs", body, {"Content-Encoding: gzip, gzip"}), 415,
                 "unsupported_media_type");
}

TEST_F(Codings, LargeAnswersAreEncodedAsWished) {
  const Answer plain = get("/openapi.json");
  EXPECT_FALSE(plain.headers.has("Content-Encoding"));
  EXPECT_EQ(plain.header("Vary"), "Accept-Encoding");
  for (const Coding coding : kCodings) {
    const std::string name(http::coding_name(coding));
    const Answer answer = get("/openapi.json", {"Accept-Encoding: " + name});
    EXPECT_EQ(answer.header("Content-Encoding"), name);
    EXPECT_LT(answer.body.size(), plain.body.size() / 2);
    EXPECT_EQ(decoded(answer.body, coding), plain.body);
  }
  EXPECT_FALSE(get("/healthz", {"Accept-Encoding: gzip"}).headers.has("Content-Encoding")) << "too small";
}

}  // namespace
}  // namespace tensormill::testing_api
