/// Workers on other machines: they ask for work, tell how it goes and bring what came of it. What they say is
/// a stranger's: a worker learns and changes nothing but what its live lease is about.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/body.h"
#include "api/services/common.h"
#include "runtime/base/digest.h"

namespace tensormill::services {

/// Of the messages between worker and server: the newest that this program speaks and the oldest. The next
/// one is spoken beside this one for a release, by servers and by workers, so that either may be replaced
/// first.
inline constexpr int kWorkerProtocol = 1;
inline constexpr int kOldestWorkerProtocol = 1;
/// All that a worker may be asked to do.
inline constexpr std::array<std::string_view, 5> kWorkerVerbs = {"compile", "benchmark", "run", "verify",
                                                                 "measure"};
/// The scopes of keys that workers show begin so; behind it stands what it lets them do.
inline constexpr const char* kWorkerScope = "worker";

/// POST /v1/workers/lease
struct WorkerOffer {
  int protocol = 0;         ///< the newest that the worker speaks
  int oldest_protocol = 0;  ///< the oldest; where the message names none, the newest
  std::string name;
  std::vector<std::string> verbs;   ///< that it does, of all that its key lets it
  std::vector<std::string> labels;  ///< empty: all that its key grants
  std::string compiler;             ///< driver::compiler_build() of the worker
  std::string facts_json = "{}";    ///< object, for people
  std::string status_json = "{}";   ///< object, for people: what it measures of itself
  bool is_fresh = false;            ///< its process has just begun: what it had before is lost
  int wait_s = 0;                   ///< how long it waits for work, 30 at most
  int hold_s = 0;  ///< how long it is silent, since it carries the item away; 0: as long as others
};

/// The newest protocol that both speak, in which the server answers. Throws Error(kNotSupported), which names
/// what either speaks, where there is none.
int common_protocol(const WorkerOffer& offer);

/// POST /v1/workers/leave
struct WorkerLeave {
  std::string name;
  bool is_ended = false;  ///< what it has not finished is queued again
};

/// One item of work.
struct WorkerLease {
  std::string id;             ///< names job and attempt
  std::string verb;           ///< "compile" …
  std::string resolved_json;  ///< object: as Job::resolved_json
  std::string inputs_json;    ///< object: {"model":{"digest","size"}} or the members of a package
  std::string tuned_json;     ///< object: what tuning records say of it; "" where that is to be asked for
  int64_t lease_ms = 0;       ///< it is lost when it is not renewed for so long
};

/// POST /v1/workers/leases/{lease}/heartbeat
struct WorkerBeat {
  struct Event {
    std::string type;
    std::string data_json;
  };
  std::optional<std::string> progress_json;
  std::vector<Event> events;
  int64_t log_offset = 0;
  std::string log;  ///< what follows the first `log_offset` bytes
  std::optional<std::string> status_json;
};

struct WorkerBeatAnswer {
  bool held = false;      ///< false: another has the job now, or it has ended
  bool cancel = false;    ///< somebody wants it to end
  int64_t log_bytes = 0;  ///< of the log that this server has: the next part begins there
};

struct WorkerInfo {
  std::string name;
  std::string key;            ///< the name of the key it shows
  std::string state;          ///< "active", "drained" or "revoked"
  bool is_connected = false;  ///< it was heard within a lease's time
  std::string facts_json = "{}";
  std::string status_json = "{}";
  std::vector<std::string> jobs;  ///< that it has now
  Timestamp created_at;
  Timestamp seen_at;
};

/// Thread-safety: all methods from many threads.
class WorkerService {
public:
  virtual ~WorkerService() = default;
  /// Tells an item soon after there is one that fits the offer, the labels and the scopes of the caller's
  /// key; nothing after `wait_s`, for a drained worker, and when the context is cancelled. Throws
  /// Error(kNotSupported) for another protocol or compiler, Error(kForbidden) for labels or verbs that the
  /// key does not grant and for a revoked worker, Error(kNameTaken), Error(kUnavailable).
  virtual void lease(const WorkerOffer& offer, const CallContext& context,
                     Done<std::optional<WorkerLease>> done) = 0;
  /// The worker's requests that wait here get an answer without a lease, all of them before this returns;
  /// when it has ended, its jobs are queued again.
  virtual void leave(const WorkerLeave& leave, const CallContext& context) = 0;
  /// The answer with this lease reached nobody: soon another may have it. Does not wait.
  virtual void take_back(const std::string& lease) = 0;
  /// All below throw Error(kNotFound) for a text that names no lease, Error(kForbidden) for another key's,
  /// Error(kConflict) for one that is over, but for beat(), which tells that.
  virtual WorkerBeatAnswer beat(const std::string& lease, const WorkerBeat& beat,
                                const CallContext& context) = 0;
  /// A blob of the lease's item. Throws Error(kNotFound) for any other.
  virtual std::shared_ptr<http::Content> blob(const std::string& lease, const std::string& digest,
                                              const CallContext& context) = 0;
  /// What tuning records say, now that the kernels of the model are known: {"resolved","tuned"}.
  virtual std::string tuned(const std::string& lease, const std::vector<std::string>& kernels,
                            const CallContext& context) = 0;
  /// How the lease ended: a line of JSON, then the bytes that it announces
  /// (server/services/workers/worker_finish.h). Throws Error(kForeignCode) for a package without the
  /// signature of a trusted key.
  virtual void finish(const std::string& lease, http::BodySource& body, const CallContext& context) = 0;

  /// What came of an item that was carried away (server/services/jobs/carried_work.h), whoever brings it: who
  /// did it has signed it. Throws Error(kForeignCode) without the signature of a trusted key,
  /// Error(kConflict) for a lease that is over, unless it was this request that ended it: with the context's
  /// idempotency key, one that comes again changes nothing.
  virtual void import_results(http::BodySource& body, const CallContext& context) = 0;

  /// By name.
  virtual Page<WorkerInfo> list(const PageQuery& page) = 0;
  /// Throws Error(kNotFound), as the one below.
  virtual WorkerInfo get(const std::string& name) = 0;
  /// "active", "drained" or "revoked": the leases of a revoked worker end at once.
  virtual WorkerInfo set_state(const std::string& name, const std::string& state) = 0;
};

}  // namespace tensormill::services
