// Jobs, as every back end keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "storage/catalog/uuid7.h"
#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using CatalogJobsTest = CatalogTest;

INSTANTIATE_TEST_SUITE_P(Backends, CatalogJobsTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CatalogJobsTest, AJobGoesFromQueuedToSucceeded) {
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

TEST_P(CatalogJobsTest, AStaleClaimChangesNothing) {
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

TEST_P(CatalogJobsTest, AHeartbeatRenewsTheLeaseAndStoresProgress) {
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

TEST_P(CatalogJobsTest, EqualWorkIsDoneOnce) {
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

TEST_P(CatalogJobsTest, AResultThatIsNotWholeIsAMiss) {
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

TEST_P(CatalogJobsTest, ForceAndFailuresMakeNewJobs) {
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

TEST_P(CatalogJobsTest, AnIdempotencyKeyNamesOneJobForADay) {
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

TEST_P(CatalogJobsTest, TheQueueIsBounded) {
  JobSubmission request = submission("a");
  request.max_queued = 1;
  catalog_->submit_job(request);
  request.action_key = "b";
  EXPECT_ERROR(catalog_->submit_job(request), ErrorCode::kUnavailable);
  request.action_key = "a";
  EXPECT_EQ(catalog_->submit_job(request).outcome, SubmitOutcome::kJoined);
  EXPECT_EQ(catalog_->count_jobs(JobState::kQueued), 1);
}

TEST_P(CatalogJobsTest, LiveJobsAreCountedByKindAndPlace) {
  const auto counted = [&] {
    std::vector<std::string> texts;
    for (const JobCount& one : catalog_->count_live_jobs())
      texts.push_back(std::string(job_state_name(one.state)) + " " + one.kind +
                      (one.is_elsewhere ? " elsewhere " : " ") + std::to_string(one.count));
    return texts;
  };
  EXPECT_TRUE(counted().empty());
  submit("a");
  submit("b");
  JobSubmission board = submission("c");
  board.kind = "measure";
  board.demand = "board=a";
  catalog_->submit_job(board);
  board.action_key = "d";
  catalog_->submit_job(board);
  const std::string compile = submission("a").kind;
  EXPECT_EQ(counted(), (std::vector<std::string>{"queued " + compile + " 2", "queued measure elsewhere 2"}));
  ASSERT_TRUE(catalog_->claim_job({compile}, "here", 60'000));
  ASSERT_TRUE(catalog_->claim_job({compile}, std::string(kRemoteOwner) + "key/w", 60'000));
  ASSERT_TRUE(catalog_->claim_job({"measure"}, std::string(kRemoteOwner) + "key/w", 60'000, {"board=a"}));
  EXPECT_EQ(counted(),
            (std::vector<std::string>{"queued measure elsewhere 1", "running " + compile + " 1",
                                      "running " + compile + " elsewhere 1", "running measure elsewhere 1"}));
}

TEST_P(CatalogJobsTest, ClaimsFollowPriorityThenAgeAndKind) {
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

TEST_P(CatalogJobsTest, CancelWithdrawsOneSubmitterAndTheLastOneStops) {
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

TEST_P(CatalogJobsTest, ARunningJobIsAskedToStop) {
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

TEST_P(CatalogJobsTest, RetryIsTheSameJobOnceMore) {
  const std::string id = submit("k");
  EXPECT_ERROR(catalog_->retry_job(id, {}), ErrorCode::kConflict);
  JobFinish failed;
  failed.state = JobState::kFailed;
  failed.error = "{}";
  catalog_->finish_job(claim(), failed);
  const JobRow retried = catalog_->retry_job(id, {});
  EXPECT_EQ(retried.state, JobState::kQueued);
  EXPECT_EQ(retried.error, "");
  EXPECT_EQ(catalog_->submit_job(submission("k")).job.id, id) << "it can be joined again";
  EXPECT_EQ(claim().attempt, 2);
  EXPECT_ERROR(catalog_->retry_job("none", {}), ErrorCode::kNotFound);
}

TEST_P(CatalogJobsTest, RetryBesideALiveTwinIsAConflict) {
  const std::string id = submit("k");
  catalog_->cancel_job(id);
  submit("k");
  EXPECT_ERROR(catalog_->retry_job(id, {}), ErrorCode::kConflict);
}

TEST_P(CatalogJobsTest, AReleasedJobComesBackAfterItsBackoffAndFailsAfterTheLastAttempt) {
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

TEST_P(CatalogJobsTest, OrphansAreTakenUpAgainWithoutCountingAndAPoisonousJobFails) {
  JobSubmission request = submission("k");
  request.max_attempts = 1;
  const std::string id = catalog_->submit_job(request).job.id;
  for (int attempt = 1; attempt <= kMostLosses; ++attempt) {
    EXPECT_EQ(claim().attempt, attempt);
    if (attempt < 3) reopen();
    now_ += 10'001;  // the lease is over
    const std::vector<JobRow> orphans = catalog_->requeue_orphans(Orphans::kExpired, 100);
    ASSERT_THAT(orphans, SizeIs(1));
    const bool last = attempt == kMostLosses;
    EXPECT_EQ(orphans[0].state, last ? JobState::kFailed : JobState::kQueued);
    EXPECT_EQ(catalog_->next_claim_in({"compile"}).value_or(-1), last ? -1 : 100 << std::min(attempt - 1, 3));
    now_ += 1'000;
  }
  EXPECT_THAT(job(id).error, testing::HasSubstr("\"unavailable\""));
  EXPECT_THAT(job(id).error, testing::HasSubstr("attempt " + std::to_string(kMostLosses)));
  // Two events an attempt were before the last one's.
  EXPECT_EQ(catalog_->job_events(id, 2 * (kMostLosses - 1), 100).back().type, "end");
}

TEST_P(CatalogJobsTest, ALostWorkerTakesNoneOfTheAttemptsThatCrashesHave) {
  JobSubmission request = submission("k");
  request.max_attempts = 2;
  const std::string id = catalog_->submit_job(request).job.id;
  const auto lose = [&] {
    claim();
    now_ += 10'001;
    EXPECT_THAT(catalog_->requeue_orphans(Orphans::kExpired, 0), SizeIs(1));
  };
  lose();
  EXPECT_TRUE(catalog_->release_job(claim(), {R"({"message":"crash 1"})", std::nullopt, 0, true}));
  lose();
  EXPECT_EQ(job(id).state, JobState::kQueued);
  EXPECT_TRUE(catalog_->release_job(claim(), {R"({"message":"crash 2"})", std::nullopt, 0, true}));
  EXPECT_EQ(job(id).state, JobState::kFailed) << "the second crash marks it";
}

TEST_P(CatalogJobsTest, AJobIsClaimedByWhoNamesItsDemand) {
  JobSubmission request = submission("k");
  request.demand = "board=a";
  const std::string id = catalog_->submit_job(request).job.id;
  EXPECT_EQ(job(id).demand, "board=a");
  EXPECT_FALSE(catalog_->claim_job({"compile"}, "w", 1)) << "the server's own threads name nothing";
  EXPECT_FALSE(catalog_->next_claim_in({"compile"}));
  EXPECT_FALSE(catalog_->claim_job({"compile"}, "w", 1, {"", "board=b"}));
  EXPECT_EQ(catalog_->next_claim_in({"compile"}, {"", "board=a"}), 0);
  EXPECT_EQ(catalog_->claim_job({"compile"}, "w", 1, {"", "board=a"}).value().id, id);
}

TEST_P(CatalogJobsTest, WhatAWorkerElsewhereHoldsOutlivesTheProcessThatGaveIt) {
  const std::string id = submit("k");
  const JobRow held = catalog_->claim_job({"compile"}, std::string(kRemoteOwner) + "w", 10'000).value();
  reopen();
  EXPECT_THAT(catalog_->requeue_orphans(Orphans::kAtStart, 0), IsEmpty());
  EXPECT_THAT(catalog_->requeue_jobs_of("worker:another"), IsEmpty());
  EXPECT_TRUE(catalog_->heartbeat_job({id, held.attempt, held.owner}, 10'000, std::nullopt, {}).held);
  EXPECT_THAT(catalog_->requeue_jobs_of("worker:w"), SizeIs(1));
  EXPECT_FALSE(catalog_->heartbeat_job({id, held.attempt, held.owner}, 10'000, std::nullopt, {}).held);
  EXPECT_EQ(catalog_->next_claim_in({"compile"}), 0) << "at once";
}

TEST_P(CatalogJobsTest, WorkersAreKeptByNameAndTheirKeys) {
  constexpr int64_t kKeep = 60'000;
  EXPECT_EQ(catalog_->put_worker({"a", "key", R"({"cores":2})", "{}"}, kKeep).state, "active");
  EXPECT_TRUE(catalog_->set_worker_state("a", "drained"));
  EXPECT_FALSE(catalog_->set_worker_state("b", "drained"));
  const WorkerRow kept = catalog_->put_worker({"a", "key", R"({"cores":4})", R"({"load":1})"}, kKeep);
  EXPECT_EQ(kept.state, "drained") << "asking for work does not end it";
  EXPECT_EQ(kept.facts, R"({"cores":4})");
  EXPECT_ERROR(catalog_->put_worker({"a", "another key", "{}", "{}"}, kKeep), ErrorCode::kNameTaken);
  catalog_->set_worker_state("a", "revoked");
  catalog_->put_worker({"b", "key", "{}", "{}"}, kKeep);
  now_ += kKeep + 1;
  catalog_->put_worker({"c", "key", "{}", "{}"}, kKeep);
  reopen();
  std::vector<std::string> names;
  for (const WorkerRow& worker : catalog_->list_workers()) names.push_back(worker.name);
  EXPECT_THAT(names, testing::ElementsAre("a", "c")) << "revoked ones stay revoked";
  EXPECT_EQ(catalog_->find_worker("a").value().state, "revoked");
}

TEST_P(CatalogJobsTest, AnOrphanWhoseCancelWasAskedForIsCancelled) {
  const std::string id = submit("k");
  claim();
  catalog_->cancel_job(id);
  now_ += 10'001;
  const std::vector<JobRow> orphans = catalog_->requeue_orphans(Orphans::kAtStart, 0);
  ASSERT_THAT(orphans, SizeIs(1));
  EXPECT_EQ(orphans[0].state, JobState::kCancelled);
  EXPECT_EQ(job(id).state, JobState::kCancelled);
}

TEST_P(CatalogJobsTest, AProcessThatStartsTakesUpWhatNobodyElseCanBeRunning) {
  const std::string id = submit("k");
  const JobClaim held = claim();
  reopen();
  EXPECT_THAT(catalog_->requeue_orphans(Orphans::kExpired, 0), IsEmpty());
  const bool was_held = catalog_->requeue_orphans(Orphans::kAtStart, 0).empty();
  EXPECT_EQ(was_held, GetParam().is_shared) << "another process may run it";
  EXPECT_EQ(catalog_->heartbeat_job(held, 10'000, std::nullopt, {}).held, GetParam().is_shared);
  now_ += 20'000;
  EXPECT_EQ(catalog_->requeue_orphans(Orphans::kAtStart, 0).empty(), !GetParam().is_shared);
  EXPECT_EQ(job(id).state, JobState::kQueued);
}

TEST_P(CatalogJobsTest, ListsFilterAndPage) {
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

TEST_P(CatalogJobsTest, ImportJobsPublishAModelWithItsName) {
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

TEST_P(CatalogJobsTest, TextsOfAnyBytesComeBack) {
  JobSubmission request = submission("k");
  request.request = std::string("a\0b", 3) + "\xc3\xa9 ' \" ; --";
  const std::string id = catalog_->submit_job(request).job.id;
  EXPECT_EQ(job(id).request, request.request);
}

TEST_P(CatalogJobsTest, ManyThreadsNeverClaimOneJobTwice) {
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
