// Every way in which a job ends, beside everything that a store must keep: collections take what the attempt
// left and nothing else.
#include "tests/jobs/roots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "server/jobs/worker_pool.h"
#include "tests/jobs/runners.h"
#include "tests/storage/support.h"

namespace tensormill::jobs::roots_of_jobs {
namespace {

using storage::JobFinish;
using storage::JobState;

/// How a job ends.
struct End {
  std::string name;
  std::function<JobFinish(JobContext&)> body;
  JobState state;
  std::function<void(Store&, const std::string&)> running = nullptr;  ///< once its child runs
  bool shuts_down = false;
};

JobFinish lose_lease(Store& store, JobContext& context) {
  if (context.job().attempt == 1) {
    store.catalog.requeue_orphans(storage::Orphans::kAtStart, 0);
    context.event("log", "{}");
  }
  return {};
}

std::vector<End> ends(Store& store) {
  const auto run = [](const std::string& command) {
    return [command](JobContext& context) {
      context.run_child(child(command));
      return JobFinish{};
    };
  };
  return {
      {"succeeded", [](JobContext&) { return JobFinish{}; }, JobState::kSucceeded},
      {"failed", [](JobContext&) -> JobFinish { throw Error(ErrorCode::kInvalidModel, "broken"); },
       JobState::kFailed},
      {"failed in its child", run("child-user-error"), JobState::kFailed},
      {"a bug", [](JobContext&) -> JobFinish { throw std::out_of_range("7 of 3"); }, JobState::kFailed},
      {"crashed", run("child-crash"), JobState::kFailed},
      {"timed out",
       [](JobContext& context) {
         ChildSpec spec = child("child-hang");
         spec.time_limit = std::chrono::milliseconds(1);
         context.run_child(spec);
         return JobFinish{};
       },
       JobState::kFailed},
      {"cancelled while it ran", run("child-hang"), JobState::kCancelled,
       [](Store& one, const std::string& id) { one.queue.cancel(id); }},
      {"lost its lease", [&store](JobContext& context) { return lose_lease(store, context); },
       JobState::kSucceeded},
      {"a shutdown", run("child-hang"), JobState::kQueued, [](Store&, const std::string&) {}, true},
  };
}

/// Plays one job to this end and waits for the collection after it.
void play(Store& store, const std::string& folder, const End& end) {
  SCOPED_TRACE(end.name);
  FunctionRunner runner([&](JobContext& context) {
    if (context.job().attempt == 1) store.put("stray of " + end.name);
    return end.body(context);
  });
  WorkerPoolOptions options;
  options.folder = folder;
  options.backoff = std::chrono::milliseconds(0);
  options.commit_every = std::chrono::milliseconds(0);
  std::atomic<int> collections{0};
  options.collect = [&] {
    store.blobs.collect_released();
    ++collections;
    store.queue.changed();
  };
  WorkerPool pool(store.queue, store.blobs, {&runner}, options);
  storage::JobSubmission submission;
  submission.kind = "work";
  submission.action_key = end.name;
  submission.max_attempts = end.name == "crashed" ? 1 : 3;
  const std::string id = store.queue.submit(submission).job.id;
  if (end.running) {
    int64_t after = 0;
    for (bool runs = false; !runs;) {
      for (const auto& event : store.queue.events(id, after, kPatience, {}).events) {
        runs = runs || event.type == "log";
        after = event.sequence;
      }
    }
    end.running(store, id);
  }
  if (end.shuts_down) pool.stop();
  if (!end.shuts_down) {
    EXPECT_EQ(store.queue.wait(id, kPatience, {}).state, end.state);
  }
  const bool collects = end.name != "succeeded";
  while (collects && collections == 0) {
    const uint64_t seen = store.queue.version();
    if (collections == 0) store.queue.wait_for_change(seen, kPatience, {});
  }
  EXPECT_EQ(store.catalog.find_job(id)->state, end.state);
  if (end.shuts_down) store.queue.cancel(id);
}

TEST(RootsTest, EveryEndOfAJobLeavesWhatIsInUse) {
  for (const Root& root : roots()) {
    SCOPED_TRACE(root.name);
    const storage::TemporaryFolder folder;
    Store store;
    store.keep_roots();
    const std::function<bool()> is_whole = root.make(store);
    for (const End& end : ends(store)) {
      play(store, folder.path() + "/jobs", end);
      EXPECT_TRUE(is_whole()) << "after a job that " << end.name;
    }
    // A cancel before any attempt, and what operators ask for.
    storage::JobSubmission queued;
    queued.kind = "never claimed";
    queued.action_key = "queued";
    EXPECT_EQ(store.queue.cancel(store.queue.submit(queued).job.id).job.state, JobState::kCancelled);
    std::vector<Digest> all;
    for (const storage::BlobInfo& blob : store.blobs.list()) all.push_back(blob.digest);
    store.blobs.release(all);
    store.blobs.collect_released();
    EXPECT_TRUE(is_whole()) << "after a look at all that is released";
    store.blobs.collect();
    EXPECT_TRUE(is_whole());
  }
}

TEST(RootsTest, WhatAnAttemptStoredAndDidNotPublishGoes) {
  const storage::TemporaryFolder folder;
  Store store;
  store.keep_roots();
  for (const End& end : ends(store)) {
    play(store, folder.path() + "/jobs", end);
    const bool stays = end.name == "succeeded";  // nothing asks for a collection then; the next end has one
    EXPECT_EQ(store.blobs.exists(Digest::of("stray of " + end.name)), stays) << end.name;
  }
  EXPECT_FALSE(store.blobs.exists(Digest::of("stray of succeeded")));
}

}  // namespace
}  // namespace tensormill::jobs::roots_of_jobs
