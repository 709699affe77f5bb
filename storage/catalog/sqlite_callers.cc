// What callers have, and what their requests with idempotency keys were answered.
#include "storage/catalog/sqlite_catalog.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/catalog/sqlite_readers.h"

namespace tensormill::storage {

std::vector<CallerUse> SqliteCatalog::list_uses() {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query(
      "SELECT caller, SUM(jobs), SUM(bytes) FROM ("
      "SELECT submitter AS caller, 1 AS jobs, 0 AS bytes FROM jobs WHERE state IN ('queued', 'running') "
      "UNION ALL SELECT owner, 0, bytes FROM models "
      "UNION ALL SELECT owner, 0, archive_bytes FROM packages) AS used "
      "WHERE caller <> '' GROUP BY caller ORDER BY caller");
  std::vector<CallerUse> uses;
  while (row->step()) {
    uses.push_back({row->text(0), row->integer(1), static_cast<uint64_t>(row->integer(2))});
  }
  return uses;
}

void SqliteCatalog::put_answer(const AnswerRow& answer, int64_t keep_ms) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  db_->run("DELETE FROM answers WHERE created_ms <= now_ms() - ?", keep_ms);
  db_->run(
      "INSERT INTO answers(caller, key, request_hash, answer, created_ms) VALUES(?, ?, ?, ?, now_ms()) "
      "ON CONFLICT(caller, key) DO UPDATE SET request_hash = excluded.request_hash, "
      "answer = excluded.answer, created_ms = excluded.created_ms",
      answer.caller, answer.key, answer.request_hash, answer.answer);
  transaction.commit();
}

std::optional<AnswerRow> SqliteCatalog::find_answer(const std::string& caller, const std::string& key,
                                                    int64_t keep_ms) {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query(
      "SELECT request_hash, answer FROM answers WHERE caller = ? AND key = ? AND created_ms > now_ms() - ? "
      "AND answer <> ''",
      caller, key, keep_ms);
  if (!row->step()) return std::nullopt;
  return AnswerRow{caller, key, row->text(0), row->text(1)};
}

}  // namespace tensormill::storage
