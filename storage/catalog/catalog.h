/// Names, ids and states, durably: the store's database, behind an interface that knows no SQL. Every method
/// is one transaction; when it has returned, its effect survives kill -9 and a power cut. It must be called
/// only after the blobs that its rows name are durable (publish order). Errors: Error(kDiskFull), Error(kIo),
/// Error(kCorrupt) from any method; others as stated. After an I/O error the effect of the method is unknown:
/// it may appear after a restart. Thread-safety: all methods from many threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/catalog/rows.h"
#include "storage/catalog/shared_catalog.h"

namespace tensormill::storage {

/// One attempt at a job by one worker. Whoever holds a stale claim changes nothing.
struct JobClaim {
  std::string id;
  int attempt = 0;
  std::string owner;
};

/// Who has a job made.
struct Submitter {
  std::string name = {};
  int64_t max_live = 0;  ///< jobs that this caller may have queued and running; 0: no bound
  bool is_admin = true;  ///< may cancel and retry what others submitted
};

struct JobSubmission {
  std::string kind;
  std::string subject;
  std::string action_key;  ///< what makes two submissions the same work
  std::string request = "{}";
  std::string resolved = "{}";
  int priority = 0;  ///< higher first
  int max_attempts = 3;
  bool force = false;           ///< neither joins a live job nor takes a cached result
  bool reuse_result = true;     ///< false: joins live jobs only
  int64_t max_queued = 0;       ///< Error(kUnavailable) when as many are queued; 0: no bound
  std::string idempotency_key;  ///< "" for none
  std::string request_hash;     ///< of the body that came with the key
  int64_t idempotency_ms = 86'400'000;
  Submitter submitter = {};  ///< joining a live job takes nothing of its bound
  /// Asked, within the transaction, whether a succeeded job's result is still whole; null: it is when its
  /// package row is there. Must not call the catalog.
  std::function<bool(const JobRow&)> still_whole = nullptr;
  /// What the job works on. It must be there when the job is made, else Error(kNotFound) naming it, and a
  /// model or a package cannot be removed while the job is live.
  std::vector<Digest> needs_models = {};
  std::optional<Digest> needs_package = std::nullopt;
  std::optional<Digest> needs_set = std::nullopt;  ///< of tuning records; it may be removed later
  /// Blobs that its request names: rows name them (referenced_blobs) while the job is live, and, with
  /// keeps_blobs, as long as there is a row of the job. Whoever submits it holds them until then.
  std::vector<Digest> needs_blobs = {};
  bool keeps_blobs = false;
  /// Which workers may claim it: those that name this text, which the catalog does not read. "": those that
  /// ask nothing of a job but its kind.
  std::string demand = {};
};

enum class SubmitOutcome {
  kCreated,
  kJoined,    ///< a live job of the same action; it has one more submitter
  kCached,    ///< a succeeded job of the same action; its package was touched
  kRepeated,  ///< the job that this idempotency key made
};

struct Submitted {
  JobRow job;
  SubmitOutcome outcome = SubmitOutcome::kCreated;
};

struct HeartbeatResult {
  bool held = false;  ///< false: the claim is stale and the work must stop
  bool cancel_requested = false;
};

struct JobFilter {
  std::optional<JobState> state = std::nullopt;
  std::string kind;     ///< "" = all
  std::string subject;  ///< "" = all
};

struct CancelOutcome {
  JobRow job;
  bool withdrawn_only = false;  ///< other submitters still want it
};

/// How a claim ends well or for good.
struct JobFinish {
  JobState state = JobState::kSucceeded;  ///< a final one
  std::string result;
  std::string error;
  std::optional<Digest> log = std::nullopt;
  /// Published in the same transaction, only if the claim still holds.
  std::optional<PackageRow> package = std::nullopt;
  std::optional<ModelRow> model = std::nullopt;
  std::optional<NameChange> model_name = std::nullopt;
  /// What the job turned out to do, where that was not known when it was submitted: replace the row's.
  std::optional<std::string> resolved = std::nullopt;
  std::optional<std::string> action_key = std::nullopt;
  RepeatKey done = {};  ///< of the request that brought the end; as put_deployment
};

/// How a claim ends with another attempt to come (or, after the last one, as failed with this error).
struct JobRelease {
  std::string error;
  std::optional<Digest> log = std::nullopt;
  int64_t backoff_ms = 0;
  bool counts = true;   ///< false (shutdown): the attempt does not count against max_attempts
  RepeatKey done = {};  ///< as JobFinish
};

enum class Orphans {
  kExpired,  ///< running jobs whose lease is over
  kAtStart,  ///< those that an earlier process may have left: all running jobs where one process alone can
             ///< hold the catalog, but those that workers on other machines hold; and those whose lease is
             ///< over
};

inline constexpr int kMostLosses = 100;

/// A watch of a catalog, for as long as it lives.
class CatalogWatch {
public:
  virtual ~CatalogWatch() = default;
};

class Catalog : public SharedCatalog {
public:
  /// Has `changed` called, from a thread of the watch's own, soon after another process has changed jobs,
  /// events or keys, and now and then although none has. Null where no other process can have the catalog
  /// open. One at a time; the catalog must outlive it.
  virtual std::unique_ptr<CatalogWatch> watch(std::function<void()> changed) = 0;

  /// True when the row is new. Points `name` at the model when given: Error(kNameTaken).
  virtual bool put_model(const ModelRow& model, const std::optional<NameChange>& name) = 0;
  virtual std::optional<ModelRow> find_model(const Digest& id) = 0;
  /// Those of `ids` that are models, sorted.
  virtual std::vector<Digest> models_among(const std::vector<Digest>& ids) = 0;
  /// Newest first.
  virtual Page<ModelRow> list_models(const PageRequest& page) = 0;
  /// False when absent. Throws Error(kInUse) while it is named or the subject of a live job.
  virtual bool remove_model(const Digest& id) = 0;

  virtual void set_name(const NameChange& name, const Digest& id) = 0;
  virtual std::optional<Digest> find_name(const std::string& kind, const std::string& name) = 0;
  /// Sorted by name.
  virtual std::vector<NameRow> list_names(const std::string& kind) = 0;
  virtual std::vector<std::string> names_of(const std::string& kind, const Digest& id) = 0;
  virtual bool remove_name(const std::string& kind, const std::string& name) = 0;

  /// False where it was there: then it has the members given here besides those that it had.
  virtual bool put_package(const PackageRow& package) = 0;
  virtual std::optional<PackageRow> find_package(const Digest& id) = 0;
  /// Newest first, without their members.
  virtual Page<PackageRow> list_packages(const PackageFilter& filter, const PageRequest& page) = 0;
  /// False when absent.
  virtual bool touch_package(const Digest& id) = 0;
  /// What the metadata blobs of the packages hold, so that a list reads no blob; those for which it was not
  /// given yet are not in it.
  virtual std::map<Digest, std::string> package_metadata(const std::vector<Digest>& packages) = 0;
  /// For packages that were put without it; what is there stays, and packages that are not there are left
  /// out.
  virtual void put_package_metadata(const std::map<Digest, std::string>& metadata) = 0;
  virtual bool pin_package(const Digest& id, bool pinned) = 0;
  /// False when absent. Throws Error(kInUse) while it is pinned, named, used by a deployment or what a live
  /// job needs.
  virtual bool remove_package(const Digest& id) = 0;

  /// Removes the packages that were not used for `unused_ms` and that remove_package would not refuse;
  /// returns how many.
  virtual int64_t expire_packages(int64_t unused_ms) = 0;

  /// Returns the new revision. Throws, and changes nothing: Error(kNotFound) when a package that the
  /// deployment did not use before is not there; Error(kConflict) when `after` is given and is not the
  /// revision of what there is (0: there is nothing). Notes in the same transaction that the requests of
  /// `done` were done, for was_done().
  virtual int64_t put_deployment(const DeploymentRow& deployment, std::optional<int64_t> after = std::nullopt,
                                 const std::vector<RepeatKey>& done = {}) = 0;
  virtual std::optional<DeploymentRow> find_deployment(const std::string& name) = 0;
  /// Sorted by name.
  virtual std::vector<DeploymentRow> list_deployments() = 0;
  /// The names of those that use each of the packages, sorted; what none uses is not in it.
  virtual std::map<Digest, std::vector<std::string>> deployments_of(const std::vector<Digest>& packages) = 0;
  virtual int64_t count_deployments() = 0;
  /// With `after`, Error(kConflict) as put_deployment.
  virtual bool remove_deployment(const std::string& name, std::optional<int64_t> after = std::nullopt) = 0;
  /// Another text after each change of any of them.
  virtual std::string deployments_mark() = 0;
  /// Name and revision of each, by name.
  virtual std::vector<std::pair<std::string, int64_t>> deployment_revisions() = 0;

  /// Throws Error(kUnavailable) past max_queued, Error(kQuotaExceeded) past the submitter's bound,
  /// Error(kInvalidArgument) for a used idempotency key with another body.
  virtual Submitted submit_job(const JobSubmission& submission) = 0;
  virtual std::optional<JobRow> find_job(const std::string& id) = 0;
  /// Newest first.
  virtual Page<JobRow> list_jobs(const JobFilter& filter, const PageRequest& page) = 0;
  virtual int64_t count_jobs(JobState state) = 0;
  /// Of all that are queued or running; what there is none of is not in it.
  virtual std::vector<JobCount> count_live_jobs() = 0;
  /// Withdraws one submission of `by`, who submitted the job; an admin who did not withdraws all. The last
  /// one cancels a queued job at once and asks a running one to stop. A cancelled job, and one from which
  /// `by` has withdrawn already, is returned as it is; throws Error(kForbidden) for others' jobs,
  /// Error(kConflict) for one that ended otherwise, Error(kNotFound). With an idempotency key it is done
  /// once: the key is noted in the same transaction, and a call that finds it (put_answer was not reached, or
  /// failed) only tells what the job is now. Throws Error(kInvalidArgument) for a key of another request.
  virtual CancelOutcome cancel_job(const std::string& id, const Submitter& by = {},
                                   const std::string& repeat_key = "") = 0;
  /// A failed or cancelled job becomes queued again with at least one more attempt. Throws Error(kForbidden)
  /// unless it was submitted by this submitter or the submitter is an admin, Error(kConflict) in other states
  /// or when a live job does the same work, Error(kNotFound), Error(kQuotaExceeded).
  /// With a key as cancel_job.
  virtual JobRow retry_job(const std::string& id, const Submitter& submitter,
                           const std::string& repeat_key = "") = 0;

  /// The first queued job of these kinds and demands whose time has come, now running, leased to `owner` for
  /// `lease_ms`.
  virtual std::optional<JobRow> claim_job(const std::vector<std::string>& kinds, const std::string& owner,
                                          int64_t lease_ms,
                                          const std::vector<std::string>& demands = {""}) = 0;
  /// Milliseconds (>= 0) until a queued job of these kinds and demands may be claimed; nothing when none is
  /// queued.
  virtual std::optional<int64_t> next_claim_in(const std::vector<std::string>& kinds,
                                               const std::vector<std::string>& demands = {""}) = 0;
  /// Renews the lease; stores progress (when given) and events only if the claim holds.
  virtual HeartbeatResult heartbeat_job(const JobClaim& claim, int64_t lease_ms,
                                        const std::optional<std::string>& progress,
                                        const std::vector<JobEventRow>& events) = 0;
  /// False, and nothing is changed, when the claim is stale.
  virtual bool finish_job(const JobClaim& claim, const JobFinish& finish) = 0;
  virtual bool release_job(const JobClaim& claim, const JobRelease& release) = 0;
  /// Orphaned jobs become queued again after backoff_ms · 2^(attempt − 1), 2^3 at most, or cancelled when
  /// that was asked for. That their worker was lost is not their fault: it does not count against
  /// max_attempts. But after kMostLosses attempts of any end a job fails: one that ends its worker again and
  /// again must not run for ever. Returns them as they are now.
  virtual std::vector<JobRow> requeue_orphans(Orphans which, int64_t backoff_ms) = 0;
  /// The same at once, and without a backoff, for the running jobs of this owner.
  virtual std::vector<JobRow> requeue_jobs_of(const std::string& owner) = 0;
  /// Events with a sequence above `after`, ascending. State changes are events too: "state", and "end" last.
  virtual std::vector<JobEventRow> job_events(const std::string& id, int64_t after, int limit) = 0;
  /// Events of all jobs with a position above `after`, ascending. No event appears later at or below the last
  /// of them.
  virtual std::vector<PlacedEventRow> all_job_events(int64_t after, int limit) = 0;
  /// Where those begin who want what comes from now on: no event appears later at or below it. 0 while there
  /// is none.
  virtual int64_t last_event_position() = 0;
  /// Removes the jobs that ended more than `age_ms` ago, with their events, but for those whose package is
  /// still there; returns how many.
  virtual int64_t expire_jobs(int64_t age_ms) = 0;

  /// Rows that are there already stay as they are; returns how many are new.
  virtual int64_t put_tuning_records(const std::vector<TuningRecordRow>& records) = 0;
  /// In order of arrival; the page's cursor is the sequence that the records are above.
  virtual Page<TuningRecordRow> list_tuning_records(const TuningFilter& filter, const PageRequest& page) = 0;
  /// For each task the record to use, of those that did not fail: of `threads` before others, then the last
  /// final one, then the one with the least time. In order of task.
  virtual std::vector<TuningRecordRow> best_tuning_records(const TuningFilter& filter, int threads) = 0;
  /// Also puts `records`, of which the set may name older ones too. False when the set was there.
  virtual bool put_tuning_set(const TuningSetRow& set, const std::vector<TuningRecordRow>& records) = 0;
  /// Without its records, which list_tuning_records has.
  virtual std::optional<TuningSetRow> find_tuning_set(const Digest& id) = 0;
  /// With the records that no other set has; false when absent.
  virtual bool remove_tuning_set(const Digest& id) = 0;
  /// Removes the records that are older than `age_ms` and in no set, whose job has ended, but for the best
  /// `kept` of each kernel, target, CPU, number of threads and compiler; returns how many.
  virtual int64_t expire_tuning_records(int64_t age_ms, int64_t kept) = 0;

  /// What is true whenever it is found, such as the kernels of a model under given options; a later value
  /// takes an earlier one's place.
  virtual void put_fact(const std::string& key, const std::string& value) = 0;
  virtual std::optional<std::string> find_fact(const std::string& key) = 0;

  /// Whether the request was noted as done within the last day. Throws Error(kInvalidArgument) for a key of
  /// another request.
  virtual bool was_done(const RepeatKey& repeat) = 0;

  /// Of all callers who have anything, sorted by caller. Reads the live jobs and a row of each caller.
  virtual std::vector<CallerUse> list_uses() = 0;
  /// Of all callers together, under the name ''. Costs the same whatever there is but live jobs.
  virtual CallerUse sum_uses() = 0;
  /// Takes the place of an earlier one of the same caller and key; those older than `keep_ms` go.
  virtual void put_answer(const AnswerRow& answer, int64_t keep_ms) = 0;
  /// Unless it is older than `keep_ms`.
  virtual std::optional<AnswerRow> find_answer(const std::string& caller, const std::string& key,
                                               int64_t keep_ms) = 0;

  /// A worker of this name was heard: replaces its facts and status, or makes it, active. Workers that were
  /// not heard for `keep_ms` go, unless they are revoked. Returns the row as it is now. Throws
  /// Error(kNameTaken) for a name that another caller's worker has.
  virtual WorkerRow put_worker(const WorkerRow& worker, int64_t keep_ms) = 0;
  virtual std::optional<WorkerRow> find_worker(const std::string& name) = 0;
  /// Sorted by name.
  virtual std::vector<WorkerRow> list_workers() = 0;
  /// False when absent.
  virtual bool set_worker_state(const std::string& name, const std::string& state) = 0;

  /// Throws Error(kNameTaken) when there is a key of that name.
  virtual void put_key(const ApiKeyRow& key) = 0;
  /// Sorted by name.
  virtual std::vector<ApiKeyRow> list_keys() = 0;
  /// False when absent.
  virtual bool remove_key(const std::string& name) = 0;
  /// Appends the rows, whose sequences it gives, and removes what is past the bounds.
  virtual void put_audit(const std::vector<AuditRow>& rows, const AuditBounds& bounds) = 0;
  /// Newest first.
  virtual Page<AuditRow> list_audit(const AuditFilter& filter, const PageRequest& page) = 0;

  /// Every blob that a row names, sorted, each once: what garbage collection must keep.
  virtual std::vector<Digest> referenced_blobs() = 0;
  /// How many those are, of which none leaves the database.
  virtual uint64_t count_referenced_blobs() = 0;
  /// Those of `blobs`, sorted and each once, that a row names; sorted. A back end that looks each up
  /// overrides this, which reads all.
  virtual std::vector<Digest> referenced_among(const std::vector<Digest>& blobs) {
    const std::vector<Digest> named = referenced_blobs();
    std::vector<Digest> both;
    std::set_intersection(blobs.begin(), blobs.end(), named.begin(), named.end(), std::back_inserter(both));
    return both;
  }

  /// Bytes that the database takes now, with its indexes and without what it can write over.
  virtual uint64_t database_bytes() = 0;

  /// What is wrong with the database itself, one sentence each; empty when it is whole. Reads all of it.
  virtual std::vector<std::string> check() = 0;
};

}  // namespace tensormill::storage
