/// The catalog in any database that speaks SQL: all that is asked, checked and written, once for each back
/// end. A back end says how a transaction is made, and where its SQL differs. Thread-safety: as Catalog.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage/catalog/catalog.h"

namespace tensormill::storage {

class SqlDb;
class SqlStatement;

class SqlCatalog : public Catalog {
public:
  bool put_model(const ModelRow& model, const std::optional<NameChange>& name) override;
  std::optional<ModelRow> find_model(const Digest& id) override;
  std::vector<Digest> models_among(const std::vector<Digest>& ids) override;
  Page<ModelRow> list_models(const PageRequest& page) override;
  bool remove_model(const Digest& id) override;

  void set_name(const NameChange& name, const Digest& id) override;
  std::optional<Digest> find_name(const std::string& kind, const std::string& name) override;
  std::vector<NameRow> list_names(const std::string& kind) override;
  std::vector<std::string> names_of(const std::string& kind, const Digest& id) override;
  bool remove_name(const std::string& kind, const std::string& name) override;

  bool put_package(const PackageRow& package) override;
  std::optional<PackageRow> find_package(const Digest& id) override;
  Page<PackageRow> list_packages(const PackageFilter& filter, const PageRequest& page) override;
  bool touch_package(const Digest& id) override;
  std::map<Digest, std::string> package_metadata(const std::vector<Digest>& packages) override;
  void put_package_metadata(const std::map<Digest, std::string>& metadata) override;
  bool pin_package(const Digest& id, bool pinned) override;
  bool remove_package(const Digest& id) override;
  int64_t expire_packages(int64_t unused_ms) override;

  int64_t put_deployment(const DeploymentRow& deployment, std::optional<int64_t> after = std::nullopt,
                         const std::vector<RepeatKey>& done = {}) override;
  std::optional<DeploymentRow> find_deployment(const std::string& name) override;
  std::vector<DeploymentRow> list_deployments() override;
  std::map<Digest, std::vector<std::string>> deployments_of(const std::vector<Digest>& packages) override;
  int64_t count_deployments() override;
  bool remove_deployment(const std::string& name, std::optional<int64_t> after = std::nullopt) override;
  std::string deployments_mark() override;
  std::vector<std::pair<std::string, int64_t>> deployment_revisions() override;

  Submitted submit_job(const JobSubmission& submission) override;
  std::optional<JobRow> find_job(const std::string& id) override;
  Page<JobRow> list_jobs(const JobFilter& filter, const PageRequest& page) override;
  int64_t count_jobs(JobState state) override;
  std::vector<JobCount> count_live_jobs() override;
  CancelOutcome cancel_job(const std::string& id, const Submitter& by = {},
                           const std::string& repeat_key = "") override;
  JobRow retry_job(const std::string& id, const Submitter& submitter,
                   const std::string& repeat_key = "") override;

  std::optional<JobRow> claim_job(const std::vector<std::string>& kinds, const std::string& owner,
                                  int64_t lease_ms, const std::vector<std::string>& demands = {""}) override;
  std::optional<int64_t> next_claim_in(const std::vector<std::string>& kinds,
                                       const std::vector<std::string>& demands = {""}) override;
  HeartbeatResult heartbeat_job(const JobClaim& claim, int64_t lease_ms,
                                const std::optional<std::string>& progress,
                                const std::vector<JobEventRow>& events) override;
  bool finish_job(const JobClaim& claim, const JobFinish& finish) override;
  bool release_job(const JobClaim& claim, const JobRelease& release) override;
  std::vector<JobRow> requeue_orphans(Orphans which, int64_t backoff_ms) override;
  std::vector<JobRow> requeue_jobs_of(const std::string& owner) override;
  std::vector<JobEventRow> job_events(const std::string& id, int64_t after, int limit) override;
  std::vector<PlacedEventRow> all_job_events(int64_t after, int limit) override;
  int64_t expire_jobs(int64_t age_ms) override;

  int64_t put_tuning_records(const std::vector<TuningRecordRow>& records) override;
  Page<TuningRecordRow> list_tuning_records(const TuningFilter& filter, const PageRequest& page) override;
  std::vector<TuningRecordRow> best_tuning_records(const TuningFilter& filter, int threads) override;
  bool put_tuning_set(const TuningSetRow& set, const std::vector<TuningRecordRow>& records) override;
  std::optional<TuningSetRow> find_tuning_set(const Digest& id) override;
  bool remove_tuning_set(const Digest& id) override;
  int64_t expire_tuning_records(int64_t age_ms, int64_t kept) override;
  void put_fact(const std::string& key, const std::string& value) override;
  std::optional<std::string> find_fact(const std::string& key) override;

  bool was_done(const RepeatKey& repeat) override;
  std::vector<CallerUse> list_uses() override;
  CallerUse sum_uses() override;
  void put_answer(const AnswerRow& answer, int64_t keep_ms) override;
  std::optional<AnswerRow> find_answer(const std::string& caller, const std::string& key,
                                       int64_t keep_ms) override;
  WorkerRow put_worker(const WorkerRow& worker, int64_t keep_ms) override;
  std::optional<WorkerRow> find_worker(const std::string& name) override;
  std::vector<WorkerRow> list_workers() override;
  bool set_worker_state(const std::string& name, const std::string& state) override;
  void put_key(const ApiKeyRow& key) override;
  std::vector<ApiKeyRow> list_keys() override;
  bool remove_key(const std::string& name) override;
  void put_audit(const std::vector<AuditRow>& rows, const AuditBounds& bounds) override;
  Page<AuditRow> list_audit(const AuditFilter& filter, const PageRequest& page) override;
  std::vector<Digest> referenced_blobs() override;
  uint64_t count_referenced_blobs() override;
  std::vector<Digest> referenced_among(const std::vector<Digest>& blobs) override;

  void begin_replica(const ReplicaRow& replica, int64_t lease_ms) override;
  bool renew_replica(const std::string& id, int64_t lease_ms) override;
  void end_replica(const std::string& id) override;
  std::vector<ReplicaRow> list_replicas() override;
  int64_t expire_replicas(int64_t age_ms) override;
  void require_blobs() override { requires_blobs_ = true; }
  std::optional<BlobRow> put_blob(const BlobRow& blob) override;
  std::optional<BlobRow> find_blob(const Digest& digest) override;
  std::vector<BlobRow> list_blobs() override;
  BlobSums sum_blobs() override;
  bool has_blobs() override;
  bool touch_blob(const Digest& digest) override;
  int64_t begin_blob_hold(const std::string& replica) override;
  void end_blob_hold(int64_t hold) override;
  void end_unknown_holds(const std::string& replica, const std::vector<int64_t>& known) override;
  std::optional<int64_t> oldest_blob_hold(const std::string& replica) override;
  std::vector<Digest> begin_blob_removal(std::span<const Digest> blobs, int64_t oldest,
                                         const std::string& replica, bool mark) override;
  void end_blob_removal(std::span<const Digest> blobs, std::span<const Digest> gone,
                        const std::string& replica) override;
  UploadRow begin_upload(const UploadRow& upload, int64_t max_uploads) override;
  std::optional<UploadRow> find_upload(const std::string& id) override;
  std::vector<UploadRow> list_uploads() override;
  void add_chunk(const std::string& upload, const ChunkRow& chunk) override;
  std::vector<ChunkRow> list_chunks(const std::string& upload) override;
  bool finish_upload(const std::string& id, uint64_t size, const Digest& blob, int64_t since_ms) override;
  bool remove_upload(const std::string& id) override;
  UploadSums sum_uploads() override;
  std::vector<Digest> upload_blobs() override;
  std::optional<int64_t> append_log(const std::string& job, int attempt, int64_t position,
                                    std::string_view text) override;
  std::string read_log(const std::string& job, int attempt, int64_t position, size_t most) override;
  void put_observed(std::span<const ObservedRow> rows) override;
  std::vector<ObservedRow> list_observed(const std::string& deployment) override;
  std::vector<ObservedRow> observed_by(const std::string& replica) override;

protected:
  /// What is between transactions that run at the same time.
  enum class Isolation {
    kSerial,  ///< they seem to run one after the other: what one looked for is still so when it commits
    kRows,    ///< they do not change the same row at once: for what is one conditional change of a row
  };
  using Work = std::function<void(SqlDb&)>;

  /// Runs `work` in a transaction that writes. When it has returned, its effect is durable; when it throws,
  /// there is none. May run `work` several times, of which all but the last are undone.
  virtual void run_write(Isolation isolation, const Work& work) = 0;
  /// Runs `work`, which changes nothing, on what is committed.
  virtual void run_read(const Work& work) = 0;

  // Where back ends differ.
  /// Adds an event to a job that this transaction has changed; `first`: the job is new and has none.
  virtual void add_event(SqlDb& db, const std::string& job, const JobEventRow& event, bool first) = 0;
  /// "" or a condition on job_events, beginning with AND: its event and all before it are committed.
  virtual std::string_view settled_events() const { return ""; }
  /// Whether other processes may have the catalog open, and run jobs of it.
  virtual bool is_shared() const = 0;
  /// SQL of a number that is larger than all that it gave to what is still there.
  virtual std::string_view next_moment() const = 0;
  /// Called when what other processes keep in memory (jobs, keys) has changed and that is durable.
  virtual void tell_others() {}

  template <typename Function>
  auto write(Isolation isolation, const Function& function) {
    return in([&](const Work& work) { run_write(isolation, work); }, function);
  }
  template <typename Function>
  auto write(const Function& function) {
    return write(Isolation::kSerial, function);
  }
  template <typename Function>
  auto read(const Function& function) {
    return in([&](const Work& work) { run_read(work); }, function);
  }

private:
  template <typename Run, typename Function>
  static auto in(const Run& run, const Function& function) {
    using Result = std::invoke_result_t<Function, SqlDb&>;
    if constexpr (std::is_void_v<Result>) {
      run([&](SqlDb& db) { function(db); });
    } else {
      std::optional<Result> result;
      run([&](SqlDb& db) { result.emplace(function(db)); });
      return std::move(*result);
    }
  }

  static ModelRow read_model(SqlDb& db, const SqlStatement& row);
  /// Without its members.
  static PackageRow read_package(const SqlStatement& row);
  static void read_members(SqlDb& db, PackageRow& package);
  static DeploymentRow read_deployment(SqlDb& db, const SqlStatement& row);
  static std::optional<JobRow> read_job(SqlDb& db, const std::string& id);

  /// Changes of kept sums that are added up one by one before they are made one.
  static constexpr int64_t kUnfolded = 1'000;
  /// Where more have come since, make one row of a caller's changes, and of those of blobs.
  void fold_uses();
  void fold_blobs();

  // All below: in a transaction that writes.
  static void require_revision(SqlDb& db, const std::string& name, const std::optional<int64_t>& after);
  /// What a row is about to name is kept by holds from now on; see require_blobs.
  void touch_named(SqlDb& db, std::span<const Digest> blobs);
  bool insert_model(SqlDb& db, const ModelRow& model);
  static void point_name(SqlDb& db, const NameChange& name, const Digest& id);
  bool insert_package(SqlDb& db, const PackageRow& package);
  static void require_row(SqlDb& db, std::string_view table, std::string_view what,
                          const std::optional<Digest>& id);
  static bool is_noted(SqlDb& db, const RepeatKey& repeat);
  static void note_done(SqlDb& db, const RepeatKey& repeat);
  /// Whether the request was noted; notes it otherwise.
  static bool is_repeat(SqlDb& db, const RepeatKey& repeat);
  static JobRow require_job(SqlDb& db, const std::string& id);
  static std::optional<Submitted> repeat_of(SqlDb& db, const JobSubmission& submission);
  static std::optional<Submitted> reuse_of(SqlDb& db, const JobSubmission& submission);
  std::string insert_job(SqlDb& db, const JobSubmission& submission);
  static void check_bound(SqlDb& db, const Submitter& submitter);
  void add_needs(SqlDb& db, const std::string& job, const JobSubmission& submission);
  static void add_submitter(SqlDb& db, const std::string& job, const std::string& caller);
  static int64_t remove_audit(SqlDb& db, int64_t excess, bool of_strangers);
  static int64_t insert_tuning_records(SqlDb& db, const std::vector<TuningRecordRow>& records);
  static JobEventRow state_event(JobState state, int attempt);
  void add_state_events(SqlDb& db, const std::string& job, JobState state, int attempt);
  JobRow requeue(SqlDb& db, const JobRow& job, int64_t backoff_ms);

  bool requires_blobs_ = false;  ///< set before others have the object
};

}  // namespace tensormill::storage
