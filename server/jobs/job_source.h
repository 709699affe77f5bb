/// Where jobs come from and go to, as whoever does them sees it: JobQueue, for the threads beside a catalog,
/// or a server somewhere else, for a worker (server/worker). One lease, one heartbeat and one end, whichever
/// it is. Errors: Error(kUnavailable) and those of Catalog from any method. Thread-safety: all methods from
/// many threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "storage/catalog/catalog.h"

namespace tensormill::jobs {

class JobSource {
public:
  virtual ~JobSource() = default;

  /// Takes up what an earlier process left running, once, before any claim.
  virtual void take_up(std::chrono::milliseconds backoff) = 0;
  /// A job that is leased to `owner` now. Nothing where there is none just now: it has waited for a while
  /// then, until something may have changed, or `stop` was requested. Of threads, each names its kinds.
  virtual std::optional<storage::JobRow> claim(const std::vector<std::string>& kinds,
                                               const std::string& owner, std::chrono::milliseconds lease,
                                               const std::stop_token& stop) = 0;
  /// As Catalog::heartbeat_job.
  virtual storage::HeartbeatResult heartbeat(const storage::JobClaim& claim, std::chrono::milliseconds lease,
                                             const std::optional<std::string>& progress,
                                             const std::vector<storage::JobEventRow>& events) = 0;
  /// As Catalog::finish_job. What `finish` names is in the attempt's store of blobs.
  virtual bool finish(const storage::JobClaim& claim, const storage::JobFinish& finish) = 0;
  /// As Catalog::release_job.
  virtual bool release(const storage::JobClaim& claim, const storage::JobRelease& release) = 0;
  /// Whether somebody wanted the job to end before set_kill was called.
  virtual bool is_cancelled(const storage::JobClaim& claim) = 0;
  /// `kill` is called, at most from one thread at a time, when the running job is to be stopped.
  virtual void set_kill(const std::string& id, std::function<void()> kill) = 0;
  virtual void clear_kill(const std::string& id) = 0;
  /// Leases were renewed, an attempt has reported something or has ended: whoever waits for that is woken.
  virtual void notify() {}
  /// Text of a running attempt's log, of which `position` bytes were shared before, for others to show.
  /// Returns how many are shared then; nothing when the attempt is over or logs are not shared.
  virtual std::optional<int64_t> share_log(const storage::JobClaim& /*claim*/, int64_t /*position*/,
                                           std::string_view /*text*/) {
    return std::nullopt;
  }
  /// At most `most` bytes, from `position`, of what was shared of an attempt's log.
  virtual std::string shared_log(const storage::JobRow& /*job*/, int64_t /*position*/, size_t /*most*/) {
    return "";
  }
  /// After an error of the source itself: returns after a pause, or when `stop` is requested.
  virtual void pause(const std::stop_token& stop) = 0;
};

}  // namespace tensormill::jobs
