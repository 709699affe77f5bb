// What callers have, of the catalog and of uploads together.
#include "server/services/keys/caller_quota.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/upload/folder_upload_store.h"

namespace tensormill::server {
namespace {

class CallerQuotaTest : public testing::Test {
protected:
  std::string upload(const std::string& owner, const std::string& bytes) {
    const std::string id = uploads_.begin(owner).id;
    bool read = false;
    uploads_.append(id, 0, [&](std::span<std::byte> buffer) -> size_t {
      if (std::exchange(read, true)) return 0;
      std::memcpy(buffer.data(), bytes.data(), bytes.size());
      return bytes.size();
    });
    return id;
  }
  void put_model(const std::string& owner, const Digest& id, uint64_t bytes) {
    storage::ModelRow model{id};
    model.owner = owner;
    model.bytes = bytes;
    catalog_.put_model(model, std::nullopt);
  }
  uint64_t bytes_of(const std::string& caller) {
    for (const storage::CallerUse& use : quota_.uses()) {
      if (use.caller == caller) return use.bytes;
    }
    return 0;
  }
  /// The sum is kept otherwise than what it is of.
  void expect_true_sum() {
    uint64_t sum = 0;
    for (const storage::CallerUse& use : quota_.uses()) sum += use.bytes;
    EXPECT_EQ(quota_.sum_uses().bytes, sum);
  }

  storage::MemoryEnv env_;
  storage::FolderBlobStore blobs_{env_, "/store"};
  storage::SqliteCatalog catalog_{env_, "/store/catalog.db"};
  storage::FolderUploadStore uploads_{env_, "/store", blobs_, {}, [] { return int64_t{1'700'000'000'000}; }};
  CallerQuota quota_{catalog_, uploads_, {0, 100}};
};

TEST_F(CallerQuotaTest, AnUploadCountsUntilItIsAModel) {
  put_model("bob", Digest::of("another"), 40);
  const std::string id = upload("alice", "12345");
  upload("", "of nobody");
  EXPECT_EQ(bytes_of("alice"), 5U);
  EXPECT_EQ(quota_.sum_uses().bytes, 45U);
  const Digest blob = uploads_.finish(id, Digest::of("12345"));
  EXPECT_EQ(bytes_of("alice"), 5U);
  expect_true_sum();
  put_model("bob", blob, 5);
  EXPECT_EQ(bytes_of("alice"), 0U) << "it is the model's now";
  EXPECT_EQ(bytes_of("bob"), 45U);
  EXPECT_EQ(quota_.remaining("bob"), 55U);
  expect_true_sum();
  catalog_.remove_model(blob);
  EXPECT_EQ(bytes_of("alice"), 5U);
  uploads_.remove(id);
  EXPECT_EQ(quota_.sum_uses().bytes, 40U);
  expect_true_sum();
}

}  // namespace
}  // namespace tensormill::server
