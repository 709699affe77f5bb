// Tuning records, their sets, and facts.
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kRecordColumns =
    "SELECT seq, id, task, target, cpu, threads, generator, imported, job, time_ns, final, line, "
    "EXISTS(SELECT 1 FROM tuning_set_records WHERE record = id) FROM tuning_records ";

TuningRecordRow record_from(const SqlStatement& row) {
  TuningRecordRow record;
  record.sequence = row.integer(0);
  record.id = row.digest(1);
  record.task = row.text(2);
  record.target = row.text(3);
  record.cpu = row.text(4);
  record.threads = static_cast<int>(row.integer(5));
  record.generator = row.text(6);
  record.imported = row.integer(7) != 0;
  record.job = row.text(8);
  record.time_ns = row.integer(9);
  record.final = row.integer(10) != 0;
  record.line = row.text(11);
  record.in_set = row.integer(12) != 0;
  return record;
}

/// The conditions of a filter, in the order in which bind_filter fills them.
std::string conditions_of(const TuningFilter& filter) {
  std::string text =
      "WHERE seq > ? AND (? = '' OR target = ?) AND (? = '' OR cpu = ?) AND (? = 0 OR threads = ?) AND "
      "(? = '' OR generator = ?) AND (? <> 0 OR imported = 0) AND (? = '' OR job = ?) ";
  if (!filter.tasks.empty()) {
    text += "AND task IN (?";
    for (size_t i = 1; i < filter.tasks.size(); ++i) text += ", ?";
    text += ") ";
  }
  if (filter.set) text += "AND id IN (SELECT record FROM tuning_set_records WHERE tuning_set = ?) ";
  if (!filter.subject.empty()) {
    text +=
        "AND id IN (SELECT record FROM tuning_set_records WHERE tuning_set IN (SELECT id FROM tuning_sets "
        "WHERE subject = ?)) ";
  }
  return text;
}

void bind_filter(SqlStatement& row, const TuningFilter& filter, int64_t after) {
  const int64_t threads = filter.threads;
  row.bind(after).bind(filter.target).bind(filter.target).bind(filter.cpu).bind(filter.cpu);
  row.bind(threads).bind(threads).bind(filter.generator).bind(filter.generator);
  row.bind(static_cast<int64_t>(filter.with_imported)).bind(filter.job).bind(filter.job);
  for (const std::string& task : filter.tasks) row.bind(task);
  if (filter.set) row.bind(*filter.set);
  if (!filter.subject.empty()) row.bind(filter.subject);
}

}  // namespace

int64_t SqlCatalog::insert_tuning_records(SqlDb& db, const std::vector<TuningRecordRow>& records) {
  int64_t added = 0;
  for (const TuningRecordRow& record : records) {
    added += db.run(
        "INSERT INTO tuning_records(id, task, target, cpu, threads, generator, imported, job, "
        "time_ns, final, line, created_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, now_ms()) ON CONFLICT(id) "
        "DO NOTHING",
        record.id, record.task, record.target, record.cpu, static_cast<int64_t>(record.threads),
        record.generator, static_cast<int64_t>(record.imported), record.job, record.time_ns,
        static_cast<int64_t>(record.final), record.line);
  }
  return added;
}

int64_t SqlCatalog::put_tuning_records(const std::vector<TuningRecordRow>& records) {
  return write([&](SqlDb& db) -> int64_t {
    const int64_t added = insert_tuning_records(db, records);
    return added;
  });
}

Page<TuningRecordRow> SqlCatalog::list_tuning_records(const TuningFilter& filter, const PageRequest& page) {
  return read([&](SqlDb& db) -> Page<TuningRecordRow> {
    const auto row = db.query(std::string(kRecordColumns) + conditions_of(filter) + "ORDER BY seq LIMIT ?");
    bind_filter(*row, filter, page.cursor);
    row->bind(static_cast<int64_t>(page.limit) + 1);
    Page<TuningRecordRow> result;
    while (row->step()) {
      if (result.items.size() == static_cast<size_t>(page.limit)) {
        result.next = result.items.back().sequence;
        break;
      }
      result.items.push_back(record_from(*row));
    }
    return result;
  });
}

std::vector<TuningRecordRow> SqlCatalog::best_tuning_records(const TuningFilter& filter, int threads) {
  return read([&](SqlDb& db) -> std::vector<TuningRecordRow> {
    const auto row =
        db.query(std::string(kRecordColumns) +
                 "WHERE id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY task "
                 "ORDER BY CASE WHEN threads = ? THEN 0 ELSE 1 END, final DESC, "
                 "CASE WHEN final <> 0 THEN -seq ELSE time_ns END) AS place FROM tuning_records " +
                 conditions_of(filter) + "AND time_ns > 0) AS ranked WHERE place = 1) ORDER BY task");
    row->bind(static_cast<int64_t>(threads));
    bind_filter(*row, filter, 0);
    std::vector<TuningRecordRow> best;
    while (row->step()) best.push_back(record_from(*row));
    return best;
  });
}

bool SqlCatalog::put_tuning_set(const TuningSetRow& set, const std::vector<TuningRecordRow>& records) {
  return write([&](SqlDb& db) -> bool {
    insert_tuning_records(db, records);
    const bool is_new = db.run(
                            "INSERT INTO tuning_sets(id, subject, created_ms) VALUES(?, ?, now_ms()) "
                            "ON CONFLICT(id) DO NOTHING",
                            set.id, set.subject) != 0;
    for (const Digest& record : set.records) {
      db.post("INSERT INTO tuning_set_records(tuning_set, record) VALUES(?, ?) ON CONFLICT DO NOTHING",
              set.id, record);
    }
    return is_new;
  });
}

std::optional<TuningSetRow> SqlCatalog::find_tuning_set(const Digest& id) {
  return read([&](SqlDb& db) -> std::optional<TuningSetRow> {
    const auto row = db.query("SELECT id, subject, created_ms FROM tuning_sets WHERE id = ?", id);
    if (!row->step()) return std::nullopt;
    return TuningSetRow{row->digest(0), row->text(1), {}, row->integer(2)};
  });
}

bool SqlCatalog::remove_tuning_set(const Digest& id) {
  return write([&](SqlDb& db) -> bool {
    std::vector<Digest> records;
    {
      const auto row = db.query("SELECT record FROM tuning_set_records WHERE tuning_set = ?", id);
      while (row->step()) records.push_back(row->digest(0));
    }
    const bool removed = db.run("DELETE FROM tuning_sets WHERE id = ?", id) != 0;
    db.post("DELETE FROM tuning_set_records WHERE tuning_set = ?", id);
    for (const Digest& record : records) {
      db.post(
          "DELETE FROM tuning_records WHERE id = ? AND NOT EXISTS(SELECT 1 FROM tuning_set_records WHERE "
          "record = ?)",
          record, record);
    }
    return removed;
  });
}

int64_t SqlCatalog::expire_tuning_records(int64_t age_ms, int64_t kept) {
  return write([&](SqlDb& db) -> int64_t {
    return db.run(
        "DELETE FROM tuning_records WHERE created_ms < now_ms() - ? AND NOT EXISTS(SELECT 1 FROM "
        "tuning_set_records WHERE record = id) AND job NOT IN (SELECT id FROM jobs WHERE state IN ('queued', "
        "'running')) AND id NOT IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY task, target, "
        "cpu, "
        "threads, generator ORDER BY final DESC, CASE WHEN final <> 0 THEN -seq ELSE time_ns END) AS place "
        "FROM "
        "tuning_records WHERE time_ns > 0) AS ranked WHERE place <= ?)",
        age_ms, kept);
  });
}

void SqlCatalog::put_fact(const std::string& key, const std::string& value) {
  return write([&](SqlDb& db) {
    db.post(
        "INSERT INTO facts(key, value, created_ms) VALUES(?, ?, now_ms()) "
        "ON CONFLICT(key) DO UPDATE SET value = excluded.value, created_ms = excluded.created_ms",
        key, value);
  });
}

std::optional<std::string> SqlCatalog::find_fact(const std::string& key) {
  return read([&](SqlDb& db) -> std::optional<std::string> {
    const auto row = db.query("SELECT value FROM facts WHERE key = ?", key);
    if (!row->step()) return std::nullopt;
    return row->text(0);
  });
}

}  // namespace tensormill::storage
