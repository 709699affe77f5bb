#include "server/jobs/worker_pool.h"
#include "server/jobs/job_queue.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <future>

#include "runtime/base/json.h"
#include "server/jobs/job_attempt.h"
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
using testing::ElementsAre;
using testing::HasSubstr;

class WorkerPoolTest : public testing::Test {
protected:
  WorkerPoolTest() : blobs_(env_, "/store"), catalog_(env_, "/store/catalog.db"), queue_(catalog_) {
    options_.folder = folder_.path() + "/jobs";
    options_.backoff = std::chrono::milliseconds(1);
    options_.commit_every = std::chrono::milliseconds(1);
  }
  void start(std::function<JobFinish(JobContext&)> body) {
    pool_.reset();
    runner_ = std::make_unique<FunctionRunner>(std::move(body));
    pool_ = std::make_unique<WorkerPool>(queue_, blobs_, std::vector<JobRunner*>{runner_.get()}, options_);
  }
  std::string submit(const std::string& key = "k", int max_attempts = 3) {
    storage::JobSubmission submission;
    submission.kind = "work";
    submission.action_key = key;
    submission.max_attempts = max_attempts;
    return queue_.submit(submission).job.id;
  }
  JobRow wait(const std::string& id) { return queue_.wait(id, kPatience, {}); }
  /// Waits for an event of this type.
  void wait_for(const std::string& id, const std::string& type) {
    int64_t after = 0;
    while (true) {
      const JobEvents more = queue_.events(id, after, kPatience, {});
      for (const storage::JobEventRow& event : more.events) {
        if (event.type == type) return;
        after = event.sequence;
      }
      ASSERT_FALSE(more.ended || more.events.empty()) << "no event " << type;
    }
  }
  std::vector<std::string> event_types(const std::string& id) {
    std::vector<std::string> types;
    for (const auto& event : queue_.events(id, 0, std::chrono::milliseconds(0), {}).events) {
      types.push_back(event.type);
    }
    return types;
  }
  static std::string text_of(const JobLog& log, uint64_t start = 0) {
    std::string text(log.size - start, '\0');
    const ssize_t count = ::pread(log.file.get(), text.data(), text.size(), static_cast<off_t>(start));
    text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }
  bool folder_is_empty() { return std::filesystem::is_empty(options_.folder); }

  storage::TemporaryFolder folder_;
  storage::MemoryEnv env_;
  storage::FolderBlobStore blobs_;
  storage::SqliteCatalog catalog_;
  JobQueue queue_;
  WorkerPoolOptions options_;
  std::unique_ptr<FunctionRunner> runner_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, AJobRunsItsChildAndPublishes) {
  start([this](JobContext& context) {
    EXPECT_TRUE(std::filesystem::is_empty(context.folder()));
    context.log("starting");
    JobFinish finish;
    finish.result = context.run_child(child("child-report", {"3"}));
    finish.package.emplace();
    finish.package->id = blobs_.put("metadata");
    return finish;
  });
  const JobRow job = wait(submit());
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.result, "{}");
  EXPECT_EQ(job.attempt, 1);
  EXPECT_EQ(parse_json(job.progress).at("done"), 3);
  EXPECT_TRUE(catalog_.find_package(Digest::of("metadata")));
  EXPECT_THAT(event_types(job.id),
              ElementsAre("state", "state", "progress", "progress", "progress", "state", "end"));
  EXPECT_THAT(text_of(pool_->open_log(job)), HasSubstr("starting\nchild confined: \"memory_limit="));
  pool_->stop();
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(WorkerPoolTest, WhatIsMeasuredElsewhereHoldsNobodyUp) {
  std::promise<void> open;
  const auto gate = open.get_future().share();
  FunctionRunner measure(
      [&](JobContext& context) {
        if (context.job().action_key.starts_with("away")) gate.wait();
        return JobFinish();
      },
      true);
  pool_ = std::make_unique<WorkerPool>(queue_, blobs_, std::vector<JobRunner*>{&measure}, options_);
  const auto send = [&](const std::string& key) {
    storage::JobSubmission submission;
    submission.kind = "measure";
    submission.action_key = key;
    return queue_.submit(submission).job.id;
  };
  const std::string first = send("away-1"), second = send("away-2"), here = send("here");
  EXPECT_EQ(wait(here).state, JobState::kSucceeded) << "while the others wait";
  EXPECT_EQ(catalog_.find_job(second)->state, JobState::kRunning);
  open.set_value();
  EXPECT_EQ(wait(first).state, JobState::kSucceeded);
  EXPECT_EQ(wait(second).state, JobState::kSucceeded);
}

TEST_F(WorkerPoolTest, AMeasuringJobRunsBesideTheOthersAndTakesItsChildsEvents) {
  std::promise<void> measured;
  FunctionRunner work([&](JobContext&) {
    EXPECT_EQ(measured.get_future().wait_for(kPatience), std::future_status::ready);
    return JobFinish{JobState::kSucceeded, "{}", ""};
  });
  FunctionRunner measure(
      [&](JobContext& context) {
        const auto quiet = context.quiet();
        int taken = 0;
        context.run_child(child("child-report", {"3"}), [&](const std::string& type, const std::string&) {
          taken += type == "progress" ? 1 : 0;
          return true;
        });
        measured.set_value();
        return JobFinish{JobState::kSucceeded, std::to_string(taken), ""};
      },
      true);
  pool_ = std::make_unique<WorkerPool>(queue_, blobs_, std::vector<JobRunner*>{&work, &measure}, options_);
  const std::string first = submit();
  storage::JobSubmission submission;
  submission.kind = "measure";
  submission.action_key = "m";
  const JobRow row = wait(queue_.submit(submission).job.id);
  EXPECT_EQ(row.result, "3");
  EXPECT_EQ(event_types(row.id).size(), 4U) << "queued, running, succeeded, end: no progress";
  EXPECT_EQ(wait(first).state, JobState::kSucceeded);
  pool_.reset();
}

TEST_F(WorkerPoolTest, ALogIsReadInPartsWhileItGrowsAndAfterItsEnd) {
  std::promise<void> begun;
  std::promise<void> seen;
  start([&](JobContext& context) {
    context.log(std::string(100'000, 'a'));
    begun.set_value();
    seen.get_future().wait();
    context.log("the end");
    return JobFinish{};
  });
  const std::string id = submit();
  begun.get_future().wait();
  const JobLog early = pool_->open_log(queue_.get(id));
  EXPECT_EQ(early.size, 100'001u);
  EXPECT_EQ(text_of(early, 99'999), "a\n");
  seen.set_value();
  const JobRow job = wait(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  // What was opened stays, though the file of the attempt is gone.
  EXPECT_EQ(text_of(early), std::string(100'000, 'a') + "\n");
  const JobLog late = pool_->open_log(job);
  EXPECT_EQ(text_of(late, early.size), "the end\n");
  EXPECT_FALSE(pool_->open_log(JobRow{}).file.valid());
}

TEST_F(WorkerPoolTest, ALogIsReadByOtherProcessesWhileItGrows) {
  options_.shares_logs = true;
  options_.commit_every = std::chrono::milliseconds(0);
  WorkerPoolOptions elsewhere = options_;
  elsewhere.folder = folder_.path() + "/other";
  WorkerPool other(queue_, blobs_, {}, elsewhere);
  std::promise<void> seen;
  start([&](JobContext& context) {
    context.log(std::string(100'000, 'a'));
    context.event("told", "{}");
    seen.get_future().wait();
    return JobFinish{};
  });
  const std::string id = submit();
  wait_for(id, "told");
  EXPECT_EQ(text_of(other.open_log(queue_.get(id))), std::string(100'000, 'a') + "\n");
  seen.set_value();
  const JobRow job = wait(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(other.open_log(job).size, 100'001U);
}

TEST_F(WorkerPoolTest, AUsersErrorFailsTheJobOnce) {
  start([](JobContext& context) {
    context.run_child(child("child-user-error"));
    return JobFinish{};
  });
  const JobRow job = wait(submit());
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.attempt, 1);
  const Json error = parse_json(job.error);
  EXPECT_EQ(error.at("code"), "operator_not_implemented");
  EXPECT_EQ(error.at("details").at(0).at("pointer"), "/node/0");
  EXPECT_THAT(text_of(pool_->open_log(job)), HasSubstr("2 operators"));
}

TEST_F(WorkerPoolTest, AChildsMemoryIsLookedAtWhileItsEventIsAnswered) {
  start([](JobContext& context) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "pipe");
    const FileDescriptor read_end(ends[0]);
    FileDescriptor write_end(ends[1]);
    ChildSpec hungry = child("child-shared-memory", {"written"});
    hungry.descriptors = {write_end.get()};
    hungry.limits.confine = false;
    hungry.limits.data_bytes = uint64_t{128} << 20;
    // The first thing that it says; the pipe ends with it.
    const auto take = [&](const std::string&, const std::string&) {
      write_end = FileDescriptor();
      pollfd gone{read_end.get(), 0, 0};
      while (::poll(&gone, 1, 1) == 0) context.keep_alive();
      return true;
    };
    context.run_child(std::move(hungry), take);
    return JobFinish{};
  });
  const JobRow job = wait(submit());
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(parse_json(job.error).at("code"), "memory_budget");
}

TEST_F(WorkerPoolTest, ACrashIsTriedAgainAndThenFails) {
  start([](JobContext& context) {
    context.run_child(child("child-crash"));
    return JobFinish{};
  });
  const JobRow job = wait(submit("k", 2));
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.attempt, 2);
  EXPECT_EQ(parse_json(job.error).at("code"), "job_failed");
}

TEST_F(WorkerPoolTest, ABugInARunnerFailsItsJobAlone) {
  start([](JobContext& context) -> JobFinish {
    if (context.job().action_key == "bug") throw std::out_of_range("index 7 of 3");
    return {};
  });
  const JobRow broken = wait(submit("bug"));
  EXPECT_EQ(parse_json(broken.error).at("code"), "internal_error");
  EXPECT_EQ(wait(submit("fine")).state, JobState::kSucceeded);
}

TEST_F(WorkerPoolTest, CancelEndsARunningJobAndItsChild) {
  start([](JobContext& context) {
    context.run_child(child("child-hang"));
    return JobFinish{};
  });
  const std::string id = submit();
  wait_for(id, "log");
  EXPECT_EQ(queue_.cancel(id).job.state, JobState::kRunning);
  EXPECT_EQ(wait(id).state, JobState::kCancelled);
  EXPECT_EQ(event_types(id).back(), "end");
  EXPECT_EQ(queue_.cancel(id).job.state, JobState::kCancelled);
}

TEST_F(WorkerPoolTest, ACancelRightAfterTheClaimIsSeen) {
  const std::string id = submit();
  const JobRow claimed = *catalog_.claim_job({"work"}, "owner", 1'000'000);
  queue_.cancel(id);
  MeasureGate gate;
  SteadyClock clock;
  LeaseKeeper keeper(queue_, options_.lease, clock);
  JobAttempt attempt(queue_, blobs_, gate, keeper, options_, claimed, {});
  FunctionRunner runner([](JobContext& context) {
    context.run_child(child("child-hang"));
    return JobFinish{};
  });
  attempt.run(runner);
  EXPECT_EQ(queue_.get(id).state, JobState::kCancelled);
}

TEST_F(WorkerPoolTest, AShutdownGivesTheJobBackAndTheNextPoolTakesIt) {
  start([](JobContext& context) {
    context.run_child(child("child-hang"));
    return JobFinish{};
  });
  const std::string id = submit("k", 1);
  wait_for(id, "log");
  pool_->stop();
  EXPECT_EQ(queue_.get(id).state, JobState::kQueued);
  start([](JobContext&) { return JobFinish{}; });
  const JobRow job = wait(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.attempt, 2);
}

TEST_F(WorkerPoolTest, WhatADeadProcessLeftRunningIsTakenUp) {
  const std::string id = submit();
  ASSERT_TRUE(catalog_.claim_job({"work"}, "dead process", 1'000'000));
  std::filesystem::create_directories(options_.folder + "/left-over");
  start([](JobContext&) { return JobFinish{}; });
  const JobRow job = wait(id);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.attempt, 2);
  EXPECT_FALSE(std::filesystem::exists(options_.folder + "/left-over"));
}

TEST_F(WorkerPoolTest, ALateWorkerPublishesNothing) {
  start([this](JobContext& context) {
    if (context.job().action_key != "k") return JobFinish{};
    // Another process finds the lease expired and takes the job.
    if (context.job().attempt == 1) {
      catalog_.requeue_orphans(storage::Orphans::kAtStart, 0);
      EXPECT_TRUE(catalog_.claim_job({"work"}, "another", 1'000'000));
    }
    JobFinish finish;
    finish.result = "\"late\"";
    finish.package.emplace();
    finish.package->id = blobs_.put("late");
    return finish;
  });
  const std::string id = submit("k", 5);
  wait(submit("after it"));
  EXPECT_EQ(queue_.get(id).owner, "another");
  EXPECT_EQ(queue_.get(id).state, JobState::kRunning);
  EXPECT_FALSE(catalog_.find_package(Digest::of("late")));
}

TEST_F(WorkerPoolTest, SeveralWorkersShareTheQueue) {
  options_.threads = 3;
  start([](JobContext& context) {
    JobFinish finish;
    finish.result = context.run_child(child("child-report", {"1"}));
    return finish;
  });
  std::vector<std::string> ids;
  for (int i = 0; i < 9; ++i) ids.push_back(submit("k" + std::to_string(i)));
  for (const std::string& id : ids) EXPECT_EQ(wait(id).state, JobState::kSucceeded);
}

TEST_F(WorkerPoolTest, WaitingEndsWithTheStopToken) {
  const std::string id = submit();
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(queue_.wait(id, kPatience, source.get_token()).state, JobState::kQueued);
  EXPECT_TRUE(queue_.events(id, 5, kPatience, source.get_token()).events.empty());
  EXPECT_EQ(queue_.wait(id, std::chrono::milliseconds(1), {}).state, JobState::kQueued);
  EXPECT_ERROR(queue_.wait("none", kPatience, {}), ErrorCode::kNotFound);
}

TEST_F(WorkerPoolTest, EventsEndAfterTheLastOne) {
  start([](JobContext&) { return JobFinish{}; });
  const std::string id = submit();
  wait(id);
  const JobEvents first = queue_.events(id, 0, kPatience, {}, 2);
  EXPECT_EQ(first.events.size(), 2U);
  EXPECT_FALSE(first.ended);
  const JobEvents rest = queue_.events(id, first.events.back().sequence, kPatience, {}, 100);
  EXPECT_TRUE(rest.ended);
  EXPECT_EQ(rest.events.back().type, "end");
  EXPECT_TRUE(queue_.events(id, rest.events.back().sequence, kPatience, {}).ended);
}

}  // namespace
}  // namespace tensormill::jobs
