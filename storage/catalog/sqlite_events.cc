#include "runtime/base/error.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/catalog/sqlite_readers.h"

namespace tensormill::storage {

std::vector<PlacedEventRow> SqliteCatalog::all_job_events(int64_t after, int limit) {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query(
      "SELECT position, job, seq, type, data FROM job_events WHERE position > ? ORDER BY position LIMIT ?",
      after, static_cast<int64_t>(limit));
  std::vector<PlacedEventRow> events;
  while (row->step())
    events.push_back({row->integer(0), row->text(1), {row->integer(2), row->text(3), row->text(4)}});
  return events;
}

int64_t SqliteCatalog::last_event_position() {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query("SELECT value FROM counters WHERE name = 'job_events'");
  return row->step() ? row->integer(0) : 0;
}

int64_t SqliteCatalog::expire_jobs(int64_t age_ms) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  // A succeeded job is what finds its package again for the same work.
  const int64_t removed = db_->run(
      "DELETE FROM jobs WHERE state IN ('succeeded', 'failed', 'cancelled') AND finished_ms <= now_ms() - ? "
      "AND NOT EXISTS(SELECT 1 FROM packages WHERE packages.id = jobs.package)",
      age_ms);
  transaction.commit();
  return removed;
}

}  // namespace tensormill::storage
