/// A connection to an SQLite database, its statements and transactions, as RAII values that throw.
/// Errors: Error(kDiskFull), Error(kIo), Error(kCorrupt) as the Env reports them; misuse is InternalError.
/// Connections of one process to one database share a SqliteWalIndex; a reading one sees what was committed
/// when its statement began, and waits for no writer. Thread-safety: one thread at a time; the owner locks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/digest.h"
#include "storage/catalog/rows.h"
#include "storage/catalog/sqlite_vfs.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tensormill::storage {

class SqliteDb;

/// A prepared statement with its bindings; rows are read by column number from 0.
class Statement {
public:
  Statement(SqliteDb& db, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int64_t value);
  Statement& bind(std::string_view value);
  Statement& bind(const Digest& value);
  Statement& bind(const std::string& value) { return bind(std::string_view(value)); }
  Statement& bind_null();
  template <typename T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }

  /// True while there is a row.
  bool step();
  int64_t integer(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  Digest digest(int column) const;
  std::optional<Digest> optional_digest(int column) const;

private:
  void check(int rc);
  SqliteDb& db_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 1;
};

class SqliteDb {
public:
  /// Opens or creates `path` through `env` for reading and writing: write-ahead log, synchronous FULL.
  /// `now_ms` is the clock that SQL sees as now_ms(). `index`: null, or what reading connections share with
  /// this one.
  SqliteDb(Env& env, const std::string& path, std::function<int64_t()> now_ms, int checkpoint_pages,
           std::shared_ptr<SqliteWalIndex> index = nullptr);
  /// Opens `path`, which a writing connection with `index` has open, for reading.
  SqliteDb(Env& env, const std::string& path, std::function<int64_t()> now_ms,
           std::shared_ptr<SqliteWalIndex> index);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  /// Runs statements without parameters.
  void execute(std::string_view sql);
  /// Prepares `sql` and binds `values` in order.
  template <typename... Values>
  std::unique_ptr<Statement> query(std::string_view sql, const Values&... values) {
    auto statement = std::make_unique<Statement>(*this, sql);
    (statement->bind(values), ...);
    return statement;
  }
  /// Runs one statement and returns the number of rows it changed.
  template <typename... Values>
  int64_t run(std::string_view sql, const Values&... values) {
    const std::unique_ptr<Statement> statement = query(sql, values...);
    while (statement->step()) continue;
    return changes();
  }
  int64_t changes() const;
  bool in_transaction() const;
  int64_t now_ms() const { return now_ms_(); }
  [[noreturn]] void fail(int rc, std::string_view what);

private:
  friend class Statement;
  void open(const std::string& path, int flags);

  SqliteVfs vfs_;
  std::function<int64_t()> now_ms_;
  sqlite3* connection_ = nullptr;
};

/// The sequence that the rows of a page, newest first, are below.
inline int64_t before(const PageRequest& page) {
  return page.cursor == 0 ? std::numeric_limits<int64_t>::max() : page.cursor;
}

/// Rolls back unless committed.
class Transaction {
public:
  explicit Transaction(SqliteDb& db) : db_(db) { db_.execute("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() { db_.execute("COMMIT"); }

private:
  SqliteDb& db_;
};

}  // namespace tensormill::storage
