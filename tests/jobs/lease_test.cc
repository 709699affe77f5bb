// Leases of running jobs, by a clock that the test moves.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "server/jobs/job_queue.h"
#include "server/jobs/worker_pool.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "tests/jobs/runners.h"
#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

using storage::JobFinish;
using storage::JobRow;
using storage::JobState;

/// Stands still until it is moved.
class FakeClock final : public Clock {
public:
  time_point now() override { return time_point(std::chrono::milliseconds(now_ms_.load())); }
  int64_t unix_ms() const { return now_ms_; }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
            const std::stop_token& stop, time_point until, const std::function<bool()>& woken) override {
    {
      const std::lock_guard known(mutex_);
      waiting_[&changed] = lock.mutex();
    }
    changed.wait(lock, stop, [&] { return now() >= until || woken(); });
  }
  void advance(std::chrono::milliseconds by) {
    now_ms_ += by.count();
    std::map<std::condition_variable_any*, std::mutex*> waiting;
    {
      const std::lock_guard known(mutex_);
      waiting = waiting_;
    }
    for (const auto& [changed, mutex] : waiting) {
      // Who has looked at the clock and not yet gone to sleep holds it.
      { const std::lock_guard asleep(*mutex); }
      changed->notify_all();
    }
  }

private:
  std::atomic<int64_t> now_ms_{1'700'000'000'000};
  std::mutex mutex_;
  std::map<std::condition_variable_any*, std::mutex*> waiting_;
};

class LeaseTest : public testing::Test {
protected:
  LeaseTest()
      : blobs_(env_, "/store"),
        catalog_(env_, "/store/catalog.db", {.now_ms = [this] { return clock_.unix_ms(); }}),
        queue_(catalog_) {
    options_.folder = folder_.path() + "/jobs";
    options_.clock = &clock_;
    options_.backoff = std::chrono::milliseconds(0);
    options_.commit_every = std::chrono::milliseconds(1);
  }
  std::string start(std::function<JobFinish(JobContext&)> body) {
    runner_.emplace(std::move(body));
    pool_.emplace(queue_, blobs_, std::vector<JobRunner*>{&*runner_}, options_);
    storage::JobSubmission submission;
    submission.kind = "work";
    submission.action_key = "k";
    submission.max_attempts = 3;
    return queue_.submit(submission).job.id;
  }
  /// Moves the clock to where leases are renewed, and waits for `reached`.
  void pass_third_of_lease(const std::function<bool()>& reached) {
    clock_.advance(options_.lease / 3);
    while (true) {
      const uint64_t seen = queue_.version();
      if (reached()) return;
      queue_.wait_for_change(seen, kPatience, {});
    }
  }

  storage::TemporaryFolder folder_;
  FakeClock clock_;
  storage::MemoryEnv env_;
  storage::FolderBlobStore blobs_;
  storage::SqliteCatalog catalog_;
  JobQueue queue_;
  WorkerPoolOptions options_;
  std::optional<FunctionRunner> runner_;
  std::optional<WorkerPool> pool_;
};

TEST_F(LeaseTest, AStretchWithoutAWordKeepsItsJob) {
  std::promise<void> started, go;
  const std::string id = start([&](JobContext&) {
    // As long as unpacking and hashing a large model: no child, and nothing is asked of the context.
    started.set_value();
    go.get_future().wait();
    return JobFinish{};
  });
  started.get_future().wait();
  for (int i = 0; i < 12; ++i) {
    pass_third_of_lease(
        [&] { return catalog_.find_job(id)->lease_until_ms == clock_.unix_ms() + options_.lease.count(); });
    EXPECT_TRUE(catalog_.requeue_orphans(storage::Orphans::kExpired, 0).empty());
  }
  go.set_value();
  const JobRow job = queue_.wait(id, kPatience, {});
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.attempt, 1);
}

TEST_F(LeaseTest, ALostLeaseEndsTheAttemptAndItsChild) {
  std::promise<void> running;
  const std::string id = start([&](JobContext& context) {
    if (context.job().attempt == 1) {
      context.run_child(child("child-hang"), [&](const std::string& type, const std::string&) {
        if (type == "log") running.set_value();
        return true;
      });
      ADD_FAILURE() << "the child came to an end of its own";
    }
    return JobFinish{};
  });
  running.get_future().wait();
  ASSERT_EQ(catalog_.requeue_orphans(storage::Orphans::kAtStart, 0).size(), 1U);
  pass_third_of_lease([&] { return catalog_.find_job(id)->state == JobState::kSucceeded; });
  EXPECT_EQ(catalog_.find_job(id)->attempt, 2);
}

TEST_F(LeaseTest, ALostLeaseEndsAStretchWithoutAChild) {
  std::promise<void> running;
  std::atomic<bool> interrupted{false};
  const std::string id = start([&](JobContext& context) {
    if (context.job().attempt != 1) return JobFinish{};
    running.set_value();
    interrupted = true;
    while (true) {
      context.keep_alive();
      std::this_thread::yield();
    }
  });
  running.get_future().wait();
  ASSERT_EQ(catalog_.requeue_orphans(storage::Orphans::kAtStart, 0).size(), 1U);
  pass_third_of_lease([&] { return catalog_.find_job(id)->state == JobState::kSucceeded; });
  EXPECT_TRUE(interrupted);
  EXPECT_EQ(catalog_.find_job(id)->attempt, 2);
}

TEST_F(LeaseTest, ACancelThatStandsInTheRowAloneIsFoundWithTheRenewal) {
  std::promise<void> running;
  const std::string id = start([&](JobContext& context) {
    context.run_child(child("child-hang"), [&](const std::string& type, const std::string&) {
      if (type == "log") running.set_value();
      return true;
    });
    return JobFinish{};
  });
  running.get_future().wait();
  catalog_.cancel_job(id);
  pass_third_of_lease([&] { return catalog_.find_job(id)->state == JobState::kCancelled; });
}

}  // namespace
}  // namespace tensormill::jobs
