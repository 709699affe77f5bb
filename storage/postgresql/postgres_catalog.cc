#include "storage/postgresql/postgres_catalog.h"

#include <algorithm>
#include <array>
#include <random>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "storage/postgresql/pg_schema.h"
#include "storage/postgresql/pg_watch.h"

namespace tensormill::storage {
namespace {

/// Of the same work, where other transactions come between or a connection is lost before it is done.
constexpr int kTries = 12;
constexpr int kLostTries = 3;
constexpr int kMaxPauseMs = 64;

/// Bits of a position that tell the events of one transaction apart. With 12 positions are whole numbers of
/// JavaScript for 70 years of 1,000 transactions a second.
constexpr int kEventBits = 12;

constexpr std::array<std::string_view, 29> kTables = {"models",
                                                      "model_blobs",
                                                      "names",
                                                      "packages",
                                                      "package_members",
                                                      "package_metadata",
                                                      "deployments",
                                                      "api_keys",
                                                      "job_submitters",
                                                      "job_needs",
                                                      "jobs",
                                                      "job_events",
                                                      "idempotency",
                                                      "answers",
                                                      "facts",
                                                      "audit",
                                                      "counters",
                                                      "tuning_records",
                                                      "tuning_sets",
                                                      "tuning_set_records",
                                                      "replicas",
                                                      "blobs",
                                                      "blob_sums",
                                                      "caller_sums",
                                                      "blob_holds",
                                                      "uploads",
                                                      "upload_chunks",
                                                      "job_logs",
                                                      "observed"};

/// Longer each time, and never the same for two that met.
void pause_before(int attempt) {
  std::random_device random;
  const int most = std::min(1 << attempt, kMaxPauseMs);
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % static_cast<unsigned>(most) + 1));
}

/// Tables that came from another cluster have events of its transactions, whose numbers may be higher than
/// ours: what is added to ours so that later events have later places.
int64_t settle_offset(PgConnection& db) {
  db.begin("SERIALIZABLE");
  const auto row = db.query("SELECT value, COALESCE((SELECT MAX(position) FROM job_events), 0) >> " +
                            std::to_string(kEventBits) +
                            ", "
                            "CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) "
                            "FROM counters WHERE name = 'event_offset'");
  if (!row->step()) throw Error(ErrorCode::kCorrupt, "the catalog has no offset of its events");
  int64_t offset = row->integer(0);
  const int64_t latest = row->integer(1);
  const int64_t next = row->integer(2);
  if (latest >= next + offset) {
    offset = latest - next + 1;
    db.run("UPDATE counters SET value = ? WHERE name = 'event_offset'", offset);
  }
  db.commit();
  return offset;
}

}  // namespace

PostgresCatalog::PostgresCatalog(PgOptions options) : pool_(std::move(options)) {
  const PgPool::Turn db(pool_);
  migrate_pg(*db, pg_migrations());
  const auto copying = db->query("SELECT 1 FROM counters WHERE name = 'copying'");
  if (copying->step())
    throw Error(ErrorCode::kConflict,
                "a catalog was being copied into this database and is not whole; copy it again");
  event_offset_ = settle_offset(*db);
  const auto row = db->query("SELECT id FROM catalog_version");
  if (row->step()) id_ = row->text(0);
  // A transaction writes its events with places that begin with its own number. So all events below the
  // oldest transaction that still runs are there, and none will come between them.
  fence_ = "((CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) + " +
           std::to_string(event_offset_) + ") << " + std::to_string(kEventBits) + ")";
  settled_ = "AND position < " + fence_ + " ";
}

PostgresCatalog::~PostgresCatalog() = default;

void PostgresCatalog::try_write(Isolation isolation, const Work& work, bool& committing) {
  const PgPool::Turn db(pool_);
  try {
    db->begin(isolation == Isolation::kSerial ? "SERIALIZABLE" : "READ COMMITTED");
    work(*db);
    committing = true;
    db->commit();
  } catch (const std::exception&) {
    db->roll_back();
    throw;
  }
}

void PostgresCatalog::run_write(Isolation isolation, const Work& work) {
  std::unique_lock serial(serial_, std::defer_lock);
  if (isolation == Isolation::kSerial) serial.lock();
  for (int attempt = 1;; ++attempt) {
    bool committing = false;
    try {
      try_write(isolation, work, committing);
      return;
    } catch (const PgError& error) {
      // Whether a commit was done whose answer did not come is not known here.
      if (committing && error.is_lost()) throw;
      const bool again = error.is_conflict() ? attempt < kTries : error.is_lost() && attempt < kLostTries;
      if (!again) throw;
    }
    pause_before(attempt);
  }
}

void PostgresCatalog::run_read(const Work& work) {
  for (int attempt = 1;; ++attempt) {
    try {
      const PgPool::Turn db(pool_);
      work(*db);
      return;
    } catch (const PgError& error) {
      if (!error.is_lost() || attempt == kLostTries) throw;
    }
  }
}

void PostgresCatalog::add_event(SqlDb& db, const std::string& job, const JobEventRow& event, bool first) {
  const int64_t number = static_cast<PgConnection&>(db).next_event();
  if (number >= int64_t{1} << kEventBits)
    throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(number) + " events at once");
  const std::string place =
      "((CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + ?) << " + std::to_string(kEventBits) + ") + ?";
  if (first) {
    db.post("INSERT INTO job_events(job, seq, type, data, position) VALUES(?, 1, ?, ?, " + place + ")", job,
            event.type, event.data, event_offset_, number);
    return;
  }
  db.post(
      "INSERT INTO job_events(job, seq, type, data, position) "
      "SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, " +
          place + " FROM job_events WHERE job = ?",
      job, event.type, event.data, event_offset_, number, job);
}

int64_t PostgresCatalog::last_event_position() {
  return read([this](SqlDb& db) -> int64_t {
    const auto row =
        db.query("SELECT CASE WHEN EXISTS(SELECT 1 FROM job_events) THEN " + fence_ + " - 1 ELSE 0 END");
    return row->step() ? row->integer(0) : 0;
  });
}

uint64_t PostgresCatalog::database_bytes() {
  return read([](SqlDb& db) -> uint64_t {
    std::string sum = "SELECT 0";
    for (const std::string_view table : kTables)
      sum += " + pg_total_relation_size(CAST('" + std::string(table) + "' AS regclass))";
    const auto row = db.query(sum);
    return row->step() ? static_cast<uint64_t>(row->integer(0)) : 0;
  });
}

std::vector<std::string> PostgresCatalog::check() {
  return read([](SqlDb& db) -> std::vector<std::string> {
    std::vector<std::string> problems;
    for (const std::string_view table : kTables) {
      try {
        db.query("SELECT COUNT(*) FROM " + std::string(table))->step();
      } catch (const PgError& error) {
        if (error.is_lost()) throw;
        problems.push_back(error.message());
      }
    }
    return problems;
  });
}

std::unique_ptr<CatalogWatch> PostgresCatalog::watch(std::function<void()> changed) {
  auto watch = std::make_unique<PgWatch>(pool_.options(), std::move(changed), [this] {
    const std::lock_guard lock(watch_mutex_);
    watch_ = nullptr;
  });
  const std::lock_guard lock(watch_mutex_);
  watch_ = watch.get();
  return watch;
}

void PostgresCatalog::tell_others() {
  const std::lock_guard lock(watch_mutex_);
  if (watch_ != nullptr) watch_->announce();
}

}  // namespace tensormill::storage
