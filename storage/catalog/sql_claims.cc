// Jobs as their workers see them. Each change by a worker is one conditional UPDATE on id, attempt and owner.
#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/job_row.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kHeld = " WHERE id = ? AND attempt = ? AND owner = ? AND state = 'running'";

std::string last_attempt_error(int attempt) {
  return R"({"code":"unavailable","message":"the worker was lost in attempt )" + std::to_string(attempt) +
         R"(, and a job that ends its workers again and again must not run for ever"})";
}

/// Short, since whose loss it was is not the job's doing: what took the worker is mostly gone at once.
int64_t backoff_after(int attempt, int64_t base_ms) { return base_ms << std::clamp(attempt - 1, 0, 3); }

}  // namespace

JobEventRow SqlCatalog::state_event(JobState state, int attempt) {
  return {0, "state",
          R"({"attempt":)" + std::to_string(attempt) + R"(,"state":")" + std::string(job_state_name(state)) +
              R"("})"};
}

void SqlCatalog::add_state_events(SqlDb& db, const std::string& job, JobState state, int attempt) {
  const JobEventRow event = state_event(state, attempt);
  add_event(db, job, event, false);
  if (is_final(state)) add_event(db, job, {0, "end", event.data}, false);
}

std::optional<JobRow> SqlCatalog::claim_job(const std::vector<std::string>& kinds, const std::string& owner,
                                            int64_t lease_ms, const std::vector<std::string>& demands) {
  std::optional<JobRow> claimed = write(Isolation::kRows, [&](SqlDb& db) -> std::optional<JobRow> {
    const auto update = db.query(
        "UPDATE jobs SET state = 'running', attempt = attempt + 1, owner = ?, lease_until_ms = now_ms() + ?, "
        "started_ms = now_ms(), progress = '{}' WHERE state = 'queued' AND id = (SELECT id FROM " +
            std::string(db.queue()) + " WHERE state = 'queued' AND not_before_ms <= now_ms() AND kind IN (" +
            marks(kinds.size()) + ") AND demand IN (" + marks(demands.size()) +
            ") ORDER BY priority DESC, seq LIMIT 1 " + std::string(db.skip_locked()) + ") RETURNING " +
            std::string(kJobColumns),
        owner, lease_ms);
    for (const std::string& kind : kinds) update->bind(kind);
    for (const std::string& demand : demands) update->bind(demand);
    if (!update->step()) return std::nullopt;
    JobRow job = job_from(*update);
    while (update->step()) continue;
    add_state_events(db, job.id, JobState::kRunning, job.attempt);
    return job;
  });
  if (claimed) tell_others();
  return claimed;
}

std::optional<int64_t> SqlCatalog::next_claim_in(const std::vector<std::string>& kinds,
                                                 const std::vector<std::string>& demands) {
  return read([&](SqlDb& db) -> std::optional<int64_t> {
    const auto ask = [&](const std::string& what, const std::string& rest) {
      auto row = db.query("SELECT " + what + " FROM " + std::string(db.queue()) +
                          " WHERE state = 'queued' AND kind IN (" + marks(kinds.size()) +
                          ") AND demand IN (" + marks(demands.size()) + ")" + rest);
      for (const std::string& kind : kinds) row->bind(kind);
      for (const std::string& demand : demands) row->bind(demand);
      return row;
    };
    // The first that is due ends the look: the queue may be long.
    if (ask("1", " AND not_before_ms <= now_ms() LIMIT 1")->step()) return 0;
    const auto row = ask("MIN(not_before_ms) - now_ms()", "");
    if (!row->step() || row->is_null(0)) return std::nullopt;
    return std::max<int64_t>(row->integer(0), 0);
  });
}

HeartbeatResult SqlCatalog::heartbeat_job(const JobClaim& claim, int64_t lease_ms,
                                          const std::optional<std::string>& progress,
                                          const std::vector<JobEventRow>& events) {
  const HeartbeatResult result = write(Isolation::kRows, [&](SqlDb& db) -> HeartbeatResult {
    const auto update =
        db.query("UPDATE jobs SET lease_until_ms = now_ms() + ?, progress = COALESCE(?, progress)" +
                     std::string(kHeld) + " RETURNING cancel_requested",
                 lease_ms, progress, claim.id, static_cast<int64_t>(claim.attempt), claim.owner);
    if (!update->step()) return {};
    const bool cancel_requested = update->integer(0) != 0;
    while (update->step()) continue;
    for (const JobEventRow& event : events) add_event(db, claim.id, event, false);
    return {true, cancel_requested};
  });
  if (result.held && !events.empty()) tell_others();
  return result;
}

bool SqlCatalog::finish_job(const JobClaim& claim, const JobFinish& finish) {
  TM_CHECK(is_final(finish.state), "a job finishes in a final state");
  // What it publishes is looked for first; else it is one row that changes.
  const Isolation isolation = finish.package || finish.model ? Isolation::kSerial : Isolation::kRows;
  const bool held = write(isolation, [&](SqlDb& db) -> bool {
    const std::optional<Digest> package = finish.package ? std::optional(finish.package->id) : std::nullopt;
    const int64_t changed = db.run(
        "UPDATE jobs SET state = ?, result = ?, error = ?, log = ?, package = ?, live_key = NULL, owner = "
        "'', "
        "resolved = COALESCE(?, resolved), action_key = COALESCE(?, action_key), lease_until_ms = 0, "
        "finished_ms = now_ms()" +
            std::string(kHeld),
        job_state_name(finish.state), finish.result, finish.error, finish.log, package, finish.resolved,
        finish.action_key, claim.id, static_cast<int64_t>(claim.attempt), claim.owner);
    if (changed == 0) return false;
    if (finish.log) touch_named(db, std::span(&*finish.log, 1));
    if (is_shared()) db.post("DELETE FROM job_logs WHERE job = ?", claim.id);
    if (finish.package) {
      PackageRow made = *finish.package;
      made.owner = require_job(db, claim.id).submitter;
      insert_package(db, made);
    }
    if (finish.model) {
      insert_model(db, *finish.model);
      if (finish.model_name) point_name(db, *finish.model_name, finish.model->id);
    }
    add_state_events(db, claim.id, finish.state, claim.attempt);
    note_done(db, finish.done);
    return true;
  });
  if (held) tell_others();
  return held;
}

bool SqlCatalog::release_job(const JobClaim& claim, const JobRelease& release) {
  const bool held = write(Isolation::kRows, [&](SqlDb& db) -> bool {
    const int64_t extra = release.counts ? 0 : 1;
    const auto update = db.query(
        "UPDATE jobs SET max_attempts = max_attempts + ?, error = ?, log = ?, owner = '', lease_until_ms = "
        "0, "
        "state = CASE WHEN cancel_requested <> 0 THEN 'cancelled' WHEN attempt >= max_attempts + ? THEN "
        "'failed' "
        "ELSE 'queued' END, not_before_ms = now_ms() + ?" +
            std::string(kHeld) + " RETURNING state",
        extra, release.error, release.log, extra, release.backoff_ms, claim.id,
        static_cast<int64_t>(claim.attempt), claim.owner);
    if (!update->step()) return false;
    const std::string state = update->text(0);
    while (update->step()) continue;
    if (release.log) touch_named(db, std::span(&*release.log, 1));
    if (is_shared()) db.post("DELETE FROM job_logs WHERE job = ?", claim.id);
    if (state != job_state_name(JobState::kQueued)) {
      db.post("UPDATE jobs SET live_key = NULL, finished_ms = now_ms() WHERE id = ?", claim.id);
    }
    add_state_events(db, claim.id, *job_state_from_name(state), claim.attempt);
    note_done(db, release.done);
    return true;
  });
  if (held) tell_others();
  return held;
}

JobRow SqlCatalog::requeue(SqlDb& db, const JobRow& job, int64_t backoff_ms) {
  JobState state = JobState::kQueued;
  if (job.cancel_requested) {
    state = JobState::kCancelled;
  } else if (job.attempt >= kMostLosses) {
    state = JobState::kFailed;
  }
  const std::string error = state == JobState::kFailed ? last_attempt_error(job.attempt) : job.error;
  const auto final = static_cast<int64_t>(is_final(state));
  db.post(
      "UPDATE jobs SET state = ?, error = ?, owner = '', lease_until_ms = 0, max_attempts = max_attempts + "
      "1, "
      "not_before_ms = now_ms() + ?, "
      "live_key = CASE WHEN ? <> 0 THEN NULL ELSE live_key END, "
      "finished_ms = CASE WHEN ? <> 0 THEN now_ms() ELSE 0 END" +
          std::string(kHeld),
      job_state_name(state), error, backoff_after(job.attempt, backoff_ms), final, final, job.id,
      static_cast<int64_t>(job.attempt), job.owner);
  add_state_events(db, job.id, state, job.attempt);
  return require_job(db, job.id);
}

std::vector<JobRow> SqlCatalog::requeue_orphans(Orphans which, int64_t backoff_ms) {
  // Where other processes run jobs as well, theirs are none of a process that starts.
  const bool all = which == Orphans::kAtStart && !is_shared();
  std::vector<JobRow> orphans = write(Isolation::kRows, [&](SqlDb& db) -> std::vector<JobRow> {
    std::vector<JobRow> found;
    {
      const auto row = db.query("SELECT " + std::string(kJobColumns) +
                                    " FROM jobs WHERE state = 'running' AND (lease_until_ms < now_ms() OR "
                                    "(? <> 0 AND owner NOT LIKE ?)) ORDER BY seq " +
                                    std::string(db.skip_locked()),
                                static_cast<int64_t>(all), std::string(kRemoteOwner) + "%");
      while (row->step()) found.push_back(job_from(*row));
    }
    for (JobRow& job : found) job = requeue(db, job, backoff_ms);
    return found;
  });
  if (!orphans.empty()) tell_others();
  return orphans;
}

std::vector<JobRow> SqlCatalog::requeue_jobs_of(const std::string& owner) {
  std::vector<JobRow> orphans = write(Isolation::kRows, [&](SqlDb& db) -> std::vector<JobRow> {
    std::vector<JobRow> found;
    {
      const auto row = db.query("SELECT " + std::string(kJobColumns) +
                                    " FROM jobs WHERE state = 'running' AND owner = ? ORDER BY seq " +
                                    std::string(db.skip_locked()),
                                owner);
      while (row->step()) found.push_back(job_from(*row));
    }
    for (JobRow& job : found) job = requeue(db, job, 0);
    return found;
  });
  if (!orphans.empty()) tell_others();
  return orphans;
}

std::vector<JobEventRow> SqlCatalog::job_events(const std::string& id, int64_t after, int limit) {
  return read([&](SqlDb& db) -> std::vector<JobEventRow> {
    const auto row =
        db.query("SELECT seq, type, data FROM job_events WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?", id,
                 after, static_cast<int64_t>(limit));
    std::vector<JobEventRow> events;
    while (row->step()) events.push_back({row->integer(0), row->text(1), row->text(2)});
    return events;
  });
}

}  // namespace tensormill::storage
