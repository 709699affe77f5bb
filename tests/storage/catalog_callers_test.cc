// Whose things the catalog holds, what one caller may have queued, and kept answers.
#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

class CatalogCallersTest : public CatalogTest {
protected:
  std::string submit_for(const std::string& caller, const std::string& key, int64_t max_live = 0) {
    JobSubmission request = submission(key);
    request.submitter = {caller, max_live};
    return catalog_->submit_job(request).job.id;
  }
  CallerUse use_of(const std::string& caller) {
    for (const CallerUse& use : catalog_->list_uses()) {
      if (use.caller == caller) return use;
    }
    return {};
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, CatalogCallersTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& row) { return row.param.name; });

TEST_P(CatalogCallersTest, LiveJobsOfOneCallerAreBounded) {
  submit_for("alice", "a", 2);
  const std::string second = submit_for("alice", "b", 2);
  EXPECT_ERROR(submit_for("alice", "c", 2), ErrorCode::kQuotaExceeded);
  EXPECT_EQ(submit_for("alice", "b", 2), second) << "joining makes no work";
  submit_for("bob", "c", 2);
  submit_for("bob", "a", 1);
  EXPECT_ERROR(submit_for("bob", "d", 1), ErrorCode::kQuotaExceeded);
  EXPECT_EQ(use_of("alice").live_jobs, 2);
  EXPECT_EQ(use_of("bob").live_jobs, 1);
  const JobClaim first = claim();  // a running job counts
  EXPECT_ERROR(submit_for("alice", "d", 2), ErrorCode::kQuotaExceeded);
  catalog_->finish_job(first, {JobState::kFailed, "", "{}"});
  submit_for("alice", "d", 2);
  EXPECT_ERROR(catalog_->retry_job(first.id, {"alice", 2}), ErrorCode::kQuotaExceeded);
  EXPECT_EQ(catalog_->retry_job(first.id, {"bob", 2}).submitter, "bob");
  EXPECT_EQ(use_of("bob").live_jobs, 2);
}

TEST_P(CatalogCallersTest, ModelsAndPackagesCountForWhoBroughtThemFirst) {
  ModelRow mine = model("m");
  mine.owner = "alice";
  mine.bytes = 100;
  catalog_->put_model(mine, std::nullopt);
  mine.owner = "bob";
  catalog_->put_model(mine, std::nullopt);
  submit_for("bob", "k");
  JobFinish finish;
  finish.package = package("p");
  catalog_->finish_job(claim(), finish);
  reopen();
  EXPECT_EQ(use_of("alice").bytes, 100U);
  EXPECT_EQ(use_of("bob").bytes, package("p").archive_bytes);
  EXPECT_EQ(catalog_->find_package(digest("p"))->owner, "bob");
  EXPECT_EQ(catalog_->find_model(mine.id)->owner, "alice");
  catalog_->remove_model(mine.id);
  EXPECT_EQ(catalog_->list_uses().size(), 1U);
}

TEST_P(CatalogCallersTest, AnswersAreKeptForATimeForEachCaller) {
  constexpr int64_t kKeep = 1000;
  catalog_->put_answer({"alice", "k", "hash", "answer"}, kKeep);
  reopen();
  ASSERT_TRUE(catalog_->find_answer("alice", "k", kKeep));
  EXPECT_EQ(catalog_->find_answer("alice", "k", kKeep)->request_hash, "hash");
  EXPECT_EQ(catalog_->find_answer("alice", "k", kKeep)->answer, "answer");
  EXPECT_FALSE(catalog_->find_answer("bob", "k", kKeep));
  catalog_->put_answer({"alice", "k", "hash", "later"}, kKeep);
  EXPECT_EQ(catalog_->find_answer("alice", "k", kKeep)->answer, "later");
  now_ += kKeep;
  EXPECT_FALSE(catalog_->find_answer("alice", "k", kKeep));
}

}  // namespace
}  // namespace tensormill::storage
