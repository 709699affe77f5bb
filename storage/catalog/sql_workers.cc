// Workers on other machines: who they are and when they were heard.
#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kSelect =
    "SELECT name, caller, facts, status, state, created_ms, seen_ms FROM workers ";

WorkerRow worker_from(const SqlStatement& row) {
  return {row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), row.integer(5), row.integer(6)};
}

}  // namespace

WorkerRow SqlCatalog::put_worker(const WorkerRow& worker, int64_t keep_ms) {
  return write(Isolation::kRows, [&](SqlDb& db) -> WorkerRow {
    db.run("DELETE FROM workers WHERE seen_ms < now_ms() - ? AND state <> 'revoked'", keep_ms);
    const auto row = db.query(
        "INSERT INTO workers(name, caller, facts, status, state, created_ms, seen_ms) "
        "VALUES(?, ?, ?, ?, 'active', now_ms(), now_ms()) ON CONFLICT(name) DO UPDATE SET "
        "facts = excluded.facts, status = excluded.status, seen_ms = excluded.seen_ms "
        "WHERE workers.caller = excluded.caller "
        "RETURNING name, caller, facts, status, state, created_ms, seen_ms",
        worker.name, worker.caller, worker.facts, worker.status);
    if (!row->step())
      throw Error(ErrorCode::kNameTaken, "there is a worker \"" + worker.name + "\" of another key");
    WorkerRow kept = worker_from(*row);
    while (row->step()) continue;
    return kept;
  });
}

std::optional<WorkerRow> SqlCatalog::find_worker(const std::string& name) {
  return read([&](SqlDb& db) -> std::optional<WorkerRow> {
    const auto row = db.query(std::string(kSelect) + "WHERE name = ?", name);
    if (!row->step()) return std::nullopt;
    return worker_from(*row);
  });
}

std::vector<WorkerRow> SqlCatalog::list_workers() {
  return read([&](SqlDb& db) -> std::vector<WorkerRow> {
    const auto row = db.query(std::string(kSelect) + "ORDER BY name");
    std::vector<WorkerRow> workers;
    while (row->step()) workers.push_back(worker_from(*row));
    return workers;
  });
}

bool SqlCatalog::set_worker_state(const std::string& name, const std::string& state) {
  const bool changed = write([&](SqlDb& db) -> bool {
    return db.run("UPDATE workers SET state = ? WHERE name = ?", state, name) > 0;
  });
  if (changed) tell_others();
  return changed;
}

}  // namespace tensormill::storage
