// What is looked at and then written in one transaction, so that nothing comes between: what deployments and
// jobs need, and requests that are sent again.
#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

using CatalogChecksTest = CatalogTest;

INSTANTIATE_TEST_SUITE_P(Backends, CatalogChecksTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& row) { return row.param.name; });

TEST_P(CatalogChecksTest, ADeploymentIsOfPackagesThatAreThere) {
  catalog_->put_package(package("p"));
  EXPECT_ERROR((catalog_->put_deployment({"d", "{}", "{}", {digest("p"), digest("gone")}}), 0),
               ErrorCode::kNotFound);
  EXPECT_FALSE(catalog_->find_deployment("d"));
  EXPECT_TRUE(catalog_->remove_package(digest("p"))) << "the refused row uses nothing";
  catalog_->put_package(package("p"));
  catalog_->put_deployment({"d", "1", "{}", {digest("p")}});
  EXPECT_ERROR((catalog_->put_deployment({"d", "2", "{}", {digest("p"), digest("gone")}}), 0),
               ErrorCode::kNotFound);
  EXPECT_EQ(catalog_->find_deployment("d")->desired, "1");
  // It uses what it used before.
  EXPECT_ERROR(catalog_->remove_package(digest("p")), ErrorCode::kInUse);
}

TEST_P(CatalogChecksTest, AJobIsOfThingsThatAreThereAndKeepsThem) {
  JobSubmission job = submission("k");
  const auto refused = [&] { EXPECT_ERROR(catalog_->submit_job(job), ErrorCode::kNotFound); };
  job.needs_models = {digest("m"), digest("n")};
  refused();
  catalog_->put_model(model("m"), std::nullopt);
  refused();
  catalog_->put_model(model("n"), std::nullopt);
  job.subject = digest("m").text();
  job.needs_package = digest("p");
  refused();
  catalog_->put_package(package("p"));
  job.needs_set = digest("s");
  refused();
  EXPECT_EQ(catalog_->count_jobs(JobState::kQueued), 0);
  catalog_->put_tuning_set({digest("s"), "", {}}, {});
  const std::string id = catalog_->submit_job(job).job.id;
  now_ += 1000;
  for (int running = 0; running < 2; ++running) {
    EXPECT_ERROR(catalog_->remove_model(digest("m")), ErrorCode::kInUse);
    EXPECT_ERROR(catalog_->remove_model(digest("n")), ErrorCode::kInUse);
    EXPECT_ERROR(catalog_->remove_package(digest("p")), ErrorCode::kInUse);
    EXPECT_EQ(catalog_->expire_packages(1), 0);
    if (running == 0) claim();
  }
  catalog_->finish_job({id, 1, "w1"}, {JobState::kFailed, "", "{}"});
  EXPECT_EQ(catalog_->expire_packages(1), 1);
  EXPECT_TRUE(catalog_->remove_model(digest("m")));
  EXPECT_TRUE(catalog_->remove_model(digest("n")));
}

TEST_P(CatalogChecksTest, BlobsOfARequestAreNamedAsLongAsTheyMayBeRead) {
  JobSubmission once = submission("once"), told = submission("told");
  once.needs_blobs = {digest("shared"), digest("of one run")};
  told.needs_blobs = {digest("shared"), digest("of a report"), digest("of a report")};
  told.keeps_blobs = true;
  catalog_->submit_job(once);
  catalog_->submit_job(told);
  const std::vector<std::string> all = {"of a report", "of one run", "shared"};
  const auto named = [&] {
    std::vector<Digest> asked;
    for (const std::string& text : all) asked.push_back(digest(text));
    std::sort(asked.begin(), asked.end());
    const std::vector<Digest> among = catalog_->referenced_among(asked), rows = catalog_->referenced_blobs();
    EXPECT_EQ(catalog_->count_referenced_blobs(), rows.size());
    std::vector<std::string> found;
    for (const std::string& text : all) {
      EXPECT_EQ(testing::Value(among, testing::Contains(digest(text))),
                testing::Value(rows, testing::Contains(digest(text))));
      if (testing::Value(rows, testing::Contains(digest(text)))) found.push_back(text);
    }
    return found;
  };
  EXPECT_EQ(named(), all);
  const JobClaim first = claim(), second = claim();
  EXPECT_EQ(named(), all) << "both run";
  catalog_->finish_job(first, {JobState::kSucceeded, "{}", ""});
  catalog_->finish_job(second, {JobState::kFailed, "", "{}"});
  EXPECT_THAT(named(), testing::ElementsAre("of a report", "shared"));
  reopen();
  EXPECT_THAT(named(), testing::ElementsAre("of a report", "shared"));
  catalog_->retry_job(second.id, {});
  catalog_->cancel_job(second.id);
  now_ += 1000;
  EXPECT_EQ(catalog_->expire_jobs(1), 2);
  EXPECT_THAT(named(), testing::IsEmpty());
}

Submitter caller(const std::string& name) { return {name, 0, false}; }

TEST_P(CatalogChecksTest, ACancelThatIsSentAgainWithdrawsOnce) {
  JobSubmission wanted = submission("k");
  wanted.submitter = caller("alice");
  const std::string id = catalog_->submit_job(wanted).job.id;
  ASSERT_EQ(catalog_->submit_job(wanted).job.id, id);
  wanted.submitter = caller("bob");
  ASSERT_EQ(catalog_->submit_job(wanted).job.id, id);
  EXPECT_TRUE(catalog_->cancel_job(id, caller("alice"), "c1").withdrawn_only);
  reopen();  // the answer was never kept
  const CancelOutcome again = catalog_->cancel_job(id, caller("alice"), "c1");
  EXPECT_TRUE(again.withdrawn_only);
  EXPECT_EQ(again.job.submitters, 2);
  // Another caller's key is another key.
  EXPECT_TRUE(catalog_->cancel_job(id, caller("bob"), "c1").withdrawn_only);
  EXPECT_EQ(job(id).submitters, 1);
  EXPECT_EQ(catalog_->cancel_job(id, caller("alice"), "c2").job.state, JobState::kCancelled);
  EXPECT_FALSE(catalog_->cancel_job(id, caller("alice"), "c2").withdrawn_only);
  EXPECT_ERROR(catalog_->retry_job(id, caller("alice"), "c2"), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(catalog_->find_answer("alice", "c1", 86'400'000)) << "a note is no answer";
  catalog_->put_answer({"alice", "c1", "hash", "{}"}, 86'400'000);
  EXPECT_TRUE(catalog_->find_answer("alice", "c1", 86'400'000));
}

TEST_P(CatalogChecksTest, ACancelThatWasRefusedIsNotDone) {
  const std::string id = submit("k");
  catalog_->finish_job(claim(), {JobState::kSucceeded, "{}", ""});
  EXPECT_ERROR(catalog_->cancel_job(id, {}, "c"), ErrorCode::kConflict);
  const std::string other = submit("other");
  EXPECT_EQ(catalog_->cancel_job(other, {}, "c").job.state, JobState::kCancelled);
}

TEST_P(CatalogChecksTest, ARetryThatIsSentAgainQueuesOnce) {
  const std::string id = submit("k");
  catalog_->finish_job(claim(), {JobState::kFailed, "", "{}"});
  EXPECT_EQ(catalog_->retry_job(id, {}, "r").state, JobState::kQueued);
  EXPECT_EQ(catalog_->retry_job(id, {}, "r").state, JobState::kQueued) << "no conflict";
  catalog_->finish_job(claim(), {JobState::kFailed, "", "{}"});
  EXPECT_EQ(catalog_->retry_job(id, {}, "r").state, JobState::kFailed) << "not once more";
  now_ += 86'400'001;
  EXPECT_EQ(catalog_->retry_job(id, {}, "r").state, JobState::kQueued) << "keys are kept for a day";
}

TEST_P(CatalogChecksTest, PackagesAreListedByModelAndTarget) {
  for (const char* name : {"a", "b", "c", "d"}) {
    PackageRow row = package(name);
    row.model = std::string(name) < "c" ? "m1" : "m2";
    row.target = std::string(name) == "b" ? "t2" : "t1";
    catalog_->put_package(row);
  }
  const auto ids = [&](const PackageFilter& filter, const PageRequest& page = {}) {
    std::vector<Digest> found;
    for (const PackageRow& row : catalog_->list_packages(filter, page).items) found.push_back(row.id);
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(ids({"m1", ""}), ElementsAre(digest("b"), digest("a")));
  EXPECT_THAT(ids({"", "t1"}), ElementsAre(digest("d"), digest("c"), digest("a")));
  EXPECT_THAT(ids({"m1", "t1"}), ElementsAre(digest("a")));
  EXPECT_THAT(ids({"nothing", ""}), testing::IsEmpty());
  const Page<PackageRow> first = catalog_->list_packages({"", "t1"}, {0, 2});
  EXPECT_NE(first.next, 0);
  EXPECT_THAT(ids({"", "t1"}, {first.next, 2}), ElementsAre(digest("a")));
  EXPECT_EQ(catalog_->find_package(digest("b"))->target, "t2");
}

TEST_P(CatalogChecksTest, JobsAreListedByStateKindAndSubject) {
  std::vector<std::string> made;
  for (const char* key : {"a", "b", "c"}) made.push_back(submit(key));
  claim();
  JobFilter filter;
  filter.state = JobState::kQueued;
  EXPECT_EQ(catalog_->list_jobs(filter, {}).items.size(), 2U);
  filter.subject = "subject of c";
  filter.kind = "compile";
  const Page<JobRow> found = catalog_->list_jobs(filter, {});
  ASSERT_EQ(found.items.size(), 1U);
  EXPECT_EQ(found.items[0].id, made[2]);
  filter.kind = "tune";
  EXPECT_TRUE(catalog_->list_jobs(filter, {}).items.empty());
}

}  // namespace
}  // namespace tensormill::storage
