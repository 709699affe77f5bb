/// A connection to an SQLite database, its statements and transactions, as RAII values that throw.
/// Errors: Error(kDiskFull), Error(kIo), Error(kCorrupt) as the Env reports them; misuse is InternalError.
/// Connections of one process to one database share a SqliteWalIndex; a reading one sees what was committed
/// when its statement began, and waits for no writer. Thread-safety: one thread at a time; the owner locks.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "storage/catalog/sql_db.h"
#include "storage/catalog/sqlite_vfs.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tensormill::storage {

class SqliteDb;

class SqliteStatement final : public SqlStatement {
public:
  SqliteStatement(SqliteDb& db, std::string_view sql);
  ~SqliteStatement() override;

  bool step() override;
  int64_t integer(int column) const override;
  std::string text(int column) const override;
  bool is_null(int column) const override;

private:
  void bind_integer(int64_t value) override;
  void bind_text(std::string_view value) override;
  void bind_null() override;
  void check(int rc);
  SqliteDb& db_;
  const std::string sql_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 1;
};

class SqliteDb final : public SqlDb {
public:
  /// Opens or creates `path` through `env` for reading and writing: write-ahead log, synchronous FULL.
  /// `now_ms` is the clock that SQL sees as now_ms(). `index`: null, or what reading connections share with
  /// this one.
  SqliteDb(Env& env, const std::string& path, std::function<int64_t()> now_ms, int checkpoint_pages,
           std::shared_ptr<SqliteWalIndex> index = nullptr);
  /// Opens `path`, which a writing connection with `index` has open, for reading.
  SqliteDb(Env& env, const std::string& path, std::function<int64_t()> now_ms,
           std::shared_ptr<SqliteWalIndex> index);
  ~SqliteDb() override;

  /// Runs statements without parameters.
  void execute(std::string_view sql);
  std::unique_ptr<SqlStatement> prepare(std::string_view sql) override;
  int64_t changes() const override;
  int64_t now_ms() const override { return now_ms_(); }
  std::string_view skip_locked() const override { return ""; }
  std::string_view queue() const override { return "jobs INDEXED BY jobs_to_claim"; }
  bool in_transaction() const;
  [[noreturn]] void fail(int rc, std::string_view what);

private:
  friend class SqliteStatement;
  /// To parse and plan a statement costs as much as to run a small one, and the texts are few: those that
  /// ended are stored, the latest first.
  struct Idle {
    std::string sql;
    sqlite3_stmt* statement;
  };
  static constexpr size_t kMostIdle = 64;
  /// An idle one of this text, which is the caller's then, or null.
  sqlite3_stmt* take_idle(std::string_view sql);
  void keep_idle(std::string sql, sqlite3_stmt* statement);
  void close();
  void open(const std::string& path, int flags);

  SqliteVfs vfs_;
  std::function<int64_t()> now_ms_;
  sqlite3* connection_ = nullptr;
  std::list<Idle> idle_;
};

/// Rolls back unless committed.
class Transaction {
public:
  explicit Transaction(SqliteDb& db) : db_(db) { SqliteStatement(db_, "BEGIN IMMEDIATE").step(); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() { SqliteStatement(db_, "COMMIT").step(); }

private:
  SqliteDb& db_;
};

}  // namespace tensormill::storage
