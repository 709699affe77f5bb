// Who has a job made, and who may have it cancelled or tried again.
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

/// How often this caller wants the job; nothing for one who never submitted it.
std::optional<int64_t> wanted_by(SqlDb& db, const std::string& job, const std::string& caller) {
  const auto row = db.query("SELECT wanted FROM job_submitters WHERE job = ? AND caller = ?", job, caller);
  return row->step() ? std::optional(row->integer(0)) : std::nullopt;
}

/// What its request names.
std::vector<Digest> blobs_of(SqlDb& db, const std::string& job) {
  const auto row = db.query("SELECT digest FROM job_needs WHERE job = ? AND kind = 'blob'", job);
  std::vector<Digest> blobs;
  while (row->step()) blobs.push_back(row->digest(0));
  return blobs;
}

void check_may_change(const std::optional<int64_t>& wanted, const std::string& job, const Submitter& by) {
  if (wanted || by.is_admin) return;
  throw Error(ErrorCode::kForbidden,
              "job " + job + " was submitted by others; they and admins may change it");
}

}  // namespace

void SqlCatalog::add_submitter(SqlDb& db, const std::string& job, const std::string& caller) {
  db.post(
      "INSERT INTO job_submitters(job, caller, wanted) VALUES(?, ?, 1) "
      "ON CONFLICT(job, caller) DO UPDATE SET wanted = job_submitters.wanted + 1",
      job, caller);
}

CancelOutcome SqlCatalog::cancel_job(const std::string& id, const Submitter& by,
                                     const std::string& repeat_key) {
  CancelOutcome done = write([&](SqlDb& db) -> CancelOutcome {
    const JobRow job = require_job(db, id);
    const std::optional<int64_t> own = wanted_by(db, id, by.name);
    check_may_change(own, id, by);
    if (is_repeat(db, {by.name, repeat_key, "cancel " + id})) {
      return {job, !is_final(job.state) && !job.cancel_requested};
    }
    if (job.state == JobState::kCancelled) return {job, false};
    if (is_final(job.state)) {
      throw Error(ErrorCode::kConflict, "job " + id + " has " + std::string(job_state_name(job.state)));
    }
    // A repeated cancel withdraws nobody else's submission.
    if (own && *own == 0 && !by.is_admin) return {job, job.submitters > 0};
    const bool withdraws_one = own && *own > 0 && job.submitters > 1;
    if (withdraws_one) {
      db.post("UPDATE jobs SET submitters = submitters - 1 WHERE id = ?", id);
      db.post("UPDATE job_submitters SET wanted = wanted - 1 WHERE job = ? AND caller = ?", id, by.name);
    } else {
      db.post("UPDATE job_submitters SET wanted = 0 WHERE job = ?", id);
    }
    if (!withdraws_one && job.state == JobState::kQueued) {
      db.post(
          "UPDATE jobs SET state = 'cancelled', submitters = 0, live_key = NULL, cancel_requested = 1, "
          "finished_ms = now_ms() WHERE id = ? AND state = 'queued'",
          id);
      add_state_events(db, id, JobState::kCancelled, job.attempt);
    } else if (!withdraws_one) {
      // Nobody may join work that is being stopped.
      db.post("UPDATE jobs SET cancel_requested = 1, submitters = 0, live_key = NULL WHERE id = ?", id);
    }
    return {require_job(db, id), withdraws_one};
  });
  tell_others();
  return done;
}

JobRow SqlCatalog::retry_job(const std::string& id, const Submitter& submitter,
                             const std::string& repeat_key) {
  JobRow retried = write([&](SqlDb& db) -> JobRow {
    const JobRow job = require_job(db, id);
    check_may_change(wanted_by(db, id, submitter.name), id, submitter);
    if (is_repeat(db, {submitter.name, repeat_key, "retry " + id})) return job;
    if (job.state != JobState::kFailed && job.state != JobState::kCancelled) {
      throw Error(ErrorCode::kConflict, "job " + id + " is " + std::string(job_state_name(job.state)) +
                                            "; only a failed or cancelled one can be retried");
    }
    const auto live = db.query("SELECT id FROM jobs WHERE live_key = ?", job.action_key);
    if (live->step()) throw Error(ErrorCode::kConflict, "job " + live->text(0) + " does the same work");
    check_bound(db, submitter);
    touch_named(db, blobs_of(db, id));
    db.post(
        "UPDATE jobs SET state = 'queued', live_key = action_key, error = '', progress = '{}', "
        "cancel_requested = 0, "
        "submitters = 1, not_before_ms = 0, finished_ms = 0, max_attempts = CASE WHEN max_attempts > attempt "
        "THEN max_attempts ELSE attempt + 1 END, "
        "submitter = ? WHERE id = ?",
        submitter.name, id);
    db.post("UPDATE job_submitters SET wanted = 0 WHERE job = ?", id);
    add_submitter(db, id, submitter.name);
    add_state_events(db, id, JobState::kQueued, job.attempt);
    return require_job(db, id);
  });
  tell_others();
  return retried;
}

}  // namespace tensormill::storage
