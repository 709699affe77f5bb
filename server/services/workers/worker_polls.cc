#include "server/services/workers/worker_polls.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "runtime/base/error.h"

namespace tensormill::server {

namespace {

using std::chrono::milliseconds;

/// Bounds the search for leases that are over.
constexpr milliseconds kLongestIdle{5'000};

}  // namespace

WorkerPolls::WorkerPolls(jobs::JobQueue& queue, milliseconds lease,
                         std::function<bool(const std::string&)> may, MakeLease make)
    : queue_(queue),
      lease_(lease),
      may_(std::move(may)),
      make_(std::move(make)),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

WorkerPolls::~WorkerPolls() { stop(); }

void WorkerPolls::wait(std::vector<WorkerWants> wants, std::string owner, milliseconds lease,
                       milliseconds wait, const std::stop_token& cancelled, services::Done<Found> done) {
  Waiting one{
      std::move(wants), std::move(owner), lease.count() > 0 ? lease : lease_, Clock::now() + wait, cancelled,
      std::move(done),  nullptr};
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) throw Error(ErrorCode::kUnavailable, "this server is ending");
    if (waiting_.size() >= kMostWaiting)
      throw Error(ErrorCode::kUnavailable, std::to_string(kMostWaiting) + " workers wait already");
    waiting_.push_back(std::move(one));
    // Made where it stays; where the client has gone already it wakes the thread at once.
    waiting_.back().wake =
        std::make_unique<std::stop_callback<std::function<void()>>>(cancelled, [this] { queue_.changed(); });
  }
  queue_.changed();
}

void WorkerPolls::end(const std::string& owner) {
  {
    const std::lock_guard lock(mutex_);
    ended_.insert(owner);
  }
  queue_.changed();
}

void WorkerPolls::end_now(const std::string& owner) {
  std::unique_lock lock(mutex_);
  ended_.insert(owner);
  // A round that runs now may have begun without it.
  const uint64_t round = rounds_begun_ + 1;
  lock.unlock();
  queue_.changed();
  lock.lock();
  round_done_.wait(lock, [&] { return rounds_done_ >= round || stopped_; });
}

void WorkerPolls::take_back(const std::string& lease) {
  {
    const std::lock_guard lock(mutex_);
    taken_back_.push_back(lease);
  }
  queue_.changed();
}

void WorkerPolls::queue_again(const std::vector<std::string>& leases) {
  for (const std::string& lease : leases) {
    const size_t dot = lease.rfind('.');
    const std::optional<storage::JobRow> job = queue_.catalog().find_job(lease.substr(0, dot));
    const bool is_held = job && job->state == storage::JobState::kRunning &&
                         std::to_string(job->attempt) == lease.substr(dot + 1);
    if (is_held)
      queue_.catalog().release_job({job->id, job->attempt, job->owner}, {"", std::nullopt, 0, false});
  }
  if (!leases.empty()) queue_.changed();
}

void WorkerPolls::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  round_done_.notify_all();
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool WorkerPolls::give(Waiting& one) {
  try {
    if (!may_(one.owner)) {
      one.done(services::Outcome<Found>(Found()));
      return true;
    }
    for (const WorkerWants& wants : one.wants) {
      while (const std::optional<storage::JobRow> job =
                 queue_.catalog().claim_job(wants.kinds, one.owner, one.lease.count(), wants.demands)) {
        queue_.changed();
        Found lease = make_(*job);
        if (!lease) continue;
        lease->lease_ms = one.lease.count();
        // It went while the job was claimed: nobody has begun.
        if (one.cancelled.stop_requested()) {
          queue_again({lease->id});
          lease.reset();
        }
        one.done(services::Outcome<Found>(std::move(lease)));
        return true;
      }
    }
  } catch (const Error&) {
    // The catalog is away just now: the worker hears so and comes back.
    one.done(services::Outcome<Found>(std::current_exception()));
    return true;
  }
  return false;
}

milliseconds WorkerPolls::serve(std::vector<Waiting>& waiting, bool is_last) {
  // One look for all that want the same, however many they are.
  std::map<WorkerWants, milliseconds> due;
  for (const Waiting& one : waiting) {
    for (const WorkerWants& wants : one.wants) {
      if (is_last || due.contains(wants)) continue;
      const std::optional<int64_t> next = queue_.catalog().next_claim_in(wants.kinds, wants.demands);
      due[wants] = next ? milliseconds(*next) : kLongestIdle;
    }
  }
  // From here on nothing throws.
  milliseconds idle = kLongestIdle;
  std::vector<Waiting> rest;
  for (Waiting& one : waiting) {
    const auto now = Clock::now();
    const auto left = one.until > now ? std::chrono::ceil<milliseconds>(one.until - now) : milliseconds(0);
    if (is_last || one.cancelled.stop_requested()) {
      one.done(services::Outcome<Found>(Found()));
      continue;
    }
    milliseconds next = kLongestIdle;
    for (const WorkerWants& wants : one.wants) next = std::min(next, due.at(wants));
    if (next.count() <= 0) {
      if (give(one)) continue;
      for (const WorkerWants& wants : one.wants) due[wants] = kLongestIdle;
    } else {
      idle = std::min(idle, next);
    }
    if (left.count() <= 0) {
      one.done(services::Outcome<Found>(Found()));
      continue;
    }
    idle = std::min(idle, left);
    rest.push_back(std::move(one));
  }
  waiting = std::move(rest);
  return std::max(idle, milliseconds(1));
}

void WorkerPolls::work(const std::stop_token& stop) {
  while (true) {
    const uint64_t seen = queue_.version();
    const bool is_last = stop.stop_requested();
    std::vector<Waiting> waiting;
    std::set<std::string> ended;
    std::vector<std::string> taken_back;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
      ended.swap(ended_);
      taken_back.swap(taken_back_);
      ++rounds_begun_;
    }
    for (Waiting& one : waiting) {
      if (ended.contains(one.owner)) one.until = Clock::time_point::min(), one.wants.clear();
    }
    milliseconds idle = kLongestIdle;
    try {
      queue_again(taken_back);
      if (!is_last) queue_.look_for_orphans(lease_);
      idle = serve(waiting, is_last);
    } catch (const Error&) {
      // The catalog is away just now; those that wait go on waiting.
      idle = milliseconds(1'000);
    }
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(waiting_.end(), std::make_move_iterator(waiting.begin()),
                      std::make_move_iterator(waiting.end()));
      rounds_done_ = rounds_begun_;
    }
    round_done_.notify_all();
    if (is_last) return;
    queue_.wait_for_change(seen, idle, stop);
  }
}

}  // namespace tensormill::server
