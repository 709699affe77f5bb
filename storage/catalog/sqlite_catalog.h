/// The catalog in an SQLite file. One process at a time: the file is locked for the life of the object.
/// Thread-safety: as Catalog; one connection that writes, for writers that come together in one transaction
/// (CommitGroup), and a few that read beside it: a read sees what was committed when it began and waits for
/// no commit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/catalog/sql_catalog.h"
#include "storage/env/env.h"

namespace tensormill::storage {

class CommitGroup;
class SqliteDb;
class SqliteReaders;

struct SqliteCatalogOptions {
  /// The catalog's clock, milliseconds since 1970; null: the system's.
  std::function<int64_t()> now_ms = nullptr;
  /// Pages in the write-ahead log after which it is folded into the database.
  int checkpoint_pages = 1000;
};

class SqliteCatalog final : public SqlCatalog {
public:
  /// Opens `path`, creates it when absent, and migrates it. Throws Error(kInUse) when another process has it,
  /// Error(kNotSupported) when it is newer than this program.
  SqliteCatalog(Env& env, const std::string& path, SqliteCatalogOptions options = {});
  ~SqliteCatalog() override;

  std::unique_ptr<CatalogWatch> watch(std::function<void()>) override { return nullptr; }
  int64_t last_event_position() override;
  uint64_t database_bytes() override;
  std::vector<std::string> check() override;

private:
  void run_write(Isolation isolation, const Work& work) override;
  void run_read(const Work& work) override;
  void add_event(SqlDb& db, const std::string& job, const JobEventRow& event, bool first) override;
  bool is_shared() const override { return false; }
  std::string_view next_moment() const override;

  std::unique_ptr<EnvLock> lock_;
  std::unique_ptr<SqliteDb> db_;
  std::unique_ptr<CommitGroup> writers_;
  std::unique_ptr<SqliteReaders> readers_;  ///< after the writer, so that they close before it
};

}  // namespace tensormill::storage
