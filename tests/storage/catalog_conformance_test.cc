// What every back end of Catalog must do. A new back end is one more row in kBackends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "storage/catalog/catalog.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/catalog/uuid7.h"
#include "storage/env/memory_env.h"
#include "storage/env/posix_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// A catalog that can be closed and opened again, with a clock that the test moves.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) = 0;
};

class SqliteInMemory final : public Backend {
public:
  std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) override {
    return std::make_unique<SqliteCatalog>(env_, "/catalog.db", SqliteCatalogOptions{std::move(now_ms)});
  }

private:
  MemoryEnv env_;
};

class SqliteOnDisk final : public Backend {
public:
  std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) override {
    return std::make_unique<SqliteCatalog>(env_, folder_.path() + "/catalog.db",
                                           SqliteCatalogOptions{std::move(now_ms)});
  }

private:
  TemporaryFolder folder_;
  PosixEnv env_;
};

struct BackendRow {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

const std::vector<BackendRow> kBackends = {
    {"sqlite_memory", [] { return std::make_unique<SqliteInMemory>(); }},
    {"sqlite_disk", [] { return std::make_unique<SqliteOnDisk>(); }},
};

class CatalogTest : public testing::TestWithParam<BackendRow> {
protected:
  CatalogTest() : backend_(GetParam().make()) { reopen(); }
  void reopen() {
    catalog_.reset();
    catalog_ = backend_->open([this] { return now_; });
  }
  static Digest digest(const std::string& text) { return Digest::of(text); }
  static ModelRow model(const std::string& text) {
    return {digest(text), {digest(text + ".0"), digest(text + ".1")}, R"({"format":"onnx"})"};
  }
  static PackageRow package(const std::string& text) {
    return {digest(text),
            {{"mod.so", digest(text + ".so"), 7}, {"mod.params", digest(text + ".params"), 9}},
            digest(text + ".tar"),
            99,
            R"({"target":"llvm"})"};
  }
  static JobSubmission submission(const std::string& key) {
    JobSubmission job;
    job.kind = "compile";
    job.subject = "subject of " + key;
    job.action_key = key;
    job.request = R"({"model":"m"})";
    job.resolved = R"({"model":"sha256:0"})";
    return job;
  }
  std::string submit(const std::string& key) { return catalog_->submit_job(submission(key)).job.id; }
  /// Claims the next compile job, which must be there.
  JobClaim claim(const std::string& owner = "w1") {
    const std::optional<JobRow> job = catalog_->claim_job({"compile"}, owner, 10'000);
    if (!job) throw InternalError("nothing to claim");
    return {job->id, job->attempt, job->owner};
  }
  JobRow job(const std::string& id) { return *catalog_->find_job(id); }
  std::vector<std::string> event_types(const std::string& id) {
    std::vector<std::string> types;
    for (const JobEventRow& event : catalog_->job_events(id, 0, 100)) types.push_back(event.type);
    return types;
  }

  int64_t now_ = 1'700'000'000'000;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Catalog> catalog_;
};

INSTANTIATE_TEST_SUITE_P(Backends, CatalogTest, testing::ValuesIn(kBackends),
                         [](const auto& info) { return info.param.name; });

TEST_P(CatalogTest, ModelsAreKeptAcrossAReopen) {
  EXPECT_TRUE(catalog_->put_model(model("a"), NameChange{"model", "resnet", false}));
  EXPECT_FALSE(catalog_->put_model(model("a"), std::nullopt));
  reopen();
  const std::optional<ModelRow> row = catalog_->find_model(digest("a"));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->facts, R"({"format":"onnx"})");
  EXPECT_THAT(row->blobs, ElementsAre(digest("a.0"), digest("a.1")));
  EXPECT_EQ(row->created_ms, now_);
  EXPECT_EQ(catalog_->find_name("model", "resnet"), digest("a"));
  EXPECT_FALSE(catalog_->find_model(digest("b")));
}

TEST_P(CatalogTest, AListGoesFromNewToOldInPages) {
  for (const char* text : {"a", "b", "c"}) catalog_->put_model(model(text), std::nullopt);
  const Page<ModelRow> first = catalog_->list_models({0, 2});
  ASSERT_THAT(first.items, SizeIs(2));
  EXPECT_EQ(first.items[0].id, digest("c"));
  const Page<ModelRow> second = catalog_->list_models({first.next, 2});
  ASSERT_THAT(second.items, SizeIs(1));
  EXPECT_EQ(second.items[0].id, digest("a"));
  EXPECT_EQ(second.next, 0);
  for (const char* text : {"p", "q"}) catalog_->put_package(package(text));
  const Page<PackageRow> packages = catalog_->list_packages({0, 1});
  EXPECT_EQ(packages.items[0].id, digest("q"));
  EXPECT_EQ(catalog_->list_packages({packages.next, 1}).items[0].id, digest("p"));
  EXPECT_EQ(catalog_->list_packages({0, 2}).next, 0);
}

TEST_P(CatalogTest, ANameIsAMovablePointer) {
  catalog_->put_model(model("a"), NameChange{"model", "m", false});
  EXPECT_ERROR(catalog_->put_model(model("b"), NameChange({"model", "m", false})), ErrorCode::kNameTaken);
  EXPECT_FALSE(catalog_->find_model(digest("b"))) << "the refused name must take the row with it";
  catalog_->put_model(model("b"), NameChange{"model", "m", true});
  EXPECT_EQ(catalog_->find_name("model", "m"), digest("b"));
  EXPECT_FALSE(catalog_->find_name("package", "m"));
  catalog_->set_name({"model", "alias", false}, digest("b"));
  EXPECT_THAT(catalog_->names_of("model", digest("b")), ElementsAre("alias", "m"));
  EXPECT_THAT(catalog_->list_names("model"), SizeIs(2));
  EXPECT_TRUE(catalog_->remove_name("model", "m"));
  EXPECT_FALSE(catalog_->remove_name("model", "m"));
}

TEST_P(CatalogTest, WhatIsInUseIsNotRemoved) {
  catalog_->put_model(model("a"), NameChange{"model", "m", false});
  EXPECT_ERROR(catalog_->remove_model(digest("a")), ErrorCode::kInUse);
  catalog_->remove_name("model", "m");
  JobSubmission user = submission("k");
  user.subject = digest("a").text();
  const std::string id = catalog_->submit_job(user).job.id;
  EXPECT_ERROR(catalog_->remove_model(digest("a")), ErrorCode::kInUse);
  catalog_->cancel_job(id);
  EXPECT_TRUE(catalog_->remove_model(digest("a")));
  EXPECT_FALSE(catalog_->remove_model(digest("a")));

  catalog_->put_package(package("p"));
  catalog_->put_deployment({"d", "{}", "{}", {digest("p")}});
  EXPECT_ERROR(catalog_->remove_package(digest("p")), ErrorCode::kInUse);
  catalog_->put_deployment({"d", "{}", "{}", {}});
  catalog_->pin_package(digest("p"), true);
  EXPECT_ERROR(catalog_->remove_package(digest("p")), ErrorCode::kInUse);
  catalog_->pin_package(digest("p"), false);
  EXPECT_TRUE(catalog_->remove_package(digest("p")));
  EXPECT_THAT(catalog_->referenced_blobs(), IsEmpty());
}

TEST_P(CatalogTest, PackagesKeepMembersAndLastUse) {
  EXPECT_TRUE(catalog_->put_package(package("p")));
  now_ += 5;
  EXPECT_TRUE(catalog_->touch_package(digest("p")));
  EXPECT_FALSE(catalog_->touch_package(digest("q")));
  const PackageRow row = *catalog_->find_package(digest("p"));
  ASSERT_THAT(row.members, SizeIs(2));
  EXPECT_EQ(row.members[1].name, "mod.params");
  EXPECT_EQ(row.members[1].size, 9U);
  EXPECT_EQ(row.archive, digest("p.tar"));
  EXPECT_EQ(row.archive_bytes, 99U);
  EXPECT_EQ(row.last_used_ms, row.created_ms + 5);
  now_ += 5;
  EXPECT_FALSE(catalog_->put_package(package("p")));
  EXPECT_EQ(catalog_->find_package(digest("p"))->last_used_ms, now_);
  EXPECT_THAT(catalog_->referenced_blobs(), SizeIs(3));
}

TEST_P(CatalogTest, DeploymentsAreDesiredState) {
  catalog_->put_deployment({"d", R"({"version":"1"})", R"({"1":"ready"})", {digest("p"), digest("p")}});
  catalog_->put_deployment({"c"});
  reopen();
  const DeploymentRow row = *catalog_->find_deployment("d");
  EXPECT_EQ(row.desired, R"({"version":"1"})");
  EXPECT_EQ(row.versions, R"({"1":"ready"})");
  EXPECT_THAT(row.packages, ElementsAre(digest("p")));
  EXPECT_EQ(catalog_->list_deployments()[0].name, "c");
  EXPECT_TRUE(catalog_->remove_deployment("d"));
  EXPECT_FALSE(catalog_->remove_deployment("d"));
  EXPECT_FALSE(catalog_->find_deployment("d"));
}

TEST_P(CatalogTest, AJobGoesFromQueuedToSucceeded) {
  const std::string id = submit("k");
  EXPECT_TRUE(is_uuid7(id));
  EXPECT_EQ(job(id).state, JobState::kQueued);
  EXPECT_EQ(job(id).attempt, 0);
  now_ += 10;
  const JobClaim held = claim();
  EXPECT_EQ(job(id).state, JobState::kRunning);
  EXPECT_EQ(job(id).attempt, 1);
  EXPECT_EQ(job(id).started_ms, now_);
  EXPECT_EQ(job(id).lease_until_ms, now_ + 10'000);
  EXPECT_FALSE(catalog_->claim_job({"compile"}, "w2", 1));
  now_ += 10;
  JobFinish finish;
  finish.result = R"({"package":"p"})";
  finish.package = package("p");
  finish.log = digest("log");
  EXPECT_TRUE(catalog_->finish_job(held, finish));
  reopen();
  const JobRow row = job(id);
  EXPECT_EQ(row.state, JobState::kSucceeded);
  EXPECT_EQ(row.result, finish.result);
  EXPECT_EQ(row.package, digest("p"));
  EXPECT_EQ(row.log, digest("log"));
  EXPECT_EQ(row.finished_ms, now_);
  EXPECT_EQ(row.request, R"({"model":"m"})");
  EXPECT_TRUE(catalog_->find_package(digest("p")));
  EXPECT_THAT(event_types(id), ElementsAre("state", "state", "state", "end"));
  EXPECT_THAT(catalog_->referenced_blobs(), testing::Contains(digest("log")));
}

TEST_P(CatalogTest, AStaleClaimChangesNothing) {
  const std::string id = submit("k");
  const JobClaim late = claim("w1");
  now_ += 20'000;
  EXPECT_THAT(catalog_->requeue_orphans(Orphans::kExpired, 0), SizeIs(1));
  const JobClaim current = claim("w2");
  EXPECT_EQ(current.attempt, 2);
  JobFinish finish;
  finish.package = package("late");
  for (const JobClaim& stale : {late, JobClaim{id, 2, "w1"}, JobClaim{id, 1, "w2"}}) {
    EXPECT_FALSE(catalog_->heartbeat_job(stale, 10'000, std::nullopt, {{0, "log", "{}"}}).held);
    EXPECT_FALSE(catalog_->finish_job(stale, finish));
    EXPECT_FALSE(catalog_->release_job(stale, {}));
  }
  EXPECT_FALSE(catalog_->find_package(digest("late")));
  EXPECT_EQ(job(id).owner, "w2");
  EXPECT_THAT(event_types(id), ElementsAre("state", "state", "state", "state"));
  EXPECT_TRUE(catalog_->finish_job(current, {}));
  EXPECT_FALSE(catalog_->finish_job(current, finish)) << "an end is an end";
}

TEST_P(CatalogTest, AHeartbeatRenewsTheLeaseAndStoresProgress) {
  const std::string id = submit("k");
  const JobClaim held = claim();
  now_ += 9'000;
  const HeartbeatResult beat =
      catalog_->heartbeat_job(held, 10'000, R"({"stage":"passes"})", {{0, "progress", "1"}, {0, "log", "2"}});
  EXPECT_TRUE(beat.held);
  EXPECT_FALSE(beat.cancel_requested);
  now_ += 9'000;
  EXPECT_THAT(catalog_->requeue_orphans(Orphans::kExpired, 0), IsEmpty());
  EXPECT_EQ(job(id).progress, R"({"stage":"passes"})");
  EXPECT_TRUE(catalog_->heartbeat_job(held, 10'000, std::nullopt, {}).held);
  EXPECT_EQ(job(id).progress, R"({"stage":"passes"})");
  const std::vector<JobEventRow> events = catalog_->job_events(id, 2, 10);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].sequence, 3);
  EXPECT_EQ(events[1].data, "2");
  EXPECT_THAT(catalog_->job_events(id, 0, 1), SizeIs(1));
}

TEST_P(CatalogTest, EqualWorkIsDoneOnce) {
  const std::string id = submit("k");
  const Submitted joined = catalog_->submit_job(submission("k"));
  EXPECT_EQ(joined.outcome, SubmitOutcome::kJoined);
  EXPECT_EQ(joined.job.id, id);
  EXPECT_EQ(joined.job.submitters, 2);
  const JobClaim held = claim();
  EXPECT_EQ(catalog_->submit_job(submission("k")).outcome, SubmitOutcome::kJoined);
  EXPECT_EQ(catalog_->submit_job(submission("other")).outcome, SubmitOutcome::kCreated);
  JobFinish finish;
  finish.package = package("p");
  catalog_->finish_job(held, finish);
  now_ += 100;
  const Submitted cached = catalog_->submit_job(submission("k"));
  EXPECT_EQ(cached.outcome, SubmitOutcome::kCached);
  EXPECT_EQ(cached.job.id, id);
  EXPECT_EQ(catalog_->find_package(digest("p"))->last_used_ms, now_) << "a hit keeps the package alive";
}

TEST_P(CatalogTest, AResultThatIsNotWholeIsAMiss) {
  submit("k");
  JobFinish finish;
  finish.package = package("p");
  catalog_->finish_job(claim(), finish);
  JobSubmission asks = submission("k");
  asks.still_whole = [](const JobRow& job) { return !job.package.has_value(); };
  EXPECT_EQ(catalog_->submit_job(asks).outcome, SubmitOutcome::kCreated);
  catalog_->finish_job(claim(), finish);
  catalog_->remove_package(digest("p"));
  EXPECT_EQ(catalog_->submit_job(submission("k")).outcome, SubmitOutcome::kCreated);
}

TEST_P(CatalogTest, ForceAndFailuresMakeNewJobs) {
  const std::string first = submit("k");
  JobSubmission forced = submission("k");
  forced.force = true;
  EXPECT_EQ(catalog_->submit_job(forced).outcome, SubmitOutcome::kCreated);
  JobFinish finish;
  finish.state = JobState::kFailed;
  finish.error = R"({"code":"invalid_model"})";
  catalog_->finish_job(claim(), finish);
  catalog_->finish_job(claim(), finish);
  EXPECT_EQ(job(first).error, finish.error);
  const Submitted after = catalog_->submit_job(submission("k"));
  EXPECT_EQ(after.outcome, SubmitOutcome::kCreated);
  catalog_->finish_job(claim(), {});
  JobSubmission live_only = submission("k");
  live_only.reuse_result = false;
  EXPECT_EQ(catalog_->submit_job(live_only).outcome, SubmitOutcome::kCreated);
}

TEST_P(CatalogTest, AnIdempotencyKeyNamesOneJobForADay) {
  JobSubmission request = submission("k");
  request.force = true;
  request.idempotency_key = "key";
  request.request_hash = "hash";
  const Submitted first = catalog_->submit_job(request);
  reopen();
  const Submitted second = catalog_->submit_job(request);
  EXPECT_EQ(second.outcome, SubmitOutcome::kRepeated);
  EXPECT_EQ(second.job.id, first.job.id);
  EXPECT_EQ(second.job.submitters, 1);
  request.request_hash = "other";
  EXPECT_ERROR(catalog_->submit_job(request), ErrorCode::kInvalidArgument);
  now_ += 86'400'000;
  EXPECT_EQ(catalog_->submit_job(request).outcome, SubmitOutcome::kCreated);
}

TEST_P(CatalogTest, TheQueueIsBounded) {
  JobSubmission request = submission("a");
  request.max_queued = 1;
  catalog_->submit_job(request);
  request.action_key = "b";
  EXPECT_ERROR(catalog_->submit_job(request), ErrorCode::kUnavailable);
  request.action_key = "a";
  EXPECT_EQ(catalog_->submit_job(request).outcome, SubmitOutcome::kJoined);
  EXPECT_EQ(catalog_->count_jobs(JobState::kQueued), 1);
}

TEST_P(CatalogTest, ClaimsFollowPriorityThenAgeAndKind) {
  submit("old");
  const std::string young = submit("young");
  JobSubmission urgent = submission("urgent");
  urgent.priority = 5;
  const std::string urgent_id = catalog_->submit_job(urgent).job.id;
  JobSubmission tune = submission("tune");
  tune.kind = "tune";
  const std::string tune_id = catalog_->submit_job(tune).job.id;
  EXPECT_EQ(claim().id, urgent_id);
  claim();
  EXPECT_EQ(claim().id, young);
  EXPECT_FALSE(catalog_->claim_job({"compile"}, "w", 1));
  EXPECT_EQ(catalog_->claim_job({"compile", "tune"}, "w", 1)->id, tune_id);
}

TEST_P(CatalogTest, CancelWithdrawsOneSubmitterAndTheLastOneStops) {
  const std::string id = submit("k");
  submit("k");
  EXPECT_TRUE(catalog_->cancel_job(id).withdrawn_only);
  EXPECT_EQ(job(id).state, JobState::kQueued);
  EXPECT_EQ(catalog_->cancel_job(id).job.state, JobState::kCancelled);
  EXPECT_EQ(catalog_->cancel_job(id).job.state, JobState::kCancelled);
  EXPECT_FALSE(catalog_->claim_job({"compile"}, "w", 1));
  EXPECT_THAT(event_types(id), ElementsAre("state", "state", "end"));
  EXPECT_ERROR(catalog_->cancel_job("none"), ErrorCode::kNotFound);
}

TEST_P(CatalogTest, ARunningJobIsAskedToStop) {
  const std::string id = submit("k");
  const JobClaim held = claim();
  EXPECT_EQ(catalog_->cancel_job(id).job.state, JobState::kRunning);
  EXPECT_TRUE(catalog_->heartbeat_job(held, 10'000, std::nullopt, {}).cancel_requested);
  EXPECT_EQ(catalog_->submit_job(submission("k")).outcome, SubmitOutcome::kCreated)
      << "nobody joins work that is being stopped";
  JobFinish finish;
  finish.state = JobState::kCancelled;
  EXPECT_TRUE(catalog_->finish_job(held, finish));
  catalog_->finish_job(claim(), {});
  EXPECT_ERROR(catalog_->cancel_job(catalog_->submit_job(submission("k")).job.id), ErrorCode::kConflict);
}

TEST_P(CatalogTest, RetryIsTheSameJobOnceMore) {
  const std::string id = submit("k");
  EXPECT_ERROR(catalog_->retry_job(id), ErrorCode::kConflict);
  JobFinish failed;
  failed.state = JobState::kFailed;
  failed.error = "{}";
  catalog_->finish_job(claim(), failed);
  const JobRow retried = catalog_->retry_job(id);
  EXPECT_EQ(retried.state, JobState::kQueued);
  EXPECT_EQ(retried.error, "");
  EXPECT_EQ(catalog_->submit_job(submission("k")).job.id, id) << "it can be joined again";
  EXPECT_EQ(claim().attempt, 2);
  EXPECT_ERROR(catalog_->retry_job("none"), ErrorCode::kNotFound);
}

TEST_P(CatalogTest, RetryBesideALiveTwinIsAConflict) {
  const std::string id = submit("k");
  catalog_->cancel_job(id);
  submit("k");
  EXPECT_ERROR(catalog_->retry_job(id), ErrorCode::kConflict);
}

TEST_P(CatalogTest, AReleasedJobComesBackAfterItsBackoffAndFailsAfterTheLastAttempt) {
  JobSubmission request = submission("k");
  request.max_attempts = 2;
  const std::string id = catalog_->submit_job(request).job.id;
  EXPECT_TRUE(catalog_->release_job(claim(), {R"({"message":"1"})", std::nullopt, 500, true}));
  EXPECT_EQ(job(id).state, JobState::kQueued);
  EXPECT_FALSE(catalog_->claim_job({"compile"}, "w", 1));
  EXPECT_EQ(catalog_->next_claim_in({"compile"}), 500);
  EXPECT_FALSE(catalog_->next_claim_in({"tune"}));
  now_ += 600;
  EXPECT_EQ(catalog_->next_claim_in({"compile"}), 0);
  EXPECT_TRUE(catalog_->release_job(claim(), {"", std::nullopt, 0, false})) << "a shutdown does not count";
  EXPECT_EQ(job(id).state, JobState::kQueued);
  EXPECT_TRUE(catalog_->release_job(claim(), {R"({"message":"3"})", digest("log"), 0, true}));
  EXPECT_EQ(job(id).state, JobState::kFailed);
  EXPECT_EQ(job(id).error, R"({"message":"3"})");
  EXPECT_EQ(job(id).log, digest("log"));
  EXPECT_EQ(catalog_->submit_job(request).outcome, SubmitOutcome::kCreated);
}

TEST_P(CatalogTest, OrphansAreTakenUpAgainAndAPoisonousJobFails) {
  const std::string id = submit("k");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(claim().attempt, attempt);
    reopen();
    const std::vector<JobRow> orphans = catalog_->requeue_orphans(Orphans::kAllRunning, 100);
    ASSERT_THAT(orphans, SizeIs(1));
    EXPECT_EQ(orphans[0].state, attempt < 3 ? JobState::kQueued : JobState::kFailed);
    EXPECT_EQ(catalog_->next_claim_in({"compile"}).value_or(-1), attempt < 3 ? 100 << (attempt - 1) : -1);
    now_ += 1'000;
  }
  EXPECT_THAT(job(id).error, testing::HasSubstr("attempt 3"));
  EXPECT_EQ(event_types(id).back(), "end");
}

TEST_P(CatalogTest, AnOrphanWhoseCancelWasAskedForIsCancelled) {
  const std::string id = submit("k");
  claim();
  catalog_->cancel_job(id);
  EXPECT_EQ(catalog_->requeue_orphans(Orphans::kAllRunning, 0)[0].state, JobState::kCancelled);
  EXPECT_EQ(job(id).state, JobState::kCancelled);
}

TEST_P(CatalogTest, ListsFilterAndPage) {
  const std::string a = submit("a");
  const std::string b = submit("b");
  claim();
  JobFilter running;
  running.state = JobState::kRunning;
  EXPECT_EQ(catalog_->list_jobs(running, {}).items[0].id, a);
  JobFilter subject;
  subject.subject = "subject of b";
  EXPECT_EQ(catalog_->list_jobs(subject, {}).items[0].id, b);
  JobFilter kind;
  kind.kind = "tune";
  EXPECT_THAT(catalog_->list_jobs(kind, {}).items, IsEmpty());
  const Page<JobRow> first = catalog_->list_jobs({}, {0, 1});
  EXPECT_EQ(first.items[0].id, b);
  EXPECT_EQ(catalog_->list_jobs({}, {first.next, 1}).items[0].id, a);
}

TEST_P(CatalogTest, ImportJobsPublishAModelWithItsName) {
  submit("k");
  JobFinish finish;
  finish.model = model("m");
  finish.model_name = NameChange{"model", "n", false};
  EXPECT_TRUE(catalog_->finish_job(claim(), finish));
  EXPECT_EQ(catalog_->find_name("model", "n"), digest("m"));
  const std::string id = submit("k2");
  finish.model = model("m2");
  const JobClaim held = claim();
  EXPECT_ERROR(catalog_->finish_job(held, finish), ErrorCode::kNameTaken);
  EXPECT_EQ(job(id).state, JobState::kRunning) << "all or nothing";
}

TEST_P(CatalogTest, TextsOfAnyBytesComeBack) {
  JobSubmission request = submission("k");
  request.request = std::string("a\0b", 3) + "\xc3\xa9 ' \" ; --";
  const std::string id = catalog_->submit_job(request).job.id;
  EXPECT_EQ(job(id).request, request.request);
}

TEST_P(CatalogTest, ManyThreadsNeverClaimOneJobTwice) {
  constexpr int kJobs = 40;
  for (int i = 0; i < kJobs; ++i) submit("k" + std::to_string(i));
  std::mutex mutex;
  std::multiset<std::string> claimed;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (const auto job = catalog_->claim_job({"compile"}, "w" + std::to_string(t), 10'000)) {
        const std::lock_guard lock(mutex);
        claimed.insert(job->id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claimed.size(), static_cast<size_t>(kJobs));
  EXPECT_EQ(std::set(claimed.begin(), claimed.end()).size(), static_cast<size_t>(kJobs));
}

TEST(Uuid7Test, SortsByTimeAndNeverRepeats) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(make_uuid7(1'700'000'000'000 + i));
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_LT(make_uuid7(1'700'000'000'000), make_uuid7(1'700'000'000'001));
  EXPECT_TRUE(is_uuid7(*ids.begin()));
  EXPECT_FALSE(is_uuid7("018bcfe5-6800-4000-8000-000000000000"));
  EXPECT_FALSE(is_uuid7("../../etc/passwd"));
}

}  // namespace
}  // namespace tensormill::storage
