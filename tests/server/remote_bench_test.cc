// The files of a tuning child that lives, and may shorten them, as its server reads them.
#include "server/services/jobs/remote_bench.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/memory_file.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "tests/storage/support.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::remote_bench_test {
namespace {

constexpr const char* kLabels = "board";
constexpr uint64_t kCode = 100, kInput = 64, kOutput = 8;

/// A job whose thread does a worker's part when it asks whether it is to go on.
class Context final : public jobs::JobContext {
public:
  Context() {
    job_.id = "tuning";
    job_.kind = "tune";
  }
  const storage::JobRow& job() const override { return job_; }
  const std::string& folder() const override { return job_.id; }
  using jobs::JobContext::run_child;
  std::string run_child(jobs::ChildSpec, const TakeEvent&) override { return ""; }
  jobs::ChildUse last_child() const override { return {}; }
  std::unique_ptr<jobs::MeasureGate::Quiet> quiet() override { return nullptr; }
  void progress(std::string_view) override {}
  void event(std::string_view, std::string_view) override {}
  void keep_alive() override { on_alive(); }
  void log(std::string_view) override {}
  std::function<void()> on_alive = [] {};

private:
  storage::JobRow job_;
};

Json request_of(const Json& buffers, const Json& code_bytes = kCode) {
  return {{"symbol", "k"}, {"code_offset", 0}, {"code_bytes", code_bytes}, {"buffers", buffers}};
}

/// A list of one.
Json buffer(uint64_t offset, uint64_t bytes, bool is_output) {
  return Json::array({Json::array({offset, bytes, is_output})});
}

class RemoteBenchTest : public testing::Test {
protected:
  RemoteBenchTest() : blobs_(env_, "/store"), catalog_(env_, "/store/catalog.db"), queue_(catalog_) {
    resize(code_, kCode);
    resize(tensors_, kInput + kOutput);
    context_.on_alive = [this] { work(); };
  }
  static void resize(const FileDescriptor& file, uint64_t bytes) {
    ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  }
  /// A worker: the outputs are eight letters.
  void work() {
    const auto job = catalog_.claim_job({"measure"}, "worker", 1'000'000, {kLabels});
    if (!job) return;
    asked_ = parse_json(job->resolved);
    const Digest outputs = blobs_.put(std::string(kOutput, 'o'));
    storage::JobFinish finish;
    finish.result = Json{{"cpu", "a cpu"},
                         {"answers", Json::array({{{"code", 0}, {"outputs", 0}}})},
                         {"outputs", outputs.text()}}
                        .dump();
    catalog_.finish_job({job->id, job->attempt, job->owner}, finish);
    queue_.changed();
  }
  Json measure(const Json& requests) {
    RemoteBench bench(queue_, blobs_, context_, {code_.get(), tensors_.get()}, {kLabels, "llvm", 1});
    return bench.measure(requests, 1);
  }
  Json measure(const Json& buffers, const Json& code_bytes) {
    return measure(Json::array({request_of(buffers, code_bytes)}));
  }
  std::string text_of(const char* blob) {
    const Json& digest = asked_.at("blobs").at(blob);
    return std::string(blobs_.open(Digest::parse(digest.get<std::string>()).value())->text());
  }

  storage::MemoryEnv env_;
  storage::FolderBlobStore blobs_;
  storage::SqliteCatalog catalog_;
  jobs::JobQueue queue_;
  Context context_;
  FileDescriptor code_ = memory_file("code"), tensors_ = memory_file("tensors");
  const Json buffers_ = {{0, kInput, false}, {kInput, kOutput, true}};
  Json asked_;
};

TEST_F(RemoteBenchTest, WhatTheRequestsNameIsSentAndTheOutputsComeBack) {
  ASSERT_EQ(::pwrite(code_.get(), "code", 4, 0), 4);
  ASSERT_EQ(::pwrite(tensors_.get(), "input", 5, 0), 5);
  const Json answers = measure(Json::array({request_of(buffers_)}));
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(text_of("code"), "code" + std::string(kCode - 4, '\0'));
  EXPECT_EQ(text_of("tensors"), "input" + std::string(kInput - 5, '\0')) << "inputs alone";
  std::string output(kOutput, ' ');
  ASSERT_EQ(::pread(tensors_.get(), output.data(), output.size(), kInput), static_cast<ssize_t>(kOutput));
  EXPECT_EQ(output, std::string(kOutput, 'o'));
}

TEST_F(RemoteBenchTest, FilesThatAreShorterThanNamedAreAnError) {
  EXPECT_ERROR(measure(buffers_, kCode + 1), ErrorCode::kWrongAnswer);
  EXPECT_ERROR(measure(buffer(0, kInput + kOutput + 1, false), kCode), ErrorCode::kWrongAnswer);
  EXPECT_ERROR(measure(buffer(kInput, kOutput + 1, true), kCode), ErrorCode::kWrongAnswer);
  EXPECT_TRUE(asked_.is_null()) << "no worker is asked";
}

TEST_F(RemoteBenchTest, FilesThatBecomeShorterWhileTheyAreReadAreAnError) {
  constexpr uint64_t kLarge = uint64_t{32} << 20;  // more than is read at once
  for (const bool is_code : {true, false}) {
    resize(code_, kLarge);
    resize(tensors_, kLarge);
    int parts = 0;
    context_.on_alive = [&] {
      if (++parts == 2) resize(is_code ? code_ : tensors_, 1);
      work();
    };
    EXPECT_ERROR(measure(buffer(0, is_code ? 1 : kLarge, false), is_code ? kLarge : uint64_t{1}),
                 ErrorCode::kWrongAnswer);
  }
  EXPECT_TRUE(asked_.is_null());
}

TEST_F(RemoteBenchTest, NumbersThatAreNoPlacesAreAnError) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  const int64_t most_signed = std::numeric_limits<int64_t>::max();
  const std::vector<Json> wrong = {
      {{-1, 8, false}},
      {{0, -8, false}},
      {{0, -8, true}},
      {{most, 8, false}},
      {{most_signed, 8, false}},
      {{8, most_signed, true}},
      {{1.5, 8, false}},
      {{"0", 8, false}},
      {{0, 8, 1}},
      {{0, 8}},
      {7},
      "buffers",
  };
  for (const Json& buffers : wrong) {
    SCOPED_TRACE(buffers.dump());
    EXPECT_ERROR(measure(buffers, kCode), ErrorCode::kWrongAnswer);
  }
  EXPECT_ERROR(measure(buffers_, -1), ErrorCode::kWrongAnswer);
  EXPECT_ERROR(measure(buffers_, most), ErrorCode::kWrongAnswer);
  EXPECT_ERROR(measure("requests"), ErrorCode::kWrongAnswer);
  EXPECT_ERROR(measure(Json::array({"request"})), ErrorCode::kWrongAnswer);
  EXPECT_TRUE(asked_.is_null());
}

}  // namespace
}  // namespace tensormill::server::remote_bench_test
