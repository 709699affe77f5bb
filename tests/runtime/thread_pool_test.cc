#include "runtime/parallel/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/parallel/team.h"

namespace tensormill::parallel {
namespace {

struct Count {
  std::vector<std::atomic<int>> seen;
  std::atomic<int> bad_worker{0};
  int workers;
};

int32_t count_task(void* context, int64_t task, int32_t worker) {
  auto* count = static_cast<Count*>(context);
  count->seen[static_cast<size_t>(task)]++;
  if (worker < 0 || worker >= count->workers) count->bad_worker++;
  return 0;
}

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int cores : {1, 2, 5}) {
    ThreadPool pool(cores);
    Lease lease = pool.lease(cores);
    ASSERT_EQ(lease.workers(), cores);
    for (int64_t tasks : {0, 1, 2, 7, 500}) {
      for (int round = 0; round < 20; ++round) {
        Count count{std::vector<std::atomic<int>>(static_cast<size_t>(tasks)), {}, cores};
        EXPECT_EQ(lease.parallel_for(tasks, &count_task, &count), 0);
        for (const auto& seen : count.seen) ASSERT_EQ(seen.load(), 1);
        EXPECT_EQ(count.bad_worker.load(), 0);
      }
    }
  }
}

int32_t failing_task(void*, int64_t task, int32_t) { return task >= 50 ? static_cast<int32_t>(task) : 0; }

TEST(ThreadPool, TheLowestFailureWins) {
  ThreadPool pool(4);
  Lease lease = pool.lease(4);
  for (int round = 0; round < 200; ++round) ASSERT_EQ(lease.parallel_for(300, &failing_task, nullptr), 50);
}

TEST(ThreadPool, CancelStopsALoop) {
  ThreadPool pool(2);
  Lease lease = pool.lease(2);
  CancelToken cancel;
  cancel.cancel();
  Count count{std::vector<std::atomic<int>>(100), {}, 2};
  EXPECT_EQ(lease.parallel_for(100, &count_task, &count, &cancel, 77), 77);
}

// Loops of different lengths, one after the other; each reads what all tasks of the one before wrote.
struct Relay {
  static constexpr int kLoops = 100;
  static int64_t tasks(int loop) { return 1 + loop * 7 % 40; }
  std::vector<int64_t> sums = std::vector<int64_t>(kLoops + 1, 0);
  std::vector<int64_t> parts = std::vector<int64_t>(2 * 64, 0);
  std::atomic<int> failures{0};
  int failing_loop = kLoops;
};

struct RelayLoop {
  Relay& relay;
  int loop;
};

int32_t relay_task(void* context, int64_t task, int32_t) {
  const auto [relay, loop] = *static_cast<RelayLoop*>(context);
  int64_t sum = task;
  for (int64_t i = 0; loop > 0 && i < Relay::tasks(loop - 1); ++i)
    sum += relay.parts[static_cast<size_t>((loop + 1) % 2 * 64 + i)];
  relay.parts[static_cast<size_t>(loop % 2 * 64 + task)] = sum % 1000003;
  if (task == 0) relay.sums[static_cast<size_t>(loop)] = sum;
  return loop == relay.failing_loop && task >= 3 ? static_cast<int32_t>(task) : 0;
}

void relay_session(void* context, Team& team, int32_t worker) {
  Relay& relay = *static_cast<Relay*>(context);
  for (int i = 0; i < Relay::kLoops; ++i) {
    RelayLoop loop{relay, i};
    const int32_t code = team.loop(worker, {Relay::tasks(i), &relay_task, &loop});
    if (code != 0) {
      relay.failures += code == 3 && i == relay.failing_loop ? 1 : 100;
      return;
    }
  }
}

TEST(ThreadPool, WorkersOfASessionGoThroughLoopsSideBySide) {
  Relay expected;
  ThreadPool single(1);
  single.lease(1).session(&relay_session, &expected);
  for (int cores : {2, 3, 5}) {
    ThreadPool pool(cores);
    for (int round = 0; round < 4; ++round) {
      Lease lease = pool.lease(cores);
      for (int session = 0; session < 3; ++session) {
        Relay relay;
        lease.session(&relay_session, &relay);
        ASSERT_EQ(relay.sums, expected.sums) << cores;
      }
    }
  }
}

TEST(ThreadPool, AFailureEndsASessionForAllWorkers) {
  ThreadPool pool(3);
  Lease lease = pool.lease(3);
  for (int round = 0; round < 50; ++round) {
    Relay relay;
    relay.failing_loop = 11;
    lease.session(&relay_session, &relay);
    ASSERT_GE(relay.failures.load(), 1);
    ASSERT_LE(relay.failures.load(), 3) << "each worker that came sees the same code";
  }
}

TEST(ThreadPool, LeasesShareTheCores) {
  ThreadPool pool(3);
  {
    Lease two = pool.lease(2);
    EXPECT_EQ(two.workers(), 2);
    EXPECT_TRUE(pool.has_free_core());
    Lease rest = pool.lease(3);
    EXPECT_EQ(rest.workers(), 1) << "takes what is free instead of waiting for more";
    EXPECT_FALSE(pool.has_free_core());
    try {
      Lease none = pool.lease(1, std::chrono::steady_clock::now());
      FAIL() << "no core was free";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    }
    CancelToken cancel;
    cancel.cancel();
    EXPECT_THROW(pool.lease(1, std::nullopt, &cancel), Error);
  }
  EXPECT_EQ(pool.lease(9).workers(), 3) << "all came back";
}

TEST(ThreadPool, WaitersGetTheirTurn) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        Lease lease = pool.lease(2);
        Count count{std::vector<std::atomic<int>>(16), {}, lease.workers()};
        done += lease.parallel_for(16, &count_task, &count) == 0 && count.bad_worker == 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done.load(), 300);
}

}  // namespace
}  // namespace tensormill::parallel
