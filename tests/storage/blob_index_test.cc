// What every index of blobs promises stores: that of a lone process, and that of replicas, of which the test
// has two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "storage/blob/blob_index.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/postgresql/postgres_catalog.h"
#include "storage/replica/shared_blob_index.h"
#include "tests/storage/private_postgres.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BlobIndexTest : public testing::TestWithParam<std::string> {
protected:
  BlobIndexTest() {
    if (GetParam() == "memory") {
      one_ = two_ = std::make_shared<MemoryBlobIndex>();
      return;
    }
    if (GetParam() == "postgresql") {
      catalog_ = std::make_unique<PostgresCatalog>(postgres_options(fresh_postgres_schema()));
    } else {
      catalog_ = std::make_unique<SqliteCatalog>(env_, "/c.db");
    }
    one_ = replica("one", [this] { return one_is_sure_; });
    two_ = replica("two", nullptr);
  }
  std::shared_ptr<BlobIndex> replica(const std::string& name, std::function<bool()> is_sure) {
    ReplicaRow row;
    row.id = row.name = name;
    catalog_->begin_replica(row, 3'600'000);
    SharedIndexOptions options;
    options.replica = name;
    options.is_sure = std::move(is_sure);
    options.usage_age = std::chrono::milliseconds(0);
    return std::make_shared<SharedBlobIndex>(*catalog_, std::move(options));
  }
  void commit(BlobIndex& index, const Digest& digest, uint64_t bytes = 7) {
    index.begin_commit(digest);
    index.put({digest, BlobForm::kPlain, bytes});
    index.end_commit(digest);
  }
  /// As a collection that begins now and finds it in no row.
  std::vector<Digest> collected(BlobIndex& index, const Digest& digest) {
    const uint64_t own = index.begin_hold();
    const std::vector<Digest> marked =
        index.begin_removal(std::span(&digest, 1), index.oldest_hold().value(), true);
    index.end_hold(own);
    for (const Digest& gone : marked) index.erase(gone);
    index.end_removal(marked);
    return marked;
  }

  const Digest blob_ = Digest::of("blob");
  MemoryEnv env_;
  std::unique_ptr<Catalog> catalog_;
  bool one_is_sure_ = true;
  std::shared_ptr<BlobIndex> one_, two_;
};

INSTANTIATE_TEST_SUITE_P(Indices, BlobIndexTest, testing::Values("memory", "sqlite", "postgresql"),
                         [](const auto& info) { return info.param; });

TEST_P(BlobIndexTest, WhatOneStoresTheOtherKnows) {
  EXPECT_FALSE(two_->find(blob_));
  one_->begin_commit(blob_);
  EXPECT_TRUE(two_->is_empty()) << "it is not there yet";
  one_->end_commit(blob_);
  commit(*one_, blob_);
  ASSERT_TRUE(two_->find(blob_));
  EXPECT_EQ(two_->find(blob_)->stored_bytes, 7U);
  EXPECT_FALSE(two_->is_empty());
  commit(*two_, blob_, 9);
  EXPECT_EQ(one_->list().size(), 1U);
  EXPECT_EQ(one_->usage().stored_bytes, 9U);
}

TEST_P(BlobIndexTest, AHoldOfOneKeepsItFromTheOther) {
  const uint64_t hold = one_->begin_hold();
  commit(*one_, blob_);
  EXPECT_THAT(collected(*two_, blob_), IsEmpty());
  one_->end_hold(hold);
  EXPECT_THAT(collected(*two_, blob_), ElementsAre(blob_));
  EXPECT_FALSE(one_->find(blob_));
  EXPECT_EQ(one_->usage().blobs, 0U);
}

TEST_P(BlobIndexTest, WhatIsFoundToBeThereAlreadyIsKeptAsWell) {
  commit(*one_, blob_);
  const uint64_t hold = one_->begin_hold();
  one_->begin_commit(blob_);
  one_->end_commit(blob_);
  EXPECT_THAT(collected(*two_, blob_), IsEmpty());
  one_->end_hold(hold);
}

TEST_P(BlobIndexTest, ACommitUnderWayIsKeptWithoutAHold) {
  commit(*one_, blob_);
  const uint64_t hold = one_->begin_hold();
  one_->begin_commit(blob_);
  one_->end_hold(hold);
  EXPECT_THAT(collected(*two_, blob_), IsEmpty());
  one_->end_commit(blob_);
  EXPECT_THAT(collected(*two_, blob_), ElementsAre(blob_));
}

TEST_P(BlobIndexTest, ACommitWaitsForARemovalOfTheOther) {
  commit(*one_, blob_);
  const uint64_t own = two_->begin_hold();
  const std::vector<Digest> marked =
      two_->begin_removal(std::span(&blob_, 1), two_->oldest_hold().value(), true);
  ASSERT_THAT(marked, ElementsAre(blob_));
  two_->end_hold(own);
  EXPECT_THAT(collected(*one_, blob_), IsEmpty()) << "somebody removes it";
  auto committed = std::async(std::launch::async, [&] { commit(*one_, blob_, 5); });
  two_->erase(blob_);
  two_->end_removal(marked);
  committed.get();
  EXPECT_EQ(two_->find(blob_)->stored_bytes, 5U);
}

TEST_P(BlobIndexTest, WhatWasBegunAndNotEndedIsFoundByACollection) {
  if (GetParam() == "memory") return;  // goes with the process
  one_->begin_commit(blob_);
  one_->end_commit(blob_);
  EXPECT_FALSE(one_->find(blob_));
  EXPECT_THAT(one_->list(), IsEmpty());
  ASSERT_EQ(two_->collectable().size(), 1U);
  EXPECT_THAT(collected(*two_, blob_), ElementsAre(blob_));
  EXPECT_THAT(two_->collectable(), IsEmpty());
}

TEST_P(BlobIndexTest, WhoIsNotSureOfTheLeaseRemovesNothing) {
  if (GetParam() == "memory") return;  // it has none
  commit(*one_, blob_);
  one_is_sure_ = false;
  EXPECT_ERROR(collected(*one_, blob_), ErrorCode::kUnavailable);
  catalog_->end_replica("one");
  EXPECT_ERROR(one_->oldest_hold(), ErrorCode::kUnavailable);
  EXPECT_TRUE(two_->find(blob_));
  EXPECT_THAT(collected(*two_, blob_), ElementsAre(blob_));
}

}  // namespace
}  // namespace tensormill::storage
