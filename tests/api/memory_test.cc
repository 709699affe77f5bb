// Bodies in memory: what is read takes its bytes from the budget of all requests, and gives them back.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "api/http/coding.h"
#include "api/http/tensor_body.h"
#include "runtime/npz/npz.h"
#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// A body of zeros that comes in pieces, with or without an announced length, and tells what was taken when.
class Zeros final : public http::BodySource {
public:
  Zeros(uint64_t size, std::optional<uint64_t> announced, const MemoryBudget& budget)
      : left_(size), announced_(announced), budget_(budget) {}
  size_t read(std::span<std::byte> buffer) override {
    const size_t count = static_cast<size_t>(std::min<uint64_t>({buffer.size(), left_, 100'000}));
    EXPECT_GE(budget_.used(), came_ + count) << "taken before it is read";
    std::memset(buffer.data(), 0, count);
    left_ -= count;
    came_ += count;
    most_ = std::max(most_, budget_.used());
    return count;
  }
  std::optional<uint64_t> length() const override { return announced_; }
  uint64_t came() const { return came_; }
  uint64_t most() const { return most_; }

private:
  uint64_t left_;
  const std::optional<uint64_t> announced_;
  const MemoryBudget& budget_;
  uint64_t came_ = 0;
  uint64_t most_ = 0;
};

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(MemoryOfBodies, IsTakenBeforeBytesAreReadAndNoMoreThanTheyNeed) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 64 * kMiB);
  for (const bool announced : {true, false}) {
    MemoryShare share(budget);
    Zeros zeros(10 * kMiB, announced ? std::optional(10 * kMiB) : std::nullopt, *budget);
    const http::TensorBody body = http::read_tensor_body(zeros, &share);
    EXPECT_EQ(body.size, 10 * kMiB);
    EXPECT_EQ(body.text(), std::string(10 * kMiB, '\0'));
    if (announced) {
      EXPECT_EQ(budget->used(), 10 * kMiB);
    }
    EXPECT_LE(budget->used(), 16 * kMiB) << "doubled";
    EXPECT_LE(zeros.most(), 24 * kMiB);
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(MemoryOfBodies, AnAnnouncedLengthThatDoesNotFitIsRefusedUnread) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 8 * kMiB);
  MemoryShare other(budget);
  other.take(4 * kMiB);
  for (const auto& [bytes, code] :
       {std::pair(5 * kMiB, ErrorCode::kUnavailable), std::pair(9 * kMiB, ErrorCode::kTooLarge)}) {
    MemoryShare share(budget);
    Zeros zeros(bytes, bytes, *budget);
    EXPECT_EQ(code_of([&] { http::read_tensor_body(zeros, &share); }), code);
    EXPECT_EQ(zeros.came(), 0u);
  }
}

TEST(MemoryOfBodies, WhoAnnouncesMuchAndSendsLittleKeepsLittle) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 64 * kMiB);
  MemoryShare share(budget);
  Zeros drips(1000, 60 * kMiB, *budget);
  http::read_tensor_body(drips, &share);
  EXPECT_LE(budget->used(), 2 * kMiB);
}

TEST(MemoryOfBodies, WhatGrowsIsRefusedWhereItDoesNotFitAnyMore) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 8 * kMiB);
  MemoryShare other(budget);
  other.take(2 * kMiB);
  MemoryShare share(budget);
  Zeros zeros(uint64_t{1} << 40, std::nullopt, *budget);
  EXPECT_EQ(code_of([&] { http::read_tensor_body(zeros, &share); }), ErrorCode::kUnavailable);
  EXPECT_LE(zeros.came(), 6 * kMiB);
}

TEST(MemoryOfBodies, APartEndsWhereItShall) {
  http::BytesBody body("0123456789");
  EXPECT_EQ(http::read_body_part(body, nullptr, 4).text(), "0123");
  EXPECT_EQ(http::read_tensor_body(body, nullptr, 4).text(), "456789");
  http::BytesBody shorter("01");
  EXPECT_EQ(http::read_body_part(shorter, nullptr, ~uint64_t{0}).text(), "01");
  http::BytesBody none("01");
  EXPECT_EQ(http::read_body_part(none, nullptr, 0).text(), "");
}

class MemoryInFlight : public ApiTest {
protected:
  void bound(uint64_t bytes) {
    options_.memory = std::make_shared<MemoryBudget>("limits.memory_in_flight", bytes);
    rebuild();
  }
};

std::string compressed_npz() {
  // numpy.savez_compressed(f, x=numpy.zeros(1 << 20, "u1")) would be stored deflated; a Fortran order in a
  // stored archive is unfolded as well.
  std::vector<npz::NamedTensor> tensors = {{"x", Tensor::zeros(DType::kBool, {1 << 20})}};
  return npz::write_npz(tensors);
}

TEST_F(MemoryInFlight, TensorsThatAreUnfoldedCountBesideTheBody) {
  const std::string body = compressed_npz();
  const std::string path = "/v1/deployments/digits/infer";
  bound(body.size() + kMiB / 2);
  // Bools are looked at one by one, so they are copied.
  expect_problem(send("POST", path, {}, body), 413, "too_large");
  bound(4 * kMiB);
  EXPECT_EQ(send("POST", path, {}, body).status, 200);
  EXPECT_EQ(options_.memory->used(), 0u) << "given back with the answer";
}

TEST_F(MemoryInFlight, WhatOthersHaveIsUnavailable) {
  bound(4 * kMiB);
  MemoryShare others(options_.memory);
  others.take(3 * kMiB);
  const std::string body = compressed_npz();
  const Answer answer = send("POST", "/v1/deployments/digits/infer", {}, body);
  expect_problem(answer, 503, "unavailable");
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_NE(answer.json().at("detail").get<std::string>().find("limits.memory_in_flight"), std::string::npos);
  EXPECT_EQ(options_.memory->used(), 3 * kMiB);
  EXPECT_EQ(options_.memory->refusals(), 1u);
}

TEST_F(MemoryInFlight, EveryBodyThatIsReadIsCounted) {
  // Each is larger than the bound, which is far below its own limit.
  bound(2000);
  const std::string text = "{\"a\":\"" + std::string(5000, 'x') + "\"}";
  const std::vector<std::string> json = {"Content-Type: application/json"};
  for (const auto& [method, path, type] : std::vector<std::array<std::string, 3>>{
           {"POST", "/v1/targets/parse", "application/json"},
           {"POST", "/v1/jobs", "application/json"},
           {"PUT", "/v1/deployments/d", "application/json"},
           {"POST", "/v2/repository/index", "application/json"},
           {"POST", "/v2/repository/models/digits/load", "application/json"},
           {"POST", "/v2/models/digits/infer", "application/json"},
           {"POST", "/v1/deployments/digits/infer", "application/x-npz"},
           {"POST", "/v1/deployments/digits/classify", "image/png"},
           {"POST", "/v1/tuning-records", "application/x-ndjson"},
           {"POST", "/v1/packages/" + packages_.package.id.text() + "/run", "application/x-npz"}}) {
    for (const http::Coding coding :
         {http::Coding::kIdentity, http::Coding::kGzip, http::Coding::kDeflate, http::Coding::kZstd}) {
      std::vector<std::string> fields = {"Content-Type: " + type};
      if (coding != http::Coding::kIdentity)
        fields.push_back("Content-Encoding: " + std::string(http::coding_name(coding)));
      const Answer answer = send(method, path, fields, http::encode(text, coding));
      EXPECT_EQ(answer.status, 413) << method << " " << path << " " << http::coding_name(coding)
                                    << answer.body;
      EXPECT_NE(answer.body.find("limits.memory_in_flight"), std::string::npos) << answer.body;
      EXPECT_EQ(options_.memory->used(), 0u);
    }
  }
}

TEST_F(MemoryInFlight, StreamsAreNot) {
  bound(64 << 10);
  EXPECT_EQ(
      send("POST", "/v1/models?name=m", {"Content-Type: application/octet-stream"}, std::string(kMiB, 'm'))
          .status,
      201);
}

}  // namespace
}  // namespace tensormill::testing_api
