// What callers have, and what their requests with idempotency keys were answered.
#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

/// As long as an idempotency key is good.
constexpr int64_t kNotedMs = 86'400'000;

}  // namespace

std::vector<CallerUse> SqlCatalog::list_uses() {
  return read([&](SqlDb& db) -> std::vector<CallerUse> {
    const auto row = db.query(
        "SELECT caller, CAST(SUM(jobs) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM ("
        "SELECT submitter AS caller, 1 AS jobs, 0 AS bytes FROM jobs WHERE state IN ('queued', 'running') "
        "UNION ALL SELECT owner, 0, bytes FROM models "
        "UNION ALL SELECT owner, 0, archive_bytes FROM packages) AS used "
        "WHERE caller <> '' GROUP BY caller ORDER BY caller");
    std::vector<CallerUse> uses;
    while (row->step()) {
      uses.push_back({row->text(0), row->integer(1), static_cast<uint64_t>(row->integer(2))});
    }
    return uses;
  });
}

void SqlCatalog::put_answer(const AnswerRow& answer, int64_t keep_ms) {
  return write([&](SqlDb& db) {
    db.post("DELETE FROM answers WHERE created_ms <= now_ms() - ?", keep_ms);
    db.post(
        "INSERT INTO answers(caller, key, request_hash, answer, created_ms) VALUES(?, ?, ?, ?, now_ms()) "
        "ON CONFLICT(caller, key) DO UPDATE SET request_hash = excluded.request_hash, "
        "answer = excluded.answer, created_ms = excluded.created_ms",
        answer.caller, answer.key, answer.request_hash, answer.answer);
  });
}

std::optional<AnswerRow> SqlCatalog::find_answer(const std::string& caller, const std::string& key,
                                                 int64_t keep_ms) {
  return read([&](SqlDb& db) -> std::optional<AnswerRow> {
    const auto row = db.query(
        "SELECT request_hash, answer FROM answers WHERE caller = ? AND key = ? AND created_ms > now_ms() - ? "
        "AND answer <> ''",
        caller, key, keep_ms);
    if (!row->step()) return std::nullopt;
    return AnswerRow{caller, key, row->text(0), row->text(1)};
  });
}

bool SqlCatalog::is_noted(SqlDb& db, const RepeatKey& repeat) {
  if (repeat.key.empty()) return false;
  const auto row = db.query(
      "SELECT request_hash FROM answers WHERE caller = ? AND key = ? AND answer = '' AND created_ms > "
      "now_ms() - ?",
      repeat.caller, repeat.key, kNotedMs);
  if (!row->step()) return false;
  if (row->text(0) == repeat.request) return true;
  throw Error(ErrorCode::kInvalidArgument,
              "idempotency key " + repeat.key + " was used with another request");
}

void SqlCatalog::note_done(SqlDb& db, const RepeatKey& repeat) {
  if (repeat.key.empty()) return;
  // A row that is good is the answer, which came first where the work took longer.
  db.post(
      "INSERT INTO answers(caller, key, request_hash, answer, created_ms) VALUES(?, ?, ?, '', now_ms()) "
      "ON CONFLICT(caller, key) DO UPDATE SET request_hash = excluded.request_hash, answer = '', "
      "created_ms = excluded.created_ms WHERE answers.created_ms <= now_ms() - ?",
      repeat.caller, repeat.key, repeat.request, kNotedMs);
}

bool SqlCatalog::is_repeat(SqlDb& db, const RepeatKey& repeat) {
  if (is_noted(db, repeat)) return true;
  note_done(db, repeat);
  return false;
}

bool SqlCatalog::was_done(const RepeatKey& repeat) {
  if (repeat.key.empty()) return false;
  return read([&](SqlDb& db) -> bool { return is_noted(db, repeat); });
}

}  // namespace tensormill::storage
