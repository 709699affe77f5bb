// Jobs as their submitters see them: submit and read.
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/job_row.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"
#include "storage/catalog/uuid7.h"

namespace tensormill::storage {
namespace {

std::string select_jobs(std::string_view rest) {
  return "SELECT " + std::string(kJobColumns) + " FROM jobs " + std::string(rest);
}

}  // namespace

JobRow job_from(const SqlStatement& row) {
  JobRow job;
  job.sequence = row.integer(0);
  job.id = row.text(1);
  job.kind = row.text(2);
  job.subject = row.text(3);
  job.action_key = row.text(4);
  const std::optional<JobState> state = job_state_from_name(row.text(5));
  if (!state) throw Error(ErrorCode::kCorrupt, "job " + job.id + " has the state \"" + row.text(5) + "\"");
  job.state = *state;
  job.request = row.text(6);
  job.resolved = row.text(7);
  job.progress = row.text(8);
  job.result = row.text(9);
  job.error = row.text(10);
  job.attempt = static_cast<int>(row.integer(11));
  job.max_attempts = static_cast<int>(row.integer(12));
  job.priority = static_cast<int>(row.integer(13));
  job.submitters = static_cast<int>(row.integer(14));
  job.cancel_requested = row.integer(15) != 0;
  job.owner = row.text(16);
  job.lease_until_ms = row.integer(17);
  job.not_before_ms = row.integer(18);
  job.created_ms = row.integer(19);
  job.started_ms = row.integer(20);
  job.finished_ms = row.integer(21);
  job.log = row.optional_digest(22);
  job.package = row.optional_digest(23);
  job.submitter = row.text(24);
  job.demand = row.text(25);
  return job;
}

std::optional<JobRow> SqlCatalog::read_job(SqlDb& db, const std::string& id) {
  const auto row = db.query(select_jobs("WHERE id = ?"), id);
  if (!row->step()) return std::nullopt;
  return job_from(*row);
}

JobRow SqlCatalog::require_job(SqlDb& db, const std::string& id) {
  std::optional<JobRow> job = read_job(db, id);
  if (!job) throw Error(ErrorCode::kNotFound, "no job " + id);
  return *job;
}

std::optional<Submitted> SqlCatalog::repeat_of(SqlDb& db, const JobSubmission& submission) {
  if (submission.idempotency_key.empty()) return std::nullopt;
  db.post("DELETE FROM idempotency WHERE created_ms <= now_ms() - ?", submission.idempotency_ms);
  const auto row =
      db.query("SELECT request_hash, job FROM idempotency WHERE key = ?", submission.idempotency_key);
  if (!row->step()) return std::nullopt;
  if (row->text(0) != submission.request_hash) {
    throw Error(ErrorCode::kInvalidArgument,
                "idempotency key " + submission.idempotency_key + " was used with another request body");
  }
  std::optional<JobRow> job = read_job(db, row->text(1));
  if (!job) return std::nullopt;
  return Submitted{*job, SubmitOutcome::kRepeated};
}

std::optional<Submitted> SqlCatalog::reuse_of(SqlDb& db, const JobSubmission& submission) {
  if (submission.force) return std::nullopt;
  const auto live = db.query("SELECT id FROM jobs WHERE live_key = ?", submission.action_key);
  if (live->step()) {
    const std::string id = live->text(0);
    db.post(
        "UPDATE jobs SET submitters = submitters + 1, priority = CASE WHEN priority < ? THEN ? ELSE priority "
        "END WHERE id = ?",
        static_cast<int64_t>(submission.priority), static_cast<int64_t>(submission.priority), id);
    add_submitter(db, id, submission.submitter.name);
    return Submitted{require_job(db, id), SubmitOutcome::kJoined};
  }
  if (!submission.reuse_result) return std::nullopt;
  const auto done = db.query(
      select_jobs("WHERE action_key = ? AND state = 'succeeded' AND "
                  "(package IS NULL OR package IN (SELECT id FROM packages)) ORDER BY seq DESC LIMIT 1"),
      submission.action_key);
  if (!done->step()) return std::nullopt;
  const JobRow job = job_from(*done);
  if (submission.still_whole && !submission.still_whole(job)) return std::nullopt;
  if (job.package) db.post("UPDATE packages SET last_used_ms = now_ms() WHERE id = ?", *job.package);
  return Submitted{job, SubmitOutcome::kCached};
}

void SqlCatalog::require_row(SqlDb& db, std::string_view table, std::string_view what,
                             const std::optional<Digest>& id) {
  if (!id) return;
  const auto row = db.query("SELECT 1 FROM " + std::string(table) + " WHERE id = ?", *id);
  if (!row->step())
    throw Error(ErrorCode::kNotFound, "there is no " + std::string(what) + " \"" + id->text() + "\"");
}

void SqlCatalog::check_bound(SqlDb& db, const Submitter& submitter) {
  if (submitter.max_live == 0) return;
  const auto count = db.query(
      "SELECT COUNT(*) FROM jobs WHERE submitter = ? AND state IN ('queued', 'running')", submitter.name);
  count->step();
  if (count->integer(0) < submitter.max_live) return;
  throw Error(ErrorCode::kQuotaExceeded, submitter.name + " has " + std::to_string(count->integer(0)) +
                                             " jobs that wait or run, the limit for one caller is " +
                                             std::to_string(submitter.max_live));
}

void SqlCatalog::add_needs(SqlDb& db, const std::string& job, const JobSubmission& submission) {
  const auto add = [&](std::string_view kind, const Digest& digest, bool kept) {
    db.post("INSERT INTO job_needs(job, kind, digest, kept) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING", job,
            kind, digest, static_cast<int64_t>(kept));
  };
  touch_named(db, submission.needs_blobs);
  for (const Digest& blob : submission.needs_blobs) add("blob", blob, submission.keeps_blobs);
  for (const Digest& model : submission.needs_models) {
    // A subject is looked for in the row of the job.
    if (model.text() != submission.subject) add("model", model, false);
  }
}

std::string SqlCatalog::insert_job(SqlDb& db, const JobSubmission& submission) {
  if (submission.max_queued > 0) {
    const auto count = db.query("SELECT COUNT(*) FROM jobs WHERE state = 'queued'");
    count->step();
    if (count->integer(0) >= submission.max_queued) {
      throw Error(ErrorCode::kUnavailable, "the queue is full: " + std::to_string(count->integer(0)) +
                                               " jobs wait, the limit is " +
                                               std::to_string(submission.max_queued));
    }
  }
  check_bound(db, submission.submitter);
  for (const Digest& model : submission.needs_models) require_row(db, "models", "model", model);
  require_row(db, "packages", "package", submission.needs_package);
  require_row(db, "tuning_sets", "set of tuning records", submission.needs_set);
  const std::string id = make_uuid7(db.now_ms());
  const std::optional<std::string> live_key =
      submission.force ? std::nullopt : std::optional(submission.action_key);
  db.post(
      "INSERT INTO jobs(id, kind, subject, action_key, live_key, state, request, resolved, progress, result, "
      "error, "
      "attempt, max_attempts, priority, submitters, cancel_requested, owner, lease_until_ms, not_before_ms, "
      "created_ms, started_ms, finished_ms, submitter, needs, demand) VALUES(?, ?, ?, ?, ?, 'queued', ?, ?, "
      "'{}', '', '', 0, ?, ?, 1, 0, '', 0, 0, now_ms(), 0, 0, ?, ?, ?)",
      id, submission.kind, submission.subject, submission.action_key, live_key, submission.request,
      submission.resolved, static_cast<int64_t>(submission.max_attempts),
      static_cast<int64_t>(submission.priority), submission.submitter.name, submission.needs_package,
      submission.demand);
  add_submitter(db, id, submission.submitter.name);
  add_needs(db, id, submission);
  add_event(db, id, state_event(JobState::kQueued, 0), true);
  return id;
}

Submitted SqlCatalog::submit_job(const JobSubmission& submission) {
  Submitted submitted = write([&](SqlDb& db) -> Submitted {
    std::optional<Submitted> result = repeat_of(db, submission);
    if (!result) {
      result = reuse_of(db, submission);
      if (!result) result = Submitted{require_job(db, insert_job(db, submission)), SubmitOutcome::kCreated};
      if (!submission.idempotency_key.empty()) {
        db.post(
            "INSERT INTO idempotency(key, request_hash, job, created_ms) VALUES(?, ?, ?, now_ms()) "
            "ON CONFLICT(key) DO UPDATE SET request_hash = excluded.request_hash, job = excluded.job, "
            "created_ms = excluded.created_ms",
            submission.idempotency_key, submission.request_hash, result->job.id);
      }
    }
    return *result;
  });
  if (submitted.outcome == SubmitOutcome::kCreated) tell_others();
  return submitted;
}

std::optional<JobRow> SqlCatalog::find_job(const std::string& id) {
  return read([&](SqlDb& db) -> std::optional<JobRow> { return read_job(db, id); });
}

Page<JobRow> SqlCatalog::list_jobs(const JobFilter& filter, const PageRequest& page) {
  return read([&](SqlDb& db) -> Page<JobRow> {
    const std::string state = filter.state ? std::string(job_state_name(*filter.state)) : std::string();
    // Only the conditions that there are, so that each has its index.
    std::string conditions = "WHERE seq < ? ";
    if (!state.empty()) conditions += "AND state = ? ";
    if (!filter.kind.empty()) conditions += "AND kind = ? ";
    if (!filter.subject.empty()) conditions += "AND subject = ? ";
    const auto row = db.query(select_jobs(conditions + "ORDER BY seq DESC LIMIT ?"), before(page));
    for (const std::string& value : {state, filter.kind, filter.subject}) {
      if (!value.empty()) row->bind(value);
    }
    row->bind(static_cast<int64_t>(page.limit) + 1);
    Page<JobRow> result;
    while (row->step()) {
      if (result.items.size() == static_cast<size_t>(page.limit)) {
        result.next = result.items.back().sequence;
        break;
      }
      result.items.push_back(job_from(*row));
    }
    return result;
  });
}

int64_t SqlCatalog::count_jobs(JobState state) {
  return read([&](SqlDb& db) -> int64_t {
    const auto row = db.query("SELECT COUNT(*) FROM jobs WHERE state = ?", job_state_name(state));
    row->step();
    return row->integer(0);
  });
}

std::vector<JobCount> SqlCatalog::count_live_jobs() {
  return read([&](SqlDb& db) -> std::vector<JobCount> {
    const auto row = db.query(
        "SELECT state, kind, CASE WHEN state = 'queued' AND demand <> '' THEN 1 "
        "WHEN state = 'running' AND owner LIKE ? THEN 1 ELSE 0 END AS elsewhere, COUNT(*) FROM jobs "
        "WHERE state IN ('queued', 'running') GROUP BY state, kind, elsewhere ORDER BY state, kind, "
        "elsewhere",
        std::string(kRemoteOwner) + "%");
    std::vector<JobCount> counts;
    while (row->step())
      counts.push_back(
          {job_state_from_name(row->text(0)).value(), row->text(1), row->integer(2) != 0, row->integer(3)});
    return counts;
  });
}

}  // namespace tensormill::storage
