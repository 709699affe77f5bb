#include "runtime/parallel/thread_pool.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::parallel {

namespace {

/// A wait polls this often before the thread sleeps: some tenths of a millisecond when nothing is leased (the
/// next run may follow at once), about a millisecond inside a lease, whose core is reserved anyway: waking a
/// thread takes longer than most steps of a network do.
constexpr int kIdleSpins = 5000;
constexpr int kLeasedSpins = 25000;

/// Keeps what two threads write off each other's cache lines.
constexpr size_t kCacheLine = 64;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

enum State : uint32_t { kIdle, kPosted, kRunning, kStop };

}  // namespace

/// The tasks of one worker: consecutive ones, so that what it wrote for one kernel is what it reads for the
/// next. Whoever is done early helps the others.
struct alignas(kCacheLine) Lease::Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

struct ThreadPool::Job {
  TaskFunction function;
  void* context;
  Lease::Share* shares;
  int32_t workers;  ///< that have a share
  const CancelToken* cancel;
  int32_t cancel_code;
  /// The lowest task that failed. Tasks above it are skipped, tasks below it are not, so it ends at the same
  /// one on every run.
  alignas(kCacheLine) std::atomic<int64_t> failing_task{std::numeric_limits<int64_t>::max()};
  std::mutex mutex;
  int32_t code = 0;

  void fail(int64_t task, int32_t task_code) {
    const std::lock_guard lock(mutex);
    if (task >= failing_task.load(std::memory_order_relaxed)) return;
    failing_task.store(task, std::memory_order_relaxed);
    code = task_code;
  }

  void work(int32_t worker) {
    for (int32_t i = 0; i < workers; ++i) work_on(shares[(worker + i) % workers], worker);
  }

  void work_on(Lease::Share& share, int32_t worker) {
    while (true) {
      const int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
      if (task >= share.end || task > failing_task.load(std::memory_order_relaxed)) return;
      if (cancel != nullptr && cancel->cancelled()) {
        fail(task, cancel_code);
        return;
      }
      const int32_t result = function(context, task, worker);
      if (result != 0) fail(task, result);
    }
  }
};

/// A thread's mailbox. Idle -> Posted by the lease; Posted -> Running by the thread, or back to Idle by a
/// lease that finished without it.
struct alignas(kCacheLine) ThreadPool::Helper {
  std::atomic<uint32_t> state{kIdle};
  std::atomic<bool> leased{false};
  Job* job = nullptr;
  int32_t worker = 0;
  std::thread thread;
};

ThreadPool::ThreadPool(int cores) : cores_(cores), free_cores_(cores) {
  TM_CHECK(cores >= 1, "a pool of " + std::to_string(cores) + " cores");
  for (int i = 0; i + 1 < cores; ++i) {
    helpers_.push_back(std::make_unique<Helper>());
    free_helpers_.push_back(cores - 2 - i);
  }
  for (auto& helper : helpers_) {
    helper->thread = std::thread([this, &helper] { helper_main(*helper); });
  }
}

ThreadPool::~ThreadPool() {
  for (auto& helper : helpers_) {
    helper->state.store(kStop, std::memory_order_release);
    helper->state.notify_all();
  }
  for (auto& helper : helpers_) helper->thread.join();
}

void ThreadPool::helper_main(Helper& helper) {
  int spins = 0;
  bool leased = false;
  while (true) {
    uint32_t state = helper.state.load(std::memory_order_acquire);
    if (state == kStop) return;
    if (state == kPosted &&
        helper.state.compare_exchange_strong(state, kRunning, std::memory_order_acquire)) {
      helper.job->work(helper.worker);
      helper.state.store(kIdle, std::memory_order_release);
      helper.state.notify_all();
      spins = 0;
      continue;
    }
    // The wait for the next run counts from the end of the last one's lease.
    if (helper.leased.load(std::memory_order_relaxed) != leased) {
      leased = !leased;
      spins = 0;
    }
    if (++spins < (leased ? kLeasedSpins : kIdleSpins)) {
      pause_briefly();
    } else {
      helper.state.wait(kIdle, std::memory_order_acquire);
      spins = 0;
    }
  }
}

Lease ThreadPool::lease(int wanted, const Deadline& deadline, const CancelToken* cancel) {
  std::unique_lock lock(mutex_);
  while (free_cores_ == 0) {
    if (cancel != nullptr && cancel->cancelled())
      throw Error(ErrorCode::kCancelled, "cancelled while waiting for a core");
    const auto now = std::chrono::steady_clock::now();
    if (deadline && now >= *deadline) {
      throw Error(ErrorCode::kDeadlineExceeded,
                  "deadline passed while waiting for one of " + std::to_string(cores_) + " cores");
    }
    auto until = now + (cancel != nullptr ? std::chrono::milliseconds(5) : std::chrono::milliseconds(1000));
    if (deadline) until = std::min(until, *deadline);
    freed_.wait_until(lock, until);
  }
  const int count = std::clamp(wanted, 1, free_cores_);
  free_cores_ -= count;
  std::vector<int> helpers;
  for (int i = 1; i < count; ++i) {
    const int helper = free_helpers_.back();
    free_helpers_.pop_back();
    helpers_[static_cast<size_t>(helper)]->leased.store(true, std::memory_order_relaxed);
    helpers.push_back(helper);
  }
  return Lease(this, std::move(helpers));
}

void ThreadPool::give_back(const std::vector<int>& helpers) {
  {
    const std::lock_guard lock(mutex_);
    for (int helper : helpers)
      helpers_[static_cast<size_t>(helper)]->leased.store(false, std::memory_order_relaxed);
    free_cores_ += static_cast<int>(helpers.size()) + 1;
    free_helpers_.insert(free_helpers_.end(), helpers.rbegin(), helpers.rend());
  }
  freed_.notify_all();
}

Lease::Lease(ThreadPool* pool, std::vector<int> helpers)
    : pool_(pool), helpers_(std::move(helpers)), shares_(std::make_unique<Share[]>(helpers_.size() + 1)) {}

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      helpers_(std::move(other.helpers_)),
      shares_(std::move(other.shares_)) {}

Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(helpers_);
}

int32_t Lease::parallel_for(int64_t tasks, TaskFunction function, void* context, const CancelToken* cancel,
                            int32_t cancel_code) {
  const size_t useful = tasks > 1 ? std::min(helpers_.size(), static_cast<size_t>(tasks - 1)) : 0;
  const int64_t workers = static_cast<int64_t>(useful) + 1;
  for (int64_t w = 0, begin = 0; w < workers; ++w) {
    Share& share = shares_[static_cast<size_t>(w)];
    share.next.store(begin, std::memory_order_relaxed);
    begin += tasks / workers + (w < tasks % workers ? 1 : 0);
    share.end = begin;
  }
  ThreadPool::Job job{.function = function,
                      .context = context,
                      .shares = shares_.get(),
                      .workers = static_cast<int32_t>(workers),
                      .cancel = cancel,
                      .cancel_code = cancel_code,
                      .mutex = {}};
  for (size_t i = 0; i < useful; ++i) {
    ThreadPool::Helper& helper = *pool_->helpers_[static_cast<size_t>(helpers_[i])];
    helper.job = &job;
    helper.worker = static_cast<int32_t>(i) + 1;
    helper.state.store(kPosted, std::memory_order_release);
    helper.state.notify_one();
  }
  job.work(0);
  for (size_t i = 0; i < useful; ++i) {
    ThreadPool::Helper& helper = *pool_->helpers_[static_cast<size_t>(helpers_[i])];
    uint32_t state = kPosted;
    // A thread that has not woken up yet is not waited for.
    if (helper.state.compare_exchange_strong(state, kIdle, std::memory_order_acquire)) continue;
    int spins = 0;
    while ((state = helper.state.load(std::memory_order_acquire)) == kRunning) {
      if (++spins < kLeasedSpins) {
        pause_briefly();
      } else {
        helper.state.wait(kRunning, std::memory_order_acquire);
      }
    }
  }
  const std::lock_guard lock(job.mutex);
  return job.code;
}

}  // namespace tensormill::parallel
