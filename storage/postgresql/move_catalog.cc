#include "storage/postgresql/move_catalog.h"

#include <chrono>
#include <memory>
#include <optional>

#include "runtime/base/error.h"
#include "storage/catalog/migrations.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/postgresql/folder_mark.h"
#include "storage/postgresql/pg_schema.h"

namespace tensormill::storage {
namespace {

constexpr int kCheckpointPages = 1000;

int64_t clock_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class FileSide final : public CopySide {
public:
  FileSide(Env& env, const std::string& path) : db_(env, path, clock_ms, kCheckpointPages) { migrate(db_); }
  SqlDb& db() override { return db_; }
  void begin() override { db_.execute("BEGIN IMMEDIATE"); }
  void commit() override { db_.execute("COMMIT"); }

private:
  SqliteDb db_;
};

class DatabaseSide final : public CopySide {
public:
  explicit DatabaseSide(const CatalogPlace& place) : db_(options_of(place)) {
    migrate_pg(db_, pg_migrations());
  }
  SqlDb& db() override { return db_; }
  void begin() override { db_.begin("READ COMMITTED"); }
  void commit() override { db_.commit(); }
  /// All that is read from now on is of one moment.
  void hold_still() { db_.begin("REPEATABLE READ"); }
  std::string id() {
    const auto row = db_.query("SELECT id FROM catalog_version");
    return row->step() ? row->text(0) : "";
  }
  /// Rows that come later go on behind those that were copied.
  void advance_sequences() {
    for (const char* table : {"models", "packages", "jobs", "tuning_records", "tuning_sets", "audit"}) {
      const std::string name(table);
      db_.query("SELECT setval(pg_get_serial_sequence('" + name +
                "', 'seq'), COALESCE(MAX(seq), 1), MAX(seq) IS NOT NULL) FROM " + name)
          ->step();
    }
  }

private:
  static PgOptions options_of(const CatalogPlace& place) {
    PgOptions options;
    options.url = place.url;
    options.password_file = place.password_file;
    return options;
  }
  PgConnection db_;
};

CatalogCopy copy_still(Env& env, const std::string& path, DatabaseSide& database) {
  FileSide target(env, path);
  database.hold_still();
  const CatalogCopy result = copy_catalog(database, target);
  database.commit();
  end_copy(target);
  return result;
}

}  // namespace

CatalogCopy move_to_database(Env& env, const std::string& folder, const CatalogPlace& place) {
  const std::string file = folder + "/catalog.db";
  const std::string kept = file + ".migrated";
  const std::unique_ptr<EnvLock> lock = env.lock(file + ".lock");
  DatabaseSide database(place);
  CatalogCopy result;
  if (env.exists(file)) {
    {
      FileSide source(env, file);
      result = copy_catalog(source, database);
    }
    database.advance_sequences();
    set_folder_mark(env, folder, database.id());
    env.rename(file, kept);
    env.sync_folder(folder);
  } else if (!env.exists(kept) || folder_mark(env, folder) != database.id()) {
    throw Error(ErrorCode::kNotFound, folder + " has no catalog to move: there is no catalog.db");
  }
  end_copy(database);
  return result;
}

CatalogCopy copy_to_file(Env& env, const std::string& path, const CatalogPlace& place) {
  for (const char* suffix : {"", "-wal"}) env.remove_file(path + suffix);
  DatabaseSide database(place);
  return copy_still(env, path, database);
}

CatalogCopy move_to_file(Env& env, const std::string& folder, const CatalogPlace& place) {
  const std::string file = folder + "/catalog.db";
  const std::string incoming = file + ".incoming";
  const std::unique_ptr<EnvLock> lock = env.lock(file + ".lock");
  if (env.exists(file)) throw Error(ErrorCode::kConflict, folder + " has a catalog already: " + file);
  DatabaseSide database(place);
  const std::string mark = folder_mark(env, folder);
  if (!mark.empty() && mark != database.id()) {
    throw Error(ErrorCode::kConflict,
                folder + " belongs to the PostgreSQL catalog " + mark + ", this one is " + database.id());
  }
  const CatalogCopy result = copy_still(env, incoming, database);
  env.rename(incoming, file);
  env.sync_folder(folder);
  set_folder_mark(env, folder, "");
  return result;
}

}  // namespace tensormill::storage
