#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {

std::vector<PlacedEventRow> SqlCatalog::all_job_events(int64_t after, int limit) {
  return read([&](SqlDb& db) -> std::vector<PlacedEventRow> {
    const auto row = db.query("SELECT position, job, seq, type, data FROM job_events WHERE position > ? " +
                                  std::string(settled_events()) + "ORDER BY position LIMIT ?",
                              after, static_cast<int64_t>(limit));
    std::vector<PlacedEventRow> events;
    while (row->step())
      events.push_back({row->integer(0), row->text(1), {row->integer(2), row->text(3), row->text(4)}});
    return events;
  });
}

int64_t SqlCatalog::expire_jobs(int64_t age_ms) {
  return write([&](SqlDb& db) -> int64_t {
    // A succeeded job is what finds its package again for the same work.
    const int64_t removed = db.run(
        "DELETE FROM jobs WHERE state IN ('succeeded', 'failed', 'cancelled') AND finished_ms <= now_ms() - "
        "? "
        "AND NOT EXISTS(SELECT 1 FROM packages WHERE packages.id = jobs.package)",
        age_ms);
    return removed;
  });
}

}  // namespace tensormill::storage
