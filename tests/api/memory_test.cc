// Bodies in memory: what is read takes its bytes from the budget of all requests, and gives them back.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <set>

#include "api/endpoints/context.h"
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

/// For requests that are refused before anybody is asked.
class NoWorkers final : public services::WorkerService {
public:
  void lease(const services::WorkerOffer&, const services::CallContext&,
             services::Done<std::optional<services::WorkerLease>>) override {}
  void leave(const services::WorkerLeave&, const services::CallContext&) override {}
  void take_back(const std::string&) override {}
  services::WorkerBeatAnswer beat(const std::string&, const services::WorkerBeat&,
                                  const services::CallContext&) override {
    return {};
  }
  std::shared_ptr<http::Content> blob(const std::string&, const std::string&,
                                      const services::CallContext&) override {
    return nullptr;
  }
  std::string tuned(const std::string&, const std::vector<std::string>&,
                    const services::CallContext&) override {
    return "";
  }
  void finish(const std::string&, http::BodySource&, const services::CallContext&) override {}
  void import_results(http::BodySource&, const services::CallContext&) override {}
  services::Page<services::WorkerInfo> list(const services::PageQuery&) override { return {}; }
  services::WorkerInfo get(const std::string&) override { return {}; }
  services::WorkerInfo set_state(const std::string&, const std::string&) override { return {}; }
};

std::string type_of(endpoints::BodyKind kind) {
  if (kind == endpoints::BodyKind::kTensors) return "application/x-npz";
  if (kind == endpoints::BodyKind::kImage) return "image/png";
  return kind == endpoints::BodyKind::kRecords ? "application/x-ndjson" : "application/json";
}

TEST_F(MemoryInFlight, EveryBodyThatIsReadIsCounted) {
  NoWorkers workers;
  services_.workers = &workers;
  services_.keys = &keys_;
  options_.shared_memory = options_.cuda_shared_memory = true;
  // Each is larger than the bound, which is far below its own limit.
  bound(2000);
  const std::string text = "{\"a\":\"" + std::string(5000, 'x') + "\"}";
  std::set<std::string> unread;
  for (const endpoints::RouteRow& row : endpoints::all_routes()) {
    // A model's bytes go on to a service as they come.
    if (row.body == endpoints::BodyKind::kNone || row.body == endpoints::BodyKind::kModel) continue;
    std::string target(row.path);
    for (size_t open = 0; (open = target.find('{')) != std::string::npos;) {
      const size_t length = target.find('}') - open + 1;
      const std::string name = target.substr(open + 1, length - 2);
      const bool is_package = name == "package", is_version = name == "version";
      target.replace(open, length, is_package ? packages_.package.id.text() : is_version ? "1" : "digits");
    }
    for (const http::Coding coding :
         {http::Coding::kIdentity, http::Coding::kGzip, http::Coding::kDeflate, http::Coding::kZstd}) {
      std::vector<std::string> fields = {"Content-Type: " + type_of(row.body), "Authorization: Bearer boss"};
      if (coding != http::Coding::kIdentity)
        fields.push_back("Content-Encoding: " + std::string(http::coding_name(coding)));
      const Answer answer = send(std::string(row.method), target, fields, http::encode(text, coding));
      EXPECT_EQ(options_.memory->used(), 0u);
      if (answer.body.find("limits.memory_in_flight") == std::string::npos) {
        unread.insert(std::string(row.name));
      } else {
        EXPECT_EQ(answer.status, 413) << row.name << " " << http::coding_name(coding) << answer.body;
      }
    }
  }
  EXPECT_EQ(unread, (std::set<std::string>{"unregister_v2_cuda_region", "unregister_v2_cuda_regions",
                                           "unregister_v2_region", "unregister_v2_regions"}))
      << "nobody looks at what these bring";
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
