#include "storage/catalog/sqlite_catalog.h"

#include <chrono>
#include <utility>

#include "storage/catalog/commit_group.h"
#include "storage/catalog/migrations.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/catalog/sqlite_readers.h"

namespace tensormill::storage {
namespace {

int64_t system_now_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SqliteCatalog::SqliteCatalog(Env& env, const std::string& path, SqliteCatalogOptions options)
    : lock_(env.lock(path + ".lock")) {
  if (!options.now_ms) options.now_ms = system_now_ms;
  const auto index = std::make_shared<SqliteWalIndex>();
  db_ = std::make_unique<SqliteDb>(env, path, options.now_ms, options.checkpoint_pages, index);
  migrate(*db_);
  writers_ = std::make_unique<CommitGroup>(*db_);
  readers_ = std::make_unique<SqliteReaders>(env, path, std::move(options.now_ms), index);
}

SqliteCatalog::~SqliteCatalog() = default;

void SqliteCatalog::run_write(Isolation, const Work& work) { writers_->run(work); }

void SqliteCatalog::run_read(const Work& work) {
  const SqliteReaders::Turn db(*readers_);
  work(*db);
}

void SqliteCatalog::add_event(SqlDb& db, const std::string& job, const JobEventRow& event, bool) {
  db.post("UPDATE counters SET value = value + 1 WHERE name = 'job_events'");
  db.post(
      "INSERT INTO job_events(job, seq, type, data, position) "
      "SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, (SELECT value FROM counters WHERE name = 'job_events') "
      "FROM job_events WHERE job = ?",
      job, event.type, event.data, job);
}

std::string_view SqliteCatalog::next_moment() const {
  return "(SELECT 1 + MAX(COALESCE((SELECT MAX(touched) FROM blobs), 0), COALESCE((SELECT MAX(id) FROM "
         "blob_holds), 0), COALESCE((SELECT MAX(revision) FROM deployments), 0)))";
}

int64_t SqliteCatalog::last_event_position() {
  return read([](SqlDb& db) -> int64_t {
    const auto row = db.query("SELECT value FROM counters WHERE name = 'job_events'");
    return row->step() ? row->integer(0) : 0;
  });
}

uint64_t SqliteCatalog::database_bytes() {
  return read([](SqlDb& db) -> uint64_t {
    const auto number = [&](const char* pragma) {
      const auto row = db.query(pragma);
      return row->step() ? row->integer(0) : 0;
    };
    const int64_t pages = number("PRAGMA page_count") - number("PRAGMA freelist_count");
    return static_cast<uint64_t>(pages * number("PRAGMA page_size"));
  });
}

std::vector<std::string> SqliteCatalog::check() {
  return read([](SqlDb& db) -> std::vector<std::string> {
    std::vector<std::string> problems;
    const auto row = db.query("PRAGMA integrity_check");
    while (row->step()) {
      if (row->text(0) != "ok") problems.push_back("catalog: " + row->text(0));
    }
    const auto broken = db.query("PRAGMA foreign_key_check");
    while (broken->step()) problems.push_back("catalog: a row of " + broken->text(0) + " belongs to nothing");
    return problems;
  });
}

}  // namespace tensormill::storage
