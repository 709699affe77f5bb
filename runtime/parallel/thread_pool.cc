#include "runtime/parallel/thread_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/parallel/team.h"

namespace tensormill::parallel {

namespace {

/// A wait polls this often before the thread sleeps: some tenths of a millisecond when nothing is leased (the
/// next run may follow at once), about a millisecond inside a lease, whose core is reserved anyway: waking a
/// thread takes longer than most steps of a network do.
constexpr int kIdleSpins = 5000;
constexpr int kLeasedSpins = 25000;

enum State : uint32_t { kIdle, kPosted, kRunning, kStop };

}  // namespace

struct ThreadPool::Job {
  SessionFunction function;
  void* context;
  Team* team;
};

/// A thread's mailbox. Idle -> Posted by the lease; Posted -> Running by the thread, or back to Idle by a
/// lease that finished without it.
struct alignas(kLinePair) ThreadPool::Helper {
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
      const Job job = *helper.job;
      job.team->enter(helper.worker);
      job.function(job.context, *job.team, helper.worker);
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
  const int count = std::clamp(wanted, 1, free_cores_.load());
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
    : pool_(pool), helpers_(std::move(helpers)), team_(std::make_unique<Team>(workers())) {}

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      helpers_(std::move(other.helpers_)),
      team_(std::move(other.team_)) {}

Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(helpers_);
}

void Lease::session(SessionFunction function, void* context) {
  ThreadPool::Job job{.function = function, .context = context, .team = team_.get()};
  team_->begin_session();
  for (size_t i = 0; i < helpers_.size(); ++i) {
    ThreadPool::Helper& helper = *pool_->helpers_[static_cast<size_t>(helpers_[i])];
    helper.job = &job;
    helper.worker = static_cast<int32_t>(i) + 1;
    helper.state.store(kPosted, std::memory_order_release);
    helper.state.notify_one();
  }
  function(context, *team_, 0);
  for (const int index : helpers_) {
    ThreadPool::Helper& helper = *pool_->helpers_[static_cast<size_t>(index)];
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
}

int32_t Lease::parallel_for(int64_t tasks, TaskFunction function, void* context, const CancelToken* cancel,
                            int32_t cancel_code) {
  struct OneLoop {
    Loop loop;
    int32_t code = 0;
  };
  OneLoop one{{tasks, function, context, cancel, cancel_code}};
  const auto run = [](void* self, Team& team, int32_t worker) {
    OneLoop& shared = *static_cast<OneLoop*>(self);
    const int32_t code = team.loop(worker, shared.loop);
    if (worker == 0) shared.code = code;
  };
  session(run, &one);
  return one.code;
}

}  // namespace tensormill::parallel
