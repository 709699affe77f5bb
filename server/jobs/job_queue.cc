#include "server/jobs/job_queue.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::jobs {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using storage::JobRow;

namespace {

/// The longest sleep of an idle worker; wake-ups come by notification, this only bounds the search for lost
/// leases.
constexpr milliseconds kLongestIdle{5'000};
/// After an error of the store itself.
constexpr milliseconds kStoreRetry{1'000};

milliseconds until(steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  return left.count() > 0 ? left : milliseconds(0);
}

}  // namespace

storage::Submitted JobQueue::submit(const storage::JobSubmission& submission) {
  storage::Submitted submitted = catalog_.submit_job(submission);
  if (submitted.outcome == storage::SubmitOutcome::kCreated) changed();
  return submitted;
}

storage::CancelOutcome JobQueue::cancel(const std::string& id, const storage::Submitter& by,
                                        const std::string& repeat_key) {
  storage::CancelOutcome outcome = catalog_.cancel_job(id, by, repeat_key);
  if (outcome.job.state == storage::JobState::kRunning && outcome.job.cancel_requested) kill_running(id);
  changed();
  return outcome;
}

JobRow JobQueue::retry(const std::string& id, const storage::Submitter& submitter,
                       const std::string& repeat_key) {
  JobRow job = catalog_.retry_job(id, submitter, repeat_key);
  changed();
  return job;
}

JobRow JobQueue::get(const std::string& id) {
  std::optional<JobRow> job = catalog_.find_job(id);
  if (!job) throw Error(ErrorCode::kNotFound, "no job " + id);
  return *job;
}

JobRow JobQueue::wait(const std::string& id, milliseconds timeout, const std::stop_token& stop) {
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    const uint64_t seen = version();
    JobRow job = get(id);
    const milliseconds left = until(deadline);
    if (storage::is_final(job.state) || left.count() == 0 || stop.stop_requested()) return job;
    wait_for_change(seen, left, stop);
  }
}

JobEvents JobQueue::events(const std::string& id, int64_t after, milliseconds timeout,
                           const std::stop_token& stop, int limit) {
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    const uint64_t seen = version();
    // The state first: what comes between is found by the next call.
    const bool final = storage::is_final(get(id).state);
    JobEvents result{catalog_.job_events(id, after, limit), false};
    result.ended = final && result.events.size() < static_cast<size_t>(limit);
    const milliseconds left = until(deadline);
    if (!result.events.empty() || result.ended || left.count() == 0 || stop.stop_requested()) return result;
    wait_for_change(seen, left, stop);
  }
}

std::vector<storage::PlacedEventRow> JobQueue::all_events(int64_t after, milliseconds timeout,
                                                          const std::stop_token& stop, int limit) {
  const auto deadline = steady_clock::now() + timeout;
  while (true) {
    const uint64_t seen = version();
    std::vector<storage::PlacedEventRow> events = catalog_.all_job_events(after, limit);
    const milliseconds left = until(deadline);
    if (!events.empty() || left.count() == 0 || stop.stop_requested()) return events;
    wait_for_change(seen, left, stop);
  }
}

void JobQueue::changed() {
  {
    const std::lock_guard lock(mutex_);
    ++version_;
  }
  condition_.notify_all();
}

void JobQueue::changed_elsewhere() {
  std::vector<std::string> running;
  {
    const std::lock_guard lock(kills_mutex_);
    for (const auto& [id, kill] : kills_) running.push_back(id);
  }
  try {
    for (const std::string& id : running) {
      const std::optional<JobRow> job = catalog_.find_job(id);
      if (job && job->cancel_requested) kill_running(id);
    }
  } catch (const Error&) {
    // The catalog cannot be read just now; the next look, or the next heartbeat, finds it.
  }
  changed();
}

void JobQueue::kill_running(const std::string& id) {
  const std::lock_guard lock(kills_mutex_);
  const auto kill = kills_.find(id);
  if (kill != kills_.end()) kill->second();
}

uint64_t JobQueue::version() {
  const std::lock_guard lock(mutex_);
  return version_;
}

void JobQueue::wait_for_change(uint64_t seen, milliseconds timeout, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  condition_.wait_for(lock, stop, timeout, [&] { return version_ != seen; });
}

void JobQueue::take_up(milliseconds backoff) {
  const std::lock_guard lock(orphans_mutex_);
  backoff_ = backoff;
  catalog_.requeue_orphans(storage::Orphans::kAtStart, backoff.count());
  last_look_ = steady_clock::now();
}

std::optional<JobRow> JobQueue::claim(const std::vector<std::string>& kinds, const std::string& owner,
                                      milliseconds lease, const std::stop_token& stop) {
  const uint64_t seen = version();
  // A look first: nearly every change wakes all that wait, and a claim is a write.
  std::optional<int64_t> next = catalog_.next_claim_in(kinds);
  if (next && *next <= 0) {
    if (std::optional<JobRow> job = catalog_.claim_job(kinds, owner, lease.count())) {
      changed();
      return job;
    }
    next = catalog_.next_claim_in(kinds);
  }
  look_for_orphans(lease);
  milliseconds wait = std::min(kLongestIdle, lease);
  if (next) wait = std::clamp(milliseconds(*next), milliseconds(1), wait);
  wait_for_change(seen, wait, stop);
  return std::nullopt;
}

void JobQueue::look_for_orphans(milliseconds lease) {
  const std::lock_guard lock(orphans_mutex_);
  if (steady_clock::now() - last_look_ < lease) return;
  last_look_ = steady_clock::now();
  if (!catalog_.requeue_orphans(storage::Orphans::kExpired, backoff_.count()).empty()) changed();
}

storage::HeartbeatResult JobQueue::heartbeat(const storage::JobClaim& claim, milliseconds lease,
                                             const std::optional<std::string>& progress,
                                             const std::vector<storage::JobEventRow>& events) {
  return catalog_.heartbeat_job(claim, lease.count(), progress, events);
}

bool JobQueue::finish(const storage::JobClaim& claim, const storage::JobFinish& finish) {
  return catalog_.finish_job(claim, finish);
}

bool JobQueue::release(const storage::JobClaim& claim, const storage::JobRelease& release) {
  return catalog_.release_job(claim, release);
}

void JobQueue::pause(const std::stop_token& stop) { wait_for_change(version(), kStoreRetry, stop); }

void JobQueue::set_kill(const std::string& id, std::function<void()> kill) {
  const std::lock_guard lock(kills_mutex_);
  kills_[id] = std::move(kill);
}

void JobQueue::clear_kill(const std::string& id) {
  const std::lock_guard lock(kills_mutex_);
  kills_.erase(id);
}

}  // namespace tensormill::jobs
