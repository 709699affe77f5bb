// The end of a lease as a worker tells it: what is read of it takes memory and room that there is.
#include "server/services/workers/worker_finish.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "server/services/store/package_import.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/env/memory_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/storage/support.h"

namespace tensormill::server {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

class WorkerFinish : public testing::Test {
protected:
  WorkerFinish() { env_.make_folder(folder_); }
  WorkerEndPlace place(StoreQuota& quota, MemoryShare* memory = nullptr) {
    return {blobs_, trusted_, quota, folder_, kMebibyte, memory};
  }
  static MemoryShare share_of(uint64_t bytes) {
    return MemoryShare(std::make_shared<MemoryBudget>("limits.memory_in_flight", bytes));
  }

  storage::MemoryEnv env_;
  storage::FolderBlobStore blobs_{env_, "/s"};
  storage::FolderUploadStore uploads_{env_, "/s", blobs_, {}, [] { return int64_t{0}; }};
  StoreQuota unbounded_{blobs_, uploads_, 0};
  const TrustedKeys trusted_{{}};
  const std::string folder_ = "/s/tmp";
};

/// A line whose values take far more memory than their text.
std::string line_of(size_t maps) {
  std::string line = R"({"state":"succeeded","result":[0)";
  for (size_t i = 0; i < maps; ++i) line += ",{}";
  return line + "]}\nrest";
}

TEST_F(WorkerFinish, ALineAndWhatIsMadeOfItTakeMemory) {
  const std::string line = line_of(100'000);
  {
    http::BytesBody body(line);
    MemoryShare small = share_of(2 * kMebibyte);
    EXPECT_ERROR((void)read_end(body, &small), ErrorCode::kTooLarge);
  }
  http::BytesBody body(line);
  MemoryShare large = share_of(64 * kMebibyte);
  const WorkerEnd end = read_end(body, &large);
  EXPECT_EQ(end.state, "succeeded");
  EXPECT_EQ(end.result.size(), 100'001U);
  EXPECT_GE(large.taken(), 30 * line.size());
  std::string rest(10, '\0');
  EXPECT_EQ(body.read(std::as_writable_bytes(std::span(rest))), 4U) << "what follows stays";
}

TEST_F(WorkerFinish, ALineOfMoreValuesThanAResultHasIsRefused) {
  http::BytesBody body(line_of(size_t{5} << 20));
  EXPECT_ERROR((void)read_end(body, nullptr), ErrorCode::kTooLarge);
}

TEST_F(WorkerFinish, LogAndCodeTakeMemory) {
  MemoryShare small = share_of(kMebibyte);
  WorkerEnd end;
  end.log_bytes = 2 * kMebibyte;
  http::BytesBody log(std::string(2 * kMebibyte, 'x'));
  EXPECT_ERROR((void)read_log(end, log, place(unbounded_, &small)), ErrorCode::kTooLarge);
  storage::JobRow job;
  job.kind = "compile";
  job.resolved = "{}";
  end.code_bytes = 2 * kMebibyte;
  http::BytesBody code(std::string(2 * kMebibyte, 'x'));
  EXPECT_ERROR((void)read_result(job, end, code, place(unbounded_, &small)), ErrorCode::kTooLarge);
}

TEST_F(WorkerFinish, WhatIsAnnouncedMustCome) {
  WorkerEnd end;
  end.log_bytes = 20;
  http::BytesBody body("ten bytes.");
  EXPECT_ERROR((void)read_log(end, body, place(unbounded_)), ErrorCode::kInvalidRequest);
}

/// A body whose length nobody has announced.
class Unannounced final : public http::BodySource {
public:
  explicit Unannounced(std::string bytes) : inner_(std::move(bytes)) {}
  size_t read(std::span<std::byte> buffer) override { return inner_.read(buffer); }
  std::optional<uint64_t> length() const override { return std::nullopt; }

private:
  http::BytesBody inner_;
};

TEST_F(WorkerFinish, AnArchiveIsBoundedByTheStoresQuotaBeforeItsSignatureIsLookedAt) {
  StoreQuota quota(blobs_, uploads_, kMebibyte);
  http::BytesBody announced(std::string(2 * kMebibyte, 'x'));
  EXPECT_ERROR((void)store_signed_archive(blobs_, trusted_, quota, announced, folder_), ErrorCode::kDiskFull);
  Unannounced grows(std::string(2 * kMebibyte, 'x'));
  EXPECT_ERROR((void)store_signed_archive(blobs_, trusted_, quota, grows, folder_), ErrorCode::kDiskFull);
  http::BytesBody fits(std::string(kMebibyte / 2, 'x'));
  EXPECT_ERROR((void)store_signed_archive(blobs_, trusted_, quota, fits, folder_), ErrorCode::kForeignCode);
}

}  // namespace
}  // namespace tensormill::server
