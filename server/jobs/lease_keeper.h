/// Renews the leases of running jobs on a thread of its own, so that no stretch of an attempt, however long,
/// loses its job: unpacking and hashing a large model asks nobody. Thread-safety: all methods from many
/// threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "server/jobs/clock.h"
#include "server/jobs/job_source.h"

namespace tensormill::jobs {

class LeaseKeeper {
public:
  /// Leases of `lease`, renewed each third of it.
  LeaseKeeper(JobSource& source, std::chrono::milliseconds lease, Clock& clock);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  /// Keeps a claim for as long as it lives.
  class Kept {
  public:
    /// `lost` and `cancelled` are called on the keeper's thread, once at most each: another attempt has the
    /// job; somebody wants it to end.
    Kept(LeaseKeeper& keeper, storage::JobClaim claim, std::function<void()> lost,
         std::function<void()> cancelled);
    /// Neither of the two is called after it.
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

  private:
    friend class LeaseKeeper;
    LeaseKeeper& keeper_;
    const storage::JobClaim claim_;
    std::function<void()> lost_;
    std::function<void()> cancelled_;
    Clock::time_point due_;
    std::list<Kept*>::iterator place_;
  };

private:
  void work(const std::stop_token& stop);
  /// With the mutex held, for as long as the catalog takes: a claim does not go while it is renewed.
  void renew(Kept& kept);

  JobSource& source_;
  const std::chrono::milliseconds lease_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Kept*> claims_;
  std::jthread thread_;
};

}  // namespace tensormill::jobs
