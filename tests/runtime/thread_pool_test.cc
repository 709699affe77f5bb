#include "runtime/parallel/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

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

TEST(ThreadPool, LeasesShareTheCores) {
  ThreadPool pool(3);
  {
    Lease two = pool.lease(2);
    EXPECT_EQ(two.workers(), 2);
    Lease rest = pool.lease(3);
    EXPECT_EQ(rest.workers(), 1) << "takes what is free instead of waiting for more";
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
