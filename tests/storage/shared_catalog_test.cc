// What processes that share a catalog tell each other, of each back end.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SharedCatalogTest : public CatalogTest {
protected:
  void begin(const std::string& id, const std::string& name) {
    ReplicaRow replica;
    replica.id = id;
    replica.name = name;
    catalog_->begin_replica(replica, 1'000);
  }
  std::vector<std::string> live() {
    std::vector<std::string> names;
    for (const ReplicaRow& replica : catalog_->list_replicas()) {
      if (replica.is_live) names.push_back(replica.id);
    }
    return names;
  }
  void put(const std::string& text) { catalog_->put_blob({digest(text), 0, 7}); }
  std::vector<Digest> mark(const std::string& text, int64_t oldest, const std::string& replica) {
    const std::vector<Digest> blobs = {digest(text)};
    return catalog_->begin_blob_removal(blobs, oldest, replica, true);
  }
  void end_removal(const std::string& text, const std::string& replica) {
    const std::vector<Digest> blobs = {digest(text)};
    catalog_->end_blob_removal(blobs, blobs, replica);
  }
  /// What is kept must be what the rows have.
  void expect_true_sums() {
    BlobSums found;
    for (const BlobRow& row : catalog_->list_blobs()) {
      if (!row.form) continue;
      ++found.blobs;
      found.compressed += *row.form == 1 ? 1 : 0;
      found.stored_bytes += row.stored_bytes;
    }
    const BlobSums kept = catalog_->sum_blobs();
    EXPECT_EQ(kept.blobs, found.blobs);
    EXPECT_EQ(kept.compressed, found.compressed);
    EXPECT_EQ(kept.stored_bytes, found.stored_bytes);
  }
};

INSTANTIATE_TEST_SUITE_P(Catalogs, SharedCatalogTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SharedCatalogTest, ALeaseIsKeptByTheCatalogsClock) {
  begin("a1", "a");
  begin("b1", "b");
  EXPECT_THAT(live(), ElementsAre("a1", "b1"));
  now_ += 900;
  EXPECT_TRUE(catalog_->renew_replica("a1", 1'000));
  now_ += 200;
  EXPECT_THAT(live(), ElementsAre("a1"));
  EXPECT_TRUE(catalog_->renew_replica("b1", 1'000)) << "nobody has taken its row";
  EXPECT_THAT(live(), ElementsAre("a1", "b1"));
  begin("a2", "a");
  EXPECT_THAT(live(), ElementsAre("a2", "b1"));
  EXPECT_FALSE(catalog_->renew_replica("a1", 1'000)) << "a later run of the same name is there";
  catalog_->end_replica("b1");
  EXPECT_THAT(live(), ElementsAre("a2"));
  now_ += 10'000;
  EXPECT_EQ(catalog_->expire_replicas(5'000), 2);
  EXPECT_THAT(catalog_->list_replicas(), IsEmpty());
}

TEST_P(SharedCatalogTest, ALaterRunFreesWhatTheOneBeforeHeldAndRan) {
  begin("a1", "a");
  begin("b1", "b");
  catalog_->begin_blob_hold("a1");
  const std::string mine = submit("mine"), others = submit("others");
  ASSERT_EQ(claim("a1").id, mine);
  ASSERT_EQ(claim("b1").id, others);
  begin("a2", "a");
  EXPECT_EQ(catalog_->oldest_blob_hold("a2"), std::nullopt);
  now_ += 1;
  const std::vector<JobRow> orphans = catalog_->requeue_orphans(Orphans::kExpired, 0);
  ASSERT_EQ(orphans.size(), 1U);
  EXPECT_EQ(orphans[0].id, mine);
}

TEST_P(SharedCatalogTest, AHoldKeepsWhatIsTouchedAfterItBegan) {
  begin("a1", "a");
  begin("b1", "b");
  ASSERT_TRUE(catalog_->touch_blob(digest("early")));
  const int64_t hold = catalog_->begin_blob_hold("a1");
  ASSERT_TRUE(catalog_->touch_blob(digest("late")));
  const int64_t later = catalog_->begin_blob_hold("b1");
  EXPECT_LT(hold, later);
  EXPECT_EQ(catalog_->oldest_blob_hold("b1"), hold);
  EXPECT_THAT(mark("late", hold, "b1"), IsEmpty());
  EXPECT_THAT(mark("early", hold, "b1"), ElementsAre(digest("early")));
  catalog_->end_blob_hold(hold);
  EXPECT_EQ(catalog_->oldest_blob_hold("b1"), later);
  EXPECT_THAT(mark("late", later, "b1"), ElementsAre(digest("late")));
}

TEST_P(SharedCatalogTest, HoldsThatTheirProcessDoesNotKnowEnd) {
  begin("a1", "a");
  begin("b1", "b");
  catalog_->begin_blob_hold("a1");
  const int64_t known = catalog_->begin_blob_hold("a1"), others = catalog_->begin_blob_hold("b1");
  catalog_->end_unknown_holds("a1", {known});
  EXPECT_EQ(catalog_->oldest_blob_hold("a1"), known);
  catalog_->end_unknown_holds("a1", {});
  EXPECT_EQ(catalog_->oldest_blob_hold("a1"), others);
}

TEST_P(SharedCatalogTest, AHoldOfALostReplicaKeepsNothing) {
  begin("a1", "a");
  const int64_t hold = catalog_->begin_blob_hold("a1");
  ASSERT_TRUE(catalog_->touch_blob(digest("x")));
  now_ += 2'000;
  begin("b1", "b");
  const int64_t own = catalog_->begin_blob_hold("b1");
  EXPECT_LT(hold, own);
  EXPECT_EQ(catalog_->oldest_blob_hold("b1"), own);
  EXPECT_THAT(mark("x", own, "b1"), ElementsAre(digest("x")));
  EXPECT_ERROR(catalog_->oldest_blob_hold("a1"), ErrorCode::kUnavailable);
}

TEST_P(SharedCatalogTest, WhatIsBeingRemovedIsNeitherStoredNorNamed) {
  begin("a1", "a");
  begin("b1", "b");
  catalog_->require_blobs();
  put("m.0");
  put("m.1");
  const ModelRow row{digest("m"), {digest("m.0"), digest("m.1")}};
  const int64_t oldest = catalog_->begin_blob_hold("a1");
  ASSERT_THAT(mark("m.1", oldest, "a1"), ElementsAre(digest("m.1")));
  EXPECT_FALSE(catalog_->touch_blob(digest("m.1")));
  EXPECT_THAT(mark("m.1", oldest, "b1"), IsEmpty()) << "somebody who lives removes it";
  EXPECT_ERROR(catalog_->put_model(row, std::nullopt), ErrorCode::kUnavailable);
  EXPECT_EQ(catalog_->find_model(row.id), std::nullopt);
  end_removal("m.1", "a1");
  EXPECT_EQ(catalog_->find_blob(digest("m.1")), std::nullopt);
  EXPECT_ERROR(catalog_->put_model(row, std::nullopt), ErrorCode::kUnavailable);
  ASSERT_TRUE(catalog_->touch_blob(digest("m.1")));
  EXPECT_ERROR(catalog_->put_model(row, std::nullopt), ErrorCode::kUnavailable);  // it was only begun
  put("m.1");
  EXPECT_TRUE(catalog_->put_model(row, std::nullopt));
  // A row that names it is a touch: a collection that looked before leaves it.
  EXPECT_THAT(mark("m.0", oldest, "a1"), IsEmpty());
}

TEST_P(SharedCatalogTest, EveryKindOfRowThatNamesABlobIsRefusedWithoutIt) {
  catalog_->require_blobs();
  EXPECT_ERROR(catalog_->put_package(package("p")), ErrorCode::kUnavailable);
  EXPECT_ERROR((catalog_->put_deployment({"d", "{}", "{}", {}, 0, {digest("labels")}})),
               ErrorCode::kUnavailable);
  submit("a");
  const JobClaim held = claim();
  JobFinish finish;
  finish.log = digest("log");
  EXPECT_ERROR(catalog_->finish_job(held, finish), ErrorCode::kUnavailable);
  EXPECT_EQ(job(held.id).state, JobState::kRunning);
  JobRelease release;
  release.log = digest("log");
  EXPECT_ERROR(catalog_->release_job(held, release), ErrorCode::kUnavailable);
  put("log");
  EXPECT_TRUE(catalog_->finish_job(held, finish));
  catalog_->begin_upload({"u"}, 9);
  EXPECT_ERROR((catalog_->add_chunk("u", {0, 7, digest("chunk")}), 0), ErrorCode::kUnavailable);
  EXPECT_ERROR(catalog_->finish_upload("u", 0, digest("whole"), 1), ErrorCode::kUnavailable);
}

TEST_P(SharedCatalogTest, ARemovalOfALostReplicaIsTakenUp) {
  begin("a1", "a");
  put("x");
  const int64_t far = catalog_->begin_blob_hold("a1") + 1'000;
  ASSERT_THAT(mark("x", far, "a1"), ElementsAre(digest("x")));
  now_ += 2'000;
  begin("b1", "b");
  EXPECT_THAT(mark("x", far, "b1"), ElementsAre(digest("x")));
  end_removal("x", "a1");
  EXPECT_TRUE(catalog_->find_blob(digest("x"))) << "it is no longer the first one's";
  end_removal("x", "b1");
  EXPECT_EQ(catalog_->find_blob(digest("x")), std::nullopt);
}

TEST_P(SharedCatalogTest, SumsAreOfWhatIsStored) {
  put("a");
  catalog_->put_blob({digest("b"), 1, 5});
  ASSERT_TRUE(catalog_->touch_blob(digest("begun")));
  const BlobSums sums = catalog_->sum_blobs();
  EXPECT_EQ(sums.blobs, 2U);
  EXPECT_EQ(sums.compressed, 1U);
  EXPECT_EQ(sums.stored_bytes, 12U);
  EXPECT_EQ(catalog_->list_blobs().size(), 3U);
}

TEST_P(SharedCatalogTest, ManyChangesOfSumsBecomeOne) {
  const Digest blob = digest("a blob");
  for (uint64_t i = 0; i < 600; ++i) catalog_->put_blob({blob, static_cast<int>(i % 2), i});
  for (int round = 0; round < 2; ++round) {
    expect_true_sums();
    EXPECT_EQ(catalog_->sum_blobs().stored_bytes, 599U) << round;
  }
  catalog_->put_blob({digest("another"), 0, 1});
  EXPECT_EQ(catalog_->sum_blobs().stored_bytes, 600U);
}

TEST_P(SharedCatalogTest, SumsFollowTheRows) {
  begin("a1", "a");
  std::vector<Digest> blobs;
  for (int i = 0; i < 40; ++i) {
    blobs.push_back(digest(std::to_string(i)));
    ASSERT_TRUE(catalog_->touch_blob(blobs.back()));
    if (i % 4 != 3) catalog_->put_blob({blobs.back(), i % 2, static_cast<uint64_t>(i)});
  }
  expect_true_sums();
  EXPECT_EQ(catalog_->sum_blobs().blobs, 30U);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(catalog_->touch_blob(blobs[static_cast<size_t>(i)])) << "which changes no sum";
    catalog_->put_blob({blobs[static_cast<size_t>(i)], (i + 1) % 2, static_cast<uint64_t>(3 * i)});
  }
  expect_true_sums();
  reopen();
  expect_true_sums();
  // Of those that are removed half are not gone to the end.
  const int64_t far = catalog_->begin_blob_hold("a1") + 1'000;
  std::sort(blobs.begin(), blobs.end());
  const std::span removed(blobs.data(), 20);
  ASSERT_EQ(catalog_->begin_blob_removal(removed, far, "a1", true).size(), removed.size());
  expect_true_sums();
  catalog_->end_blob_removal(removed, removed.first(10), "a1");
  expect_true_sums();
  EXPECT_EQ(catalog_->list_blobs().size(), 30U);
  const std::span all(blobs.data(), blobs.size());
  catalog_->begin_blob_removal(all, far, "a1", true);
  catalog_->end_blob_removal(all, all, "a1");
  expect_true_sums();
  EXPECT_EQ(catalog_->sum_blobs().stored_bytes, 0U);
}

TEST_P(SharedCatalogTest, ChunksFollowEachOther) {
  UploadRow upload;
  upload.id = "u1";
  upload.owner = "alice";
  upload.key = "k";
  EXPECT_EQ(catalog_->begin_upload(upload, 1).id, "u1");
  upload.id = "u2";
  EXPECT_EQ(catalog_->begin_upload(upload, 1).id, "u1") << "it was begun with this key";
  upload.key = "";
  EXPECT_ERROR(catalog_->begin_upload(upload, 1), ErrorCode::kUnavailable);
  catalog_->add_chunk("u1", {0, 7, digest("c0")});
  EXPECT_ERROR((catalog_->add_chunk("u1", {0, 7, digest("c0")}), 0), ErrorCode::kRangeNotSatisfiable);
  EXPECT_ERROR((catalog_->add_chunk("none", {0, 7, digest("c0")}), 0), ErrorCode::kNotFound);
  catalog_->add_chunk("u1", {7, 3, digest("c1")});
  EXPECT_EQ(catalog_->find_upload("u1")->size, 10U);
  EXPECT_EQ(catalog_->sum_uploads().bytes, 10U);
  EXPECT_EQ(catalog_->list_chunks("u1").at(1).begin, 7U);
  EXPECT_EQ(catalog_->upload_blobs().size(), 2U);
  EXPECT_FALSE(catalog_->finish_upload("u1", 7, digest("whole"), 1)) << "a chunk came meanwhile";
  EXPECT_TRUE(catalog_->finish_upload("u1", 10, digest("whole"), 77));
  EXPECT_ERROR((catalog_->add_chunk("u1", {10, 7, digest("c2")}), 0), ErrorCode::kConflict);
  EXPECT_THAT(catalog_->upload_blobs(), ElementsAre(digest("whole")));
  EXPECT_EQ(catalog_->find_upload("u1")->blob_bytes, 10U);
  EXPECT_EQ(catalog_->find_upload("u1")->size, 0U);
  EXPECT_EQ(catalog_->sum_uploads().uploads, 1U);
  EXPECT_EQ(catalog_->sum_uploads().bytes, 0U) << "its chunks went";
  EXPECT_EQ(catalog_->find_upload("u1")->since_ms, 77);
  EXPECT_TRUE(catalog_->remove_upload("u1"));
  EXPECT_FALSE(catalog_->remove_upload("u1"));
}

TEST_P(SharedCatalogTest, ALogIsReadWhileItsAttemptRuns) {
  submit("a");
  const JobClaim held = claim();
  const std::string first("one\0\xff", 5);
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, 0, ""), 0);
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, 0, first), 5);
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, 0, "again"), 5);
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, 6, "behind a gap"), 5);
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, 5, "two"), 8);
  EXPECT_FALSE(catalog_->append_log(held.id, held.attempt + 1, 0, "stale"));
  EXPECT_EQ(catalog_->read_log(held.id, held.attempt, 0, 100), first + "two");
  EXPECT_EQ(catalog_->read_log(held.id, held.attempt + 1, 0, 100), "");
  catalog_->release_job(held, {});
  EXPECT_FALSE(catalog_->append_log(held.id, held.attempt, 8, "late"));
}

TEST_P(SharedCatalogTest, APartOfALogIsReadFromAnyPlace) {
  submit("a");
  const JobClaim held = claim();
  std::string log;
  for (const std::string& text : {std::string("one"), std::string("\0\xff", 2), std::string("three")}) {
    catalog_->append_log(held.id, held.attempt, static_cast<int64_t>(log.size()), text);
    log += text;
  }
  for (size_t begin = 0; begin <= log.size() + 1; ++begin) {
    for (size_t most = 1; most <= log.size() + 1; ++most) {
      EXPECT_EQ(catalog_->read_log(held.id, held.attempt, static_cast<int64_t>(begin), most),
                begin < log.size() ? log.substr(begin, most) : "")
          << begin << ", " << most;
    }
  }
}

TEST_P(SharedCatalogTest, ALongTextOfALogBecomesSeveralRows) {
  submit("a");
  const JobClaim held = claim();
  const std::string text = std::string(kLogRow, 'a') + std::string(kLogRow, 'b') + "c";
  const auto size = static_cast<int64_t>(text.size());
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, 0, text), size);
  EXPECT_EQ(catalog_->append_log(held.id, held.attempt, size, "d"), size + 1);
  const auto edge = static_cast<int64_t>(kLogRow) - 1;
  EXPECT_EQ(catalog_->read_log(held.id, held.attempt, edge, 3), "abb");
  EXPECT_EQ(catalog_->read_log(held.id, held.attempt, size - 2, 100), "bcd");
  EXPECT_EQ(catalog_->read_log(held.id, held.attempt, 0, 3 * kLogRow), text + "d");
}

TEST_P(SharedCatalogTest, ADeploymentIsChangedOnlyAsItIsKnown) {
  const std::string before = catalog_->deployments_mark();
  const int64_t first = catalog_->put_deployment({"d", "1"}, 0);
  EXPECT_NE(catalog_->deployments_mark(), before);
  EXPECT_ERROR(catalog_->put_deployment({"d", "2"}, 0), ErrorCode::kConflict);
  const int64_t second = catalog_->put_deployment({"d", "2"}, first);
  EXPECT_GT(second, first);
  EXPECT_ERROR(catalog_->put_deployment({"d", "3"}, first), ErrorCode::kConflict);
  EXPECT_EQ(catalog_->find_deployment("d")->desired, "2");
  EXPECT_EQ(catalog_->find_deployment("d")->revision, second);
  EXPECT_THAT(catalog_->deployment_revisions(), ElementsAre(std::pair(std::string("d"), second)));
  EXPECT_ERROR(catalog_->remove_deployment("d", first), ErrorCode::kConflict);
  EXPECT_TRUE(catalog_->remove_deployment("d", second));
}

TEST_P(SharedCatalogTest, WhatAReplicaHasGoesWithTheDeployment) {
  begin("a1", "a");
  const auto put = [&](const std::vector<ObservedRow>& rows) { catalog_->put_observed(rows); };
  put({});
  put({{"none", "a", 1, "{}"}});
  EXPECT_THAT(catalog_->observed_by("a"), IsEmpty()) << "there is no such deployment";
  catalog_->put_deployment({"d", "1"});
  put({{"d", "a", 1, R"({"x":1})"}, {"none", "a", 1, "{}"}});
  put({{"d", "a", 2, R"({"x":2})"}, {"d", "b", 1, "{}"}});
  const std::vector<ObservedRow> rows = catalog_->list_observed("d");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].revision, 2);
  EXPECT_EQ(rows[0].state, R"({"x":2})");
  EXPECT_TRUE(rows[0].is_live);
  EXPECT_FALSE(rows[1].is_live);
  catalog_->remove_deployment("d");
  EXPECT_THAT(catalog_->list_observed("d"), IsEmpty());
}

}  // namespace
}  // namespace tensormill::storage
