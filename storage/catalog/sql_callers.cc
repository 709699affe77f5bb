// What callers have, and what their requests with idempotency keys were answered.
#include <map>
#include <string>

#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

/// As long as an idempotency key is good.
constexpr int64_t kNotedMs = 86'400'000;

}  // namespace

std::vector<CallerUse> SqlCatalog::list_uses() {
  fold_uses();
  return read([&](SqlDb& db) -> std::vector<CallerUse> {
    const auto row = db.query(
        "SELECT caller, CAST(SUM(jobs) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM ("
        "SELECT submitter AS caller, 1 AS jobs, 0 AS bytes FROM jobs WHERE state IN ('queued', 'running') "
        "UNION ALL SELECT caller, 0, bytes FROM caller_sums) AS used "
        "WHERE caller <> '' GROUP BY caller HAVING SUM(jobs) <> 0 OR SUM(bytes) <> 0 ORDER BY caller");
    std::vector<CallerUse> uses;
    while (row->step()) {
      uses.push_back({row->text(0), row->integer(1), static_cast<uint64_t>(row->integer(2))});
    }
    return uses;
  });
}

CallerUse SqlCatalog::sum_uses() {
  fold_uses();
  return read([](SqlDb& db) -> CallerUse {
    const auto row = db.query(
        "SELECT (SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running') AND submitter <> ''), "
        "(SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM caller_sums)");
    row->step();
    return {"", row->integer(0), static_cast<uint64_t>(row->integer(1))};
  });
}

void SqlCatalog::fold_uses() {
  const bool is_long = read([](SqlDb& db) -> bool {
    const auto row = db.query("SELECT COUNT(*) - COUNT(DISTINCT caller) FROM caller_sums");
    return row->step() && row->integer(0) > kUnfolded;
  });
  if (!is_long) return;
  write(Isolation::kRows, [](SqlDb& db) {
    std::map<std::string, int64_t> sums;
    {
      const auto row = db.query("DELETE FROM caller_sums RETURNING caller, bytes");
      while (row->step()) sums[row->text(0)] += row->integer(1);
    }
    for (const auto& [caller, bytes] : sums) {
      if (bytes != 0) db.post("INSERT INTO caller_sums(caller, bytes) VALUES(?, ?)", caller, bytes);
    }
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
