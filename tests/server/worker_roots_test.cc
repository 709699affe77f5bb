// Every way in which a worker elsewhere ends a lease, beside everything that a store must keep: as
// tests/jobs/roots_test.cc for the workers of the server's own process.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error_json.h"
#include "runtime/base/file.h"
#include "server/services/jobs/carried_work.h"
#include "server/services/workers/worker_finish.h"
#include "server/services/workers/worker_service.h"
#include "tests/jobs/roots.h"
#include "tests/jobs/runners.h"
#include "tests/storage/support.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::worker_roots_test {
namespace {

using jobs::roots_of_jobs::Root;
using jobs::roots_of_jobs::Store;
using storage::JobState;

constexpr std::chrono::hours kLease{24};

/// The PEM file of a key that is no secret: all of its bits are zero.
std::string write_key(const std::string& path) {
  const std::string key = "MC4CAQAwBQYDK2VwBCIEIAAA" + std::string(40, 'A');
  write_file(path, "-----BEGIN PRIVATE KEY-----\n" + key + "\n-----END PRIVATE KEY-----\n");
  return path;
}

std::string log_of(const std::string& end) { return "log of an attempt that " + end; }

/// What of a server workers elsewhere meet, over a store that has something in it.
struct Elsewhere {
  explicit Elsewhere(Store& of) : store(of) {
    store.env.make_folder("/store/tmp");
    trusted.trust(signer);
    context.submitter = "alice";
  }
  storage::JobRow job(const std::string& id) { return store.catalog.find_job(id).value(); }
  /// A job that a worker of alice's has.
  storage::JobRow leased(const std::string& name) {
    storage::JobSubmission submission;
    submission.kind = "benchmark";
    submission.action_key = name;
    submission.resolved = R"({"package":"p"})";
    submission.max_attempts = 3;
    const std::string id = store.queue.submit(submission).job.id;
    const std::string owner = std::string(storage::kRemoteOwner) + "alice/" + name;
    const auto claimed =
        store.catalog.claim_job({"benchmark"}, owner, std::chrono::milliseconds(kLease).count());
    EXPECT_TRUE(claimed && claimed->id == id) << name;
    return job(id);
  }
  static std::string lease(const storage::JobRow& job) { return job.id + "." + std::to_string(job.attempt); }
  static std::string message(WorkerEnd end, const std::string& log) {
    end.log_bytes = log.size();
    return end_line(end) + log;
  }
  void finish(const storage::JobRow& job, const WorkerEnd& end) {
    http::BytesBody body(message(end, log_of(job.action_key)));
    workers.finish(lease(job), body, context);
  }
  void carry_back(const storage::JobRow& job, const WorkerEnd& end) {
    const std::string result = result_line(lease(job)) + message(end, log_of(job.action_key));
    http::BytesBody body(result + signer.sign(Digest::of(result)));
    services::CallContext with = context;
    with.idempotency_key = job.id;
    workers.import_results(body, with);
  }
  void wait_while_running(const std::string& id) {
    for (uint64_t seen = store.queue.version(); job(id).state == JobState::kRunning;
         seen = store.queue.version())
      store.queue.wait_for_change(seen, jobs::kPatience, {});
  }

  Store& store;
  const storage::TemporaryFolder folder;
  BlobCollector collector{store.blobs, store.catalog, store.uploads};
  StoreQuota unbounded{store.blobs, store.uploads, 0};
  TuningRecords records{store.catalog, target::host_target()};
  StoreDesk desk{store.blobs, store.catalog, records};
  const PackageSigner signer{write_key(folder.path() + "/key.pem")};
  TrustedKeys trusted{{}};
  metrics::Registry registry;
  services::CallContext context;
  WorkerServiceImpl workers{
      store.queue, store.blobs, collector, unbounded,
      desk,        trusted,     registry,  {kLease, folder.path(), "/store/tmp", "build"}};
};

/// How a lease ends.
struct End {
  std::string name;
  std::function<void(Elsewhere&, const storage::JobRow&)> tell;
  JobState state;
  bool keeps_log = true;  ///< what the worker told of it is the job's
};

WorkerEnd end_of(const std::string& state) {
  WorkerEnd end;
  end.state = state;
  if (state == "succeeded") end.result = {{"runs_ms", {1.0}}};
  if (state == "failed" || state == "crashed")
    end.error = error_to_json(Error(ErrorCode::kInvalidModel, "broken"));
  return end;
}

/// A success without what was measured.
WorkerEnd wrong_end() {
  WorkerEnd end = end_of("succeeded");
  end.result = Json::object();
  return end;
}

std::vector<End> ends() {
  const auto finishes = [](const std::string& state) {
    return [state](Elsewhere& at, const storage::JobRow& job) { at.finish(job, end_of(state)); };
  };
  return {
      {"succeeded", finishes("succeeded"), JobState::kSucceeded},
      {"failed", finishes("failed"), JobState::kFailed},
      {"crashed", finishes("crashed"), JobState::kQueued},
      {"gave back", finishes("gave_back"), JobState::kQueued},
      {"was cancelled",
       [](Elsewhere& at, const storage::JobRow& job) {
         at.store.queue.cancel(job.id);
         at.finish(job, end_of("cancelled"));
       },
       JobState::kCancelled},
      {"told a wrong end",
       [](Elsewhere& at, const storage::JobRow& job) {
         EXPECT_ERROR(at.finish(job, wrong_end()), ErrorCode::kInvalidRequest);
       },
       JobState::kRunning, false},
      {"was carried back",
       [](Elsewhere& at, const storage::JobRow& job) { at.carry_back(job, end_of("succeeded")); },
       JobState::kSucceeded},
      {"carried a wrong end back",
       [](Elsewhere& at, const storage::JobRow& job) {
         EXPECT_ERROR(at.carry_back(job, wrong_end()), ErrorCode::kInvalidRequest);
       },
       JobState::kRunning, false},
      {"was taken back",
       [](Elsewhere& at, const storage::JobRow& job) {
         at.workers.take_back(Elsewhere::lease(job));
         at.wait_while_running(job.id);
         EXPECT_ERROR(at.finish(job, end_of("succeeded")), ErrorCode::kConflict);
       },
       JobState::kQueued, false},
      {"lost its worker",
       [](Elsewhere& at, const storage::JobRow& job) {
         at.workers.leave({job.action_key, true}, at.context);
       },
       JobState::kQueued, false},
  };
}

/// Plays one lease to this end and collects what it let go of; the job is left as it is.
std::string play(Elsewhere& at, const End& end) {
  SCOPED_TRACE(end.name);
  const storage::JobRow job = at.leased(end.name);
  at.store.put("stray of " + end.name);
  end.tell(at, job);
  EXPECT_EQ(at.job(job.id).state, end.state);
  at.collector.collect_released();
  return job.id;
}

TEST(WorkerRootsTest, EveryEndOfALeaseLeavesWhatIsInUse) {
  for (const Root& root : jobs::roots_of_jobs::roots()) {
    SCOPED_TRACE(root.name);
    Store store;
    const std::function<bool()> is_whole = root.make(store);
    Elsewhere at(store);
    for (const End& end : ends()) {
      const std::string id = play(at, end);
      EXPECT_TRUE(is_whole()) << "after a job that " << end.name;
      // So that the next end has a job of its own.
      if (end.state == JobState::kQueued) store.queue.cancel(id);
    }
    at.collector.collect();
    EXPECT_TRUE(is_whole());
  }
}

TEST(WorkerRootsTest, WhatALeaseStoredStaysWhereItsEndWasTakenAlone) {
  Store store;
  Elsewhere at(store);
  for (const End& end : ends()) {
    const std::string id = play(at, end);
    EXPECT_FALSE(store.blobs.exists(Digest::of("stray of " + end.name))) << end.name;
    const Digest log = Digest::of(log_of(end.name));
    EXPECT_EQ(at.job(id).log, end.keeps_log ? std::optional(log) : std::nullopt) << end.name;
    EXPECT_EQ(store.blobs.exists(log), end.keeps_log) << end.name;
    if (end.state == JobState::kQueued) store.queue.cancel(id);
  }
}

}  // namespace
}  // namespace tensormill::server::worker_roots_test
