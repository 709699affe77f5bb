// Who changed what. The number of rows is kept in a counter, since counting them reads them all.
#include <algorithm>

#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {

int64_t SqlCatalog::remove_audit(SqlDb& db, int64_t excess, bool of_strangers) {
  if (excess <= 0) return 0;
  return db.run(of_strangers ? "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE caller = '' "
                               "ORDER BY seq LIMIT ?)"
                             : "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?)",
                excess);
}

void SqlCatalog::put_audit(const std::vector<AuditRow>& rows, const AuditBounds& bounds) {
  write(Isolation::kRows, [&](SqlDb& db) {
    // The counter first: whoever else has rows to add waits for it.
    const auto counter =
        db.query("UPDATE counters SET value = value + ? WHERE name = 'audit' RETURNING value",
                 static_cast<int64_t>(rows.size()));
    int64_t count = counter->step() ? counter->integer(0) : 0;
    while (counter->step()) continue;
    for (const AuditRow& row : rows) {
      db.post(
          "INSERT INTO audit(ts_ms, request_id, caller, peer, client, method, target, status) "
          "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
          row.ts_ms, row.request_id, row.caller, row.peer, row.client, row.method, row.target,
          static_cast<int64_t>(row.status));
    }
    count -= db.run("DELETE FROM audit WHERE ts_ms <= now_ms() - ?", bounds.keep_ms);
    // Who has no key must not push out what those with keys have done.
    count -= remove_audit(db, count - bounds.max_rows, true);
    count -= remove_audit(db, count - bounds.max_rows, false);
    db.run("UPDATE counters SET value = ? WHERE name = 'audit'", count);
  });
}

Page<AuditRow> SqlCatalog::list_audit(const AuditFilter& filter, const PageRequest& page) {
  return read([&](SqlDb& db) -> Page<AuditRow> {
    const int64_t any_caller = filter.caller ? 0 : 1;
    const auto row = db.query(
        "SELECT seq, ts_ms, request_id, caller, peer, client, method, target, status FROM audit "
        "WHERE (? = 0 OR seq < ?) AND (? = 1 OR caller = ?) AND (? = '' OR method = ?) AND "
        "(? = 0 OR status = ?) AND (? = 0 OR ts_ms >= ?) AND (? = 0 OR ts_ms < ?) ORDER BY seq DESC LIMIT ?",
        page.cursor, page.cursor, any_caller, filter.caller.value_or(""), filter.method, filter.method,
        static_cast<int64_t>(filter.status), static_cast<int64_t>(filter.status), filter.since_ms,
        filter.since_ms, filter.until_ms, filter.until_ms, static_cast<int64_t>(page.limit) + 1);
    Page<AuditRow> result;
    while (row->step()) {
      if (result.items.size() == static_cast<size_t>(page.limit)) {
        result.next = result.items.back().sequence;
        break;
      }
      result.items.push_back({row->integer(0), row->integer(1), row->text(2), row->text(3), row->text(4),
                              row->text(5), row->text(6), row->text(7), static_cast<int>(row->integer(8))});
    }
    return result;
  });
}

}  // namespace tensormill::storage
