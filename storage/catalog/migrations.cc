#include "storage/catalog/migrations.h"

#include <array>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

/// "TMil" in ASCII, so that another program's database is not taken for ours.
constexpr int64_t kApplicationId = 0x544d696c;

constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE models(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  facts TEXT NOT NULL,
  created_ms INTEGER NOT NULL);
CREATE TABLE model_blobs(
  model TEXT NOT NULL REFERENCES models(id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY(model, position));

CREATE TABLE names(
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  id TEXT NOT NULL,
  updated_ms INTEGER NOT NULL,
  PRIMARY KEY(kind, name));
CREATE INDEX names_by_id ON names(id);

CREATE TABLE packages(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  archive TEXT NOT NULL,
  archive_bytes INTEGER NOT NULL,
  facts TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  last_used_ms INTEGER NOT NULL,
  pinned INTEGER NOT NULL);
CREATE TABLE package_members(
  package TEXT NOT NULL REFERENCES packages(id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY(package, position));

CREATE TABLE deployments(
  name TEXT PRIMARY KEY NOT NULL,
  desired TEXT NOT NULL,
  versions TEXT NOT NULL,
  updated_ms INTEGER NOT NULL);
CREATE TABLE deployment_packages(
  deployment TEXT NOT NULL REFERENCES deployments(name) ON DELETE CASCADE,
  package TEXT NOT NULL,
  PRIMARY KEY(deployment, package));
CREATE TABLE deployment_blobs(
  deployment TEXT NOT NULL REFERENCES deployments(name) ON DELETE CASCADE,
  digest TEXT NOT NULL,
  PRIMARY KEY(deployment, digest));
CREATE INDEX deployment_packages_by_package ON deployment_packages(package);

-- live_key is the action key while the job is queued or running and may be joined, else NULL.
CREATE TABLE jobs(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  action_key TEXT NOT NULL,
  live_key TEXT UNIQUE,
  state TEXT NOT NULL,
  request TEXT NOT NULL,
  resolved TEXT NOT NULL,
  progress TEXT NOT NULL,
  result TEXT NOT NULL,
  error TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  submitters INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  owner TEXT NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  not_before_ms INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL,
  log TEXT,
  package TEXT);
CREATE INDEX jobs_by_state ON jobs(state, priority, seq);
CREATE INDEX jobs_by_action ON jobs(action_key, state);
CREATE INDEX jobs_by_subject ON jobs(subject);
CREATE TABLE job_events(
  job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY(job, seq));

CREATE TABLE idempotency(
  key TEXT PRIMARY KEY NOT NULL,
  request_hash TEXT NOT NULL,
  job TEXT NOT NULL,
  created_ms INTEGER NOT NULL);
)sql";

/// Tuning records, the sets that they were imported or found as, and facts that cost much to find again.
constexpr std::string_view kVersion2 = R"sql(
CREATE TABLE tuning_records(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  task TEXT NOT NULL,
  target TEXT NOT NULL,
  cpu TEXT NOT NULL,
  threads INTEGER NOT NULL,
  generator TEXT NOT NULL,
  imported INTEGER NOT NULL,
  job TEXT NOT NULL,
  time_ns INTEGER NOT NULL,
  final INTEGER NOT NULL,
  line TEXT NOT NULL,
  created_ms INTEGER NOT NULL);
CREATE INDEX tuning_records_by_key ON tuning_records(task, target, cpu, threads, generator);
CREATE INDEX tuning_records_by_target ON tuning_records(target, cpu, generator);
CREATE TABLE tuning_sets(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL,
  created_ms INTEGER NOT NULL);
CREATE TABLE tuning_set_records(
  tuning_set TEXT NOT NULL REFERENCES tuning_sets(id) ON DELETE CASCADE,
  record TEXT NOT NULL REFERENCES tuning_records(id),
  PRIMARY KEY(tuning_set, record));
CREATE INDEX tuning_set_records_by_record ON tuning_set_records(record);
CREATE TABLE facts(
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL,
  created_ms INTEGER NOT NULL);
)sql";

/// Events have a place among those of all jobs; a counter gives it, so that none is used twice.
constexpr std::string_view kVersion3 = R"sql(
ALTER TABLE job_events ADD COLUMN position INTEGER;
UPDATE job_events SET position = rowid;
CREATE UNIQUE INDEX job_events_by_position ON job_events(position);
CREATE TABLE counters(
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL);
INSERT INTO counters SELECT 'job_events', COALESCE(MAX(position), 0) FROM job_events;
CREATE INDEX jobs_by_end ON jobs(state, finished_ms);
)sql";

/// Whose models, packages and jobs they are; answers to requests with an idempotency key.
constexpr std::string_view kVersion4 = R"sql(
ALTER TABLE models ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE models ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE packages ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN submitter TEXT NOT NULL DEFAULT '';
CREATE TABLE answers(
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  answer TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY(caller, key));
CREATE INDEX answers_by_age ON answers(created_ms);
)sql";

/// API keys beside the key file, who changed what, and which callers have a job made and how often each.
constexpr std::string_view kKeysAndAudit = R"sql(
CREATE TABLE api_keys(
  name TEXT PRIMARY KEY NOT NULL,
  scopes TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL);
CREATE TABLE audit(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  ts_ms INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  caller TEXT NOT NULL,
  peer TEXT NOT NULL,
  client TEXT NOT NULL,
  method TEXT NOT NULL,
  target TEXT NOT NULL,
  status INTEGER NOT NULL);
CREATE INDEX audit_by_time ON audit(ts_ms);
CREATE INDEX audit_by_caller ON audit(caller, seq);
INSERT INTO counters VALUES('audit', 0);
CREATE TABLE job_submitters(
  job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  caller TEXT NOT NULL,
  wanted INTEGER NOT NULL,
  PRIMARY KEY(job, caller));
INSERT INTO job_submitters SELECT id, submitter, submitters FROM jobs;
)sql";

/// What lists are filtered by, an index for each way in which rows are looked for, and the package that a job
/// needs, which must not go while the job is live.
constexpr std::string_view kIndices = R"sql(
ALTER TABLE packages ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE packages ADD COLUMN target TEXT NOT NULL DEFAULT '';
UPDATE packages SET model = COALESCE(json_extract(facts, '$.model'), ''),
  target = COALESCE(json_extract(facts, '$.target'), '') WHERE json_valid(facts);
CREATE INDEX packages_by_model ON packages(model, seq);
CREATE INDEX packages_by_target ON packages(target, seq);
CREATE INDEX packages_by_owner ON packages(owner, archive_bytes);
CREATE INDEX models_by_owner ON models(owner, bytes);
CREATE INDEX model_blobs_by_digest ON model_blobs(digest);
CREATE INDEX package_members_by_digest ON package_members(digest);
CREATE INDEX deployment_blobs_by_digest ON deployment_blobs(digest);
ALTER TABLE jobs ADD COLUMN needs TEXT;
CREATE INDEX jobs_by_needs ON jobs(needs) WHERE needs IS NOT NULL;
CREATE INDEX jobs_by_log ON jobs(log) WHERE log IS NOT NULL;
CREATE INDEX jobs_by_package ON jobs(package) WHERE package IS NOT NULL;
CREATE INDEX jobs_listed_by_state ON jobs(state, seq);
CREATE INDEX jobs_listed_by_kind ON jobs(kind, seq);
DROP INDEX jobs_by_subject;
CREATE INDEX jobs_listed_by_subject ON jobs(subject, seq);
)sql";

/// The order in which jobs are claimed, of those alone that wait: a claim reads one row, however many there
/// are.
constexpr std::string_view kClaims = R"sql(
CREATE INDEX jobs_to_claim ON jobs(priority DESC, seq) WHERE state = 'queued';
DROP INDEX jobs_by_state;
)sql";

/// Processes on other machines that do jobs, and which of them a job is for; and what processes that share a
/// catalog tell each other. Those tables of an SQLite file stay empty: one process has it.
constexpr std::string_view kFleet = R"sql(
ALTER TABLE jobs ADD COLUMN demand TEXT NOT NULL DEFAULT '';
CREATE TABLE workers(
  name TEXT PRIMARY KEY NOT NULL,
  caller TEXT NOT NULL,
  facts TEXT NOT NULL,
  status TEXT NOT NULL,
  state TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  seen_ms INTEGER NOT NULL);
-- Processes that serve from one catalog, and what is true of one of them.
CREATE TABLE replicas(
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL UNIQUE,
  address TEXT NOT NULL,
  began_ms INTEGER NOT NULL,
  lease_until_ms INTEGER NOT NULL);
-- form -1: being stored for the first time. touched: see next_moment. remover: the replica that removes it, or ''.
CREATE TABLE blobs(
  digest TEXT PRIMARY KEY NOT NULL,
  form INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL,
  touched INTEGER NOT NULL,
  remover TEXT NOT NULL);
CREATE INDEX blobs_by_touch ON blobs(touched);
CREATE TABLE blob_holds(
  id INTEGER PRIMARY KEY NOT NULL,
  replica TEXT NOT NULL);
CREATE INDEX blob_holds_by_replica ON blob_holds(replica);
CREATE TABLE uploads(
  id TEXT PRIMARY KEY NOT NULL,
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  blob TEXT,
  blob_bytes INTEGER NOT NULL);
CREATE TABLE upload_chunks(
  upload TEXT NOT NULL REFERENCES uploads(id) ON DELETE CASCADE,
  begin_at INTEGER NOT NULL,
  size INTEGER NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY(upload, begin_at));
-- Logs of attempts that run now.
CREATE TABLE job_logs(
  job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  position INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY(job, attempt, position));
CREATE TABLE observed(
  deployment TEXT NOT NULL REFERENCES deployments(name) ON DELETE CASCADE,
  replica TEXT NOT NULL,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY(deployment, replica));
CREATE INDEX observed_by_replica ON observed(replica);
ALTER TABLE deployments ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
)sql";

/// What jobs need beside their subject and package: blobs that their requests name, and further models. Jobs
/// that were made before have what their requests say.
constexpr std::string_view kNeedsOfJobs = R"sql(
CREATE TABLE job_needs(
  job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  digest TEXT NOT NULL,
  kept INTEGER NOT NULL,
  PRIMARY KEY(job, kind, digest));
CREATE INDEX job_needs_by_digest ON job_needs(digest, kind);
INSERT OR IGNORE INTO job_needs SELECT id, 'blob', json_extract(resolved, '$.inputs'), kind = 'report' FROM jobs
  WHERE kind IN ('report', 'run') AND json_extract(resolved, '$.inputs') IS NOT NULL;
INSERT OR IGNORE INTO job_needs SELECT id, 'blob', json_extract(resolved, '$.labels'), 1 FROM jobs
  WHERE kind = 'report' AND json_extract(resolved, '$.labels') IS NOT NULL;
)sql";

/// What lists show of packages, beside them, so that what looks at the packages does not read it. Packages
/// that were put before get it when they are first listed.
constexpr std::string_view kMetadata = R"sql(
CREATE TABLE package_metadata(
  package TEXT PRIMARY KEY NOT NULL REFERENCES packages(id) ON DELETE CASCADE,
  text TEXT NOT NULL);
)sql";

/// Sums that are asked for again and again, kept by whatever statement changes what they are of. Each change
/// adds a row, which waits for nobody's; fold_sums() makes one of many.
constexpr std::string_view kSums = R"sql(
-- Of models and packages.
CREATE TABLE caller_sums(
  caller TEXT NOT NULL,
  bytes INTEGER NOT NULL);
INSERT INTO caller_sums SELECT owner, SUM(bytes) FROM (
  SELECT owner, bytes FROM models UNION ALL SELECT owner, archive_bytes FROM packages) WHERE owner <> '' GROUP BY owner;
CREATE TRIGGER model_counted AFTER INSERT ON models WHEN NEW.owner <> '' BEGIN
  INSERT INTO caller_sums VALUES(NEW.owner, NEW.bytes);
END;
CREATE TRIGGER model_uncounted AFTER DELETE ON models WHEN OLD.owner <> '' BEGIN
  INSERT INTO caller_sums VALUES(OLD.owner, -OLD.bytes);
END;
CREATE TRIGGER package_counted AFTER INSERT ON packages WHEN NEW.owner <> '' BEGIN
  INSERT INTO caller_sums VALUES(NEW.owner, NEW.archive_bytes);
END;
CREATE TRIGGER package_uncounted AFTER DELETE ON packages WHEN OLD.owner <> '' BEGIN
  INSERT INTO caller_sums VALUES(OLD.owner, -OLD.archive_bytes);
END;
-- Of the blobs that have a form.
CREATE TABLE blob_sums(
  blobs INTEGER NOT NULL,
  compressed INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL);
INSERT INTO blob_sums SELECT COUNT(*), COALESCE(SUM(form = 1), 0), COALESCE(SUM(stored_bytes), 0)
  FROM blobs WHERE form >= 0;
CREATE TRIGGER blob_counted AFTER INSERT ON blobs WHEN NEW.form >= 0 BEGIN
  INSERT INTO blob_sums VALUES(1, NEW.form = 1, NEW.stored_bytes);
END;
CREATE TRIGGER blob_uncounted AFTER DELETE ON blobs WHEN OLD.form >= 0 BEGIN
  INSERT INTO blob_sums VALUES(-1, -(OLD.form = 1), -OLD.stored_bytes);
END;
CREATE TRIGGER blob_recounted AFTER UPDATE OF form, stored_bytes ON blobs
  WHEN OLD.form <> NEW.form OR OLD.stored_bytes <> NEW.stored_bytes BEGIN
  INSERT INTO blob_sums VALUES(
    (NEW.form >= 0) - (OLD.form >= 0), (NEW.form = 1) - (OLD.form = 1),
    (NEW.form >= 0) * NEW.stored_bytes - (OLD.form >= 0) * OLD.stored_bytes);
END;
ALTER TABLE uploads ADD COLUMN chunk_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE uploads SET chunk_bytes = (SELECT COALESCE(SUM(size), 0) FROM upload_chunks WHERE upload = uploads.id);
CREATE TRIGGER chunk_counted AFTER INSERT ON upload_chunks BEGIN
  UPDATE uploads SET chunk_bytes = chunk_bytes + NEW.size WHERE id = NEW.upload;
END;
CREATE TRIGGER chunk_uncounted AFTER DELETE ON upload_chunks BEGIN
  UPDATE uploads SET chunk_bytes = chunk_bytes - OLD.size WHERE id = OLD.upload;
END;
)sql";

constexpr std::array<std::string_view, 11> kMigrations = {kVersion1,     kVersion2, kVersion3, kVersion4,
                                                          kKeysAndAudit, kIndices,  kClaims,   kFleet,
                                                          kNeedsOfJobs,  kMetadata, kSums};

int64_t pragma(SqliteDb& db, std::string_view name) {
  const auto row = db.query("PRAGMA " + std::string(name));
  return row->step() ? row->integer(0) : 0;
}

}  // namespace

std::span<const std::string_view> catalog_migrations() { return kMigrations; }

void migrate(SqliteDb& db) {
  const int64_t newest = static_cast<int64_t>(kMigrations.size());
  int64_t version = pragma(db, "user_version");
  const int64_t application = pragma(db, "application_id");
  if (version > newest) {
    throw Error(ErrorCode::kNotSupported, "the catalog has version " + std::to_string(version) +
                                              ", this program knows versions up to " +
                                              std::to_string(newest));
  }
  const bool foreign = version == 0 ? application != 0 : application != kApplicationId;
  if (foreign) {
    throw Error(ErrorCode::kNotSupported,
                "the database is not a catalog: application id " + std::to_string(application));
  }
  if (version == newest) return;
  // All or none: no cut of the power leaves a version in between.
  Transaction transaction(db);
  for (; version < newest; ++version) db.execute(kMigrations[static_cast<size_t>(version)]);
  db.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  db.execute("PRAGMA user_version = " + std::to_string(newest));
  transaction.commit();
}

}  // namespace tensormill::storage
