/// The catalog in an SQLite file. One process at a time: the file is locked for the life of the object.
/// Thread-safety: as Catalog; one connection that writes behind one mutex, and a few that read beside it: a
/// read sees what was committed when it began and waits for no commit.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "storage/catalog/catalog.h"
#include "storage/env/env.h"

namespace tensormill::storage {

class SqliteDb;
class SqliteReaders;
class Statement;

struct SqliteCatalogOptions {
  /// The catalog's clock, milliseconds since 1970; null: the system's.
  std::function<int64_t()> now_ms = nullptr;
  /// Pages in the write-ahead log after which it is folded into the database.
  int checkpoint_pages = 1000;
};

class SqliteCatalog final : public Catalog {
public:
  /// Opens `path`, creates it when absent, and migrates it. Throws Error(kInUse) when another process has it,
  /// Error(kNotSupported) when it is newer than this program.
  SqliteCatalog(Env& env, const std::string& path, SqliteCatalogOptions options = {});
  ~SqliteCatalog() override;

  bool put_model(const ModelRow& model, const std::optional<NameChange>& name) override;
  std::optional<ModelRow> find_model(const Digest& id) override;
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
  bool pin_package(const Digest& id, bool pinned) override;
  bool remove_package(const Digest& id) override;
  int64_t expire_packages(int64_t unused_ms) override;

  void put_deployment(const DeploymentRow& deployment) override;
  std::optional<DeploymentRow> find_deployment(const std::string& name) override;
  std::vector<DeploymentRow> list_deployments() override;
  bool remove_deployment(const std::string& name) override;

  Submitted submit_job(const JobSubmission& submission) override;
  std::optional<JobRow> find_job(const std::string& id) override;
  Page<JobRow> list_jobs(const JobFilter& filter, const PageRequest& page) override;
  int64_t count_jobs(JobState state) override;
  CancelOutcome cancel_job(const std::string& id, const Submitter& by = {},
                           const std::string& repeat_key = "") override;
  JobRow retry_job(const std::string& id, const Submitter& submitter,
                   const std::string& repeat_key = "") override;

  std::optional<JobRow> claim_job(const std::vector<std::string>& kinds, const std::string& owner,
                                  int64_t lease_ms) override;
  std::optional<int64_t> next_claim_in(const std::vector<std::string>& kinds) override;
  HeartbeatResult heartbeat_job(const JobClaim& claim, int64_t lease_ms,
                                const std::optional<std::string>& progress,
                                const std::vector<JobEventRow>& events) override;
  bool finish_job(const JobClaim& claim, const JobFinish& finish) override;
  bool release_job(const JobClaim& claim, const JobRelease& release) override;
  std::vector<JobRow> requeue_orphans(Orphans which, int64_t backoff_ms) override;
  std::vector<JobEventRow> job_events(const std::string& id, int64_t after, int limit) override;
  std::vector<PlacedEventRow> all_job_events(int64_t after, int limit) override;
  int64_t last_event_position() override;
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

  std::vector<CallerUse> list_uses() override;
  void put_answer(const AnswerRow& answer, int64_t keep_ms) override;
  std::optional<AnswerRow> find_answer(const std::string& caller, const std::string& key,
                                       int64_t keep_ms) override;
  void put_key(const ApiKeyRow& key) override;
  std::vector<ApiKeyRow> list_keys() override;
  bool remove_key(const std::string& name) override;
  void put_audit(const std::vector<AuditRow>& rows, const AuditBounds& bounds) override;
  Page<AuditRow> list_audit(const AuditFilter& filter, const PageRequest& page) override;
  std::vector<Digest> referenced_blobs() override;
  std::vector<Digest> referenced_among(const std::vector<Digest>& blobs) override;
  std::vector<std::string> check() override;

private:
  // With any connection.
  static ModelRow read_model(SqliteDb& db, const Statement& row);
  static PackageRow read_package(SqliteDb& db, const Statement& row);
  static DeploymentRow read_deployment(SqliteDb& db, const Statement& row);
  static std::optional<JobRow> read_job(SqliteDb& db, const std::string& id);

  // All below: with the mutex held, inside the caller's transaction.
  bool insert_model(const ModelRow& model);
  void point_name(const NameChange& name, const Digest& id);
  bool insert_package(const PackageRow& package);
  void require_row(std::string_view table, std::string_view what, const std::optional<Digest>& id);
  /// Whether the key was noted for this; notes it otherwise.
  bool is_repeat(const std::string& caller, const std::string& key, const std::string& what);
  JobRow require_job(const std::string& id);
  std::optional<Submitted> repeat_of(const JobSubmission& submission);
  std::optional<Submitted> reuse_of(const JobSubmission& submission);
  std::string insert_job(const JobSubmission& submission);
  void check_bound(const Submitter& submitter);
  void add_submitter(const std::string& job, const std::string& caller);
  int64_t remove_audit(int64_t excess, bool of_strangers);
  int64_t insert_tuning_records(const std::vector<TuningRecordRow>& records);
  void add_event(const std::string& job, const JobEventRow& event);
  void add_state_events(const std::string& job, JobState state, int attempt);

  std::unique_ptr<EnvLock> lock_;
  std::mutex mutex_;
  std::unique_ptr<SqliteDb> db_;
  std::unique_ptr<SqliteReaders> readers_;  ///< after the writer, so that they close before it
};

}  // namespace tensormill::storage
