// Whose things the catalog holds, what one caller may have queued, and kept answers.
#include <algorithm>
#include <map>

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
  ModelRow model_of(const std::string& caller, const std::string& text, uint64_t bytes) {
    ModelRow row = model(text);
    row.owner = caller;
    row.bytes = bytes;
    return row;
  }
  PackageRow package_of(const std::string& caller, const std::string& text, uint64_t bytes) {
    PackageRow row = package(text);
    row.owner = caller;
    row.archive_bytes = bytes;
    return row;
  }
  /// What is kept must be what the rows have.
  void expect_true_sums() {
    std::map<std::string, uint64_t> bytes;
    for (const ModelRow& row : catalog_->list_models({0, 1'000}).items) bytes[row.owner] += row.bytes;
    for (const PackageRow& row : catalog_->list_packages({}, {0, 1'000}).items)
      bytes[row.owner] += row.archive_bytes;
    bytes.erase("");
    std::map<std::string, uint64_t> kept;
    uint64_t sum = 0;
    for (const CallerUse& use : catalog_->list_uses()) {
      if (use.live_jobs == 0 || use.bytes != 0) kept[use.caller] = use.bytes;
      sum += use.bytes;
    }
    EXPECT_EQ(kept, bytes);
    EXPECT_EQ(catalog_->sum_uses().bytes, sum);
    EXPECT_EQ(catalog_->sum_uses().caller, "");
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

TEST_P(CatalogCallersTest, SumsFollowTheRows) {
  expect_true_sums();
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string text = std::to_string(i);
    const std::string caller = i % 3 == 0 ? "" : i % 3 == 1 ? "alice" : "bob";
    catalog_->put_model(model_of(caller, "model " + text, i), std::nullopt);
    catalog_->put_package(package_of(caller, "package " + text, 100 * i));
  }
  // What is there already counts for whoever brought it first.
  catalog_->put_model(model_of("carol", "model 1", 7), std::nullopt);
  catalog_->put_package(package_of("carol", "package 1", 7));
  submit_for("bob", "k");
  submit_for("", "of nobody");
  expect_true_sums();
  EXPECT_EQ(catalog_->sum_uses().live_jobs, 1);
  reopen();
  expect_true_sums();
  for (int i = 0; i < 40; i += 2) {
    catalog_->remove_model(digest("model " + std::to_string(i)));
    catalog_->remove_package(digest("package " + std::to_string(i)));
  }
  expect_true_sums();
  now_ += 10;
  EXPECT_EQ(catalog_->expire_packages(5), 20);
  expect_true_sums();
  for (int i = 1; i < 40; i += 2) catalog_->remove_model(digest("model " + std::to_string(i)));
  expect_true_sums();
  EXPECT_EQ(catalog_->sum_uses().bytes, 0U);
  EXPECT_EQ(catalog_->list_uses().size(), 1U) << "who has nothing is not in it";
}

TEST_P(CatalogCallersTest, ManyChangesOfSumsBecomeOne) {
  for (int i = 0; i < 600; ++i) {
    const std::string text = std::to_string(i);
    catalog_->put_model(model_of(i % 2 == 0 ? "alice" : "bob", text, 3), std::nullopt);
    if (i < 500) catalog_->remove_model(digest(text));
  }
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(catalog_->list_uses().size(), 2U) << round;
    expect_true_sums();
  }
  catalog_->put_model(model_of("alice", "one more", 7), std::nullopt);
  EXPECT_EQ(catalog_->sum_uses().bytes, 307U);
  expect_true_sums();
}

TEST_P(CatalogCallersTest, ModelsAreFoundAmongOthers) {
  catalog_->put_model(model("a"), std::nullopt);
  catalog_->put_model(model("b"), std::nullopt);
  std::vector<Digest> both = {digest("a"), digest("b")};
  std::sort(both.begin(), both.end());
  EXPECT_EQ(catalog_->models_among({digest("b"), digest("gone"), digest("a")}), both);
  EXPECT_TRUE(catalog_->models_among({digest("gone")}).empty());
  EXPECT_TRUE(catalog_->models_among({}).empty());
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

TEST_P(CatalogCallersTest, ARequestIsNotedWithItsWork) {
  const RepeatKey asked{"alice", "k", "rollback d"};
  EXPECT_FALSE(catalog_->was_done(asked));
  catalog_->put_deployment({"d"}, std::nullopt, {asked, {}});
  reopen();
  EXPECT_TRUE(catalog_->was_done(asked));
  EXPECT_FALSE(catalog_->was_done({"bob", "k", "rollback d"}));
  EXPECT_FALSE(catalog_->was_done({"alice", "", ""})) << "what has no key is never a repeat";
  EXPECT_ERROR((void)catalog_->was_done({"alice", "k", "rollback e"}), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(catalog_->find_answer("alice", "k", 86'400'000)) << "it has no answer yet";
  // What was not done is not noted.
  EXPECT_ERROR(catalog_->put_deployment({"d", "{}", "{}", {digest("gone")}}, std::nullopt,
                                        {{"alice", "other", "rollback d"}}),
               ErrorCode::kNotFound);
  EXPECT_FALSE(catalog_->was_done({"alice", "other", "rollback d"}));
  now_ += 86'400'000;
  EXPECT_FALSE(catalog_->was_done(asked)) << "after a day a key is new";
}

TEST_P(CatalogCallersTest, WorkThatEndsAfterItsAnswerLeavesTheAnswer) {
  catalog_->put_answer({"alice", "k", "hash", "answer"}, 1000);
  catalog_->put_deployment({"d"}, std::nullopt, {{"alice", "k", "rollback d"}});
  ASSERT_TRUE(catalog_->find_answer("alice", "k", 1000));
  EXPECT_EQ(catalog_->find_answer("alice", "k", 1000)->answer, "answer");
}

TEST_P(CatalogCallersTest, TheEndOfAJobIsNotedWithIt) {
  const RepeatKey finished{"alice", "f", "results of a"}, released{"alice", "r", "results of b"};
  submit_for("alice", "a");
  JobFinish finish;
  finish.done = finished;
  const JobClaim first = claim();
  EXPECT_TRUE(catalog_->finish_job(first, finish));
  EXPECT_TRUE(catalog_->was_done(finished));
  submit_for("alice", "b");
  const JobClaim second = claim();
  JobRelease release;
  release.done = released;
  EXPECT_TRUE(catalog_->release_job(second, release));
  EXPECT_TRUE(catalog_->was_done(released));
  release.done.key = "late";
  EXPECT_FALSE(catalog_->release_job(second, release));
  EXPECT_FALSE(catalog_->was_done(release.done)) << "a stale claim changes nothing";
}

}  // namespace
}  // namespace tensormill::storage
