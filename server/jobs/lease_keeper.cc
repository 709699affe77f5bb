#include "server/jobs/lease_keeper.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::jobs {
namespace {

using std::chrono::milliseconds;

}  // namespace

LeaseKeeper::LeaseKeeper(JobSource& source, milliseconds lease, Clock& clock)
    : source_(source),
      lease_(lease),
      clock_(clock),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

LeaseKeeper::Kept::Kept(LeaseKeeper& keeper, storage::JobClaim claim, std::function<void()> lost,
                        std::function<void()> cancelled)
    : keeper_(keeper),
      claim_(std::move(claim)),
      lost_(std::move(lost)),
      cancelled_(std::move(cancelled)),
      due_(keeper.clock_.now() + keeper.lease_ / 3) {
  const std::lock_guard lock(keeper_.mutex_);
  place_ = keeper_.claims_.insert(keeper_.claims_.end(), this);
  keeper_.changed_.notify_all();
}

LeaseKeeper::Kept::~Kept() {
  const std::lock_guard lock(keeper_.mutex_);
  keeper_.claims_.erase(place_);
}

void LeaseKeeper::renew(Kept& kept) {
  kept.due_ = clock_.now() + lease_ / 3;
  try {
    const storage::HeartbeatResult beat = source_.heartbeat(kept.claim_, lease_, std::nullopt, {});
    if (!beat.held && kept.lost_) std::exchange(kept.lost_, nullptr)();
    if (beat.cancel_requested && kept.cancelled_) std::exchange(kept.cancelled_, nullptr)();
  } catch (const Error&) {
    // The store is full or broken just now. Two more tries fit into the lease; after it the job comes back.
  }
}

void LeaseKeeper::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const Clock::time_point now = clock_.now();
    bool renewed = false;
    for (Kept* kept : claims_) {
      if (kept->due_ > now) continue;
      renew(*kept);
      renewed = true;
    }
    if (renewed) source_.notify();
    Clock::time_point next = clock_.now() + lease_;
    for (const Kept* kept : claims_) next = std::min(next, kept->due_);
    const size_t known = claims_.size();
    clock_.wait(lock, changed_, stop, next, [&] { return claims_.size() != known; });
  }
}

}  // namespace tensormill::jobs
