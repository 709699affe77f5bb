// Jobs as their workers see them. Each change by a worker is one conditional UPDATE on id, attempt and owner.
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/catalog/sqlite_job_row.h"
#include "storage/catalog/sqlite_readers.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kHeld = " WHERE id = ? AND attempt = ? AND owner = ? AND state = 'running'";

/// "?, ?, ?" for an IN list.
std::string marks(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}

std::string last_attempt_error(int attempt) {
  return R"({"code":"job_failed","message":"the worker was lost in attempt )" + std::to_string(attempt) +
         R"(, the last one allowed"})";
}

/// Backoff doubles with each attempt, for ten at most.
int64_t backoff_after(int attempt, int64_t base_ms) {
  const int doublings = attempt < 1 ? 0 : attempt > 10 ? 9 : attempt - 1;
  return base_ms << doublings;
}

}  // namespace

void SqliteCatalog::add_event(const std::string& job, const JobEventRow& event) {
  db_->run("UPDATE counters SET value = value + 1 WHERE name = 'job_events'");
  db_->run(
      "INSERT INTO job_events(job, seq, type, data, position) "
      "SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, (SELECT value FROM counters WHERE name = 'job_events') "
      "FROM job_events WHERE job = ?",
      job, event.type, event.data, job);
}

void SqliteCatalog::add_state_events(const std::string& job, JobState state, int attempt) {
  const std::string data = R"({"attempt":)" + std::to_string(attempt) + R"(,"state":")" +
                           std::string(job_state_name(state)) + R"("})";
  add_event(job, {0, "state", data});
  if (is_final(state)) add_event(job, {0, "end", data});
}

std::optional<JobRow> SqliteCatalog::claim_job(const std::vector<std::string>& kinds,
                                               const std::string& owner, int64_t lease_ms) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  Statement update(
      *db_,
      "UPDATE jobs SET state = 'running', attempt = attempt + 1, owner = ?, lease_until_ms = now_ms() + ?, "
      "started_ms = now_ms(), progress = '{}' WHERE state = 'queued' AND id = (SELECT id FROM jobs "
      "WHERE state = 'queued' AND not_before_ms <= now_ms() AND kind IN (" +
          marks(kinds.size()) + ") ORDER BY priority DESC, seq LIMIT 1) RETURNING id, attempt");
  update.bind(owner).bind(lease_ms);
  for (const std::string& kind : kinds) update.bind(kind);
  if (!update.step()) return std::nullopt;
  const std::string id = update.text(0);
  const int attempt = static_cast<int>(update.integer(1));
  while (update.step()) continue;
  add_state_events(id, JobState::kRunning, attempt);
  JobRow job = require_job(id);
  transaction.commit();
  return job;
}

std::optional<int64_t> SqliteCatalog::next_claim_in(const std::vector<std::string>& kinds) {
  const SqliteReaders::Turn db(*readers_);
  Statement row(
      *db, "SELECT MIN(MAX(not_before_ms - now_ms(), 0)) FROM jobs WHERE state = 'queued' AND kind IN (" +
               marks(kinds.size()) + ")");
  for (const std::string& kind : kinds) row.bind(kind);
  if (!row.step() || row.is_null(0)) return std::nullopt;
  return row.integer(0);
}

HeartbeatResult SqliteCatalog::heartbeat_job(const JobClaim& claim, int64_t lease_ms,
                                             const std::optional<std::string>& progress,
                                             const std::vector<JobEventRow>& events) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const auto update =
      db_->query("UPDATE jobs SET lease_until_ms = now_ms() + ?, progress = COALESCE(?, progress)" +
                     std::string(kHeld) + " RETURNING cancel_requested",
                 lease_ms, progress, claim.id, static_cast<int64_t>(claim.attempt), claim.owner);
  if (!update->step()) return {};
  const bool cancel_requested = update->integer(0) != 0;
  while (update->step()) continue;
  for (const JobEventRow& event : events) add_event(claim.id, event);
  transaction.commit();
  return {true, cancel_requested};
}

bool SqliteCatalog::finish_job(const JobClaim& claim, const JobFinish& finish) {
  TM_CHECK(is_final(finish.state), "a job finishes in a final state");
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const std::optional<Digest> package = finish.package ? std::optional(finish.package->id) : std::nullopt;
  const int64_t changed = db_->run(
      "UPDATE jobs SET state = ?, result = ?, error = ?, log = ?, package = ?, live_key = NULL, owner = '', "
      "resolved = COALESCE(?, resolved), action_key = COALESCE(?, action_key), lease_until_ms = 0, "
      "finished_ms = now_ms()" +
          std::string(kHeld),
      job_state_name(finish.state), finish.result, finish.error, finish.log, package, finish.resolved,
      finish.action_key, claim.id, static_cast<int64_t>(claim.attempt), claim.owner);
  if (changed == 0) return false;
  if (finish.package) {
    PackageRow made = *finish.package;
    made.owner = require_job(claim.id).submitter;
    insert_package(made);
  }
  if (finish.model) {
    insert_model(*finish.model);
    if (finish.model_name) point_name(*finish.model_name, finish.model->id);
  }
  add_state_events(claim.id, finish.state, claim.attempt);
  transaction.commit();
  return true;
}

bool SqliteCatalog::release_job(const JobClaim& claim, const JobRelease& release) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const int64_t extra = release.counts ? 0 : 1;
  const auto update = db_->query(
      "UPDATE jobs SET max_attempts = max_attempts + ?, error = ?, log = ?, owner = '', lease_until_ms = 0, "
      "state = CASE WHEN cancel_requested <> 0 THEN 'cancelled' WHEN attempt >= max_attempts + ? THEN "
      "'failed' "
      "ELSE 'queued' END, not_before_ms = now_ms() + ?" +
          std::string(kHeld) + " RETURNING state",
      extra, release.error, release.log, extra, release.backoff_ms, claim.id,
      static_cast<int64_t>(claim.attempt), claim.owner);
  if (!update->step()) return false;
  const std::string state = update->text(0);
  while (update->step()) continue;
  if (state != job_state_name(JobState::kQueued)) {
    db_->run("UPDATE jobs SET live_key = NULL, finished_ms = now_ms() WHERE id = ?", claim.id);
  }
  add_state_events(claim.id, *job_state_from_name(state), claim.attempt);
  transaction.commit();
  return true;
}

std::vector<JobRow> SqliteCatalog::requeue_orphans(Orphans which, int64_t backoff_ms) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  std::vector<JobRow> orphans;
  {
    const auto row =
        db_->query("SELECT " + std::string(kJobColumns) +
                       " FROM jobs WHERE state = 'running' AND (? <> 0 OR lease_until_ms < now_ms()) "
                       "ORDER BY seq",
                   static_cast<int64_t>(which == Orphans::kAllRunning));
    while (row->step()) orphans.push_back(job_from(*row));
  }
  for (JobRow& job : orphans) {
    JobState state = JobState::kQueued;
    if (job.cancel_requested) {
      state = JobState::kCancelled;
    } else if (job.attempt >= job.max_attempts) {
      state = JobState::kFailed;
    }
    const std::string error = state == JobState::kFailed ? last_attempt_error(job.attempt) : job.error;
    const bool final = is_final(state);
    db_->run(
        "UPDATE jobs SET state = ?, error = ?, owner = '', lease_until_ms = 0, not_before_ms = now_ms() + ?, "
        "live_key = CASE WHEN ? <> 0 THEN NULL ELSE live_key END, "
        "finished_ms = CASE WHEN ? <> 0 THEN now_ms() ELSE 0 END" +
            std::string(kHeld),
        job_state_name(state), error, backoff_after(job.attempt, backoff_ms), static_cast<int64_t>(final),
        static_cast<int64_t>(final), job.id, static_cast<int64_t>(job.attempt), job.owner);
    add_state_events(job.id, state, job.attempt);
    job = require_job(job.id);
  }
  transaction.commit();
  return orphans;
}

std::vector<JobEventRow> SqliteCatalog::job_events(const std::string& id, int64_t after, int limit) {
  const SqliteReaders::Turn db(*readers_);
  const auto row =
      db->query("SELECT seq, type, data FROM job_events WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?", id,
                after, static_cast<int64_t>(limit));
  std::vector<JobEventRow> events;
  while (row->step()) events.push_back({row->integer(0), row->text(1), row->text(2)});
  return events;
}

}  // namespace tensormill::storage
