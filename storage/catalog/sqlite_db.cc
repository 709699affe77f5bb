#include "storage/catalog/sqlite_db.h"

#include <sqlite3.h>

#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

void sql_now_ms(sqlite3_context* context, int, sqlite3_value**) {
  const auto* clock = static_cast<const std::function<int64_t()>*>(sqlite3_user_data(context));
  sqlite3_result_int64(context, (*clock)());
}

}  // namespace

void SqliteDb::open(const std::string& path, int flags) {
  flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int rc = sqlite3_open_v2(path.c_str(), &connection_, flags, vfs_.name().c_str());
  if (rc != SQLITE_OK) fail(rc, "cannot open " + path);
  sqlite3_create_function(connection_, "now_ms", 0, SQLITE_UTF8, &now_ms_, sql_now_ms, nullptr, nullptr);
  execute("PRAGMA temp_store = MEMORY");
  // KiB of pages; the rest is in the system's cache. By default they grow to 2 MiB over a server's days.
  execute("PRAGMA cache_size = -512");
}

SqliteDb::SqliteDb(Env& env, const std::string& path, std::function<int64_t()> now_ms, int checkpoint_pages,
                   std::shared_ptr<SqliteWalIndex> index)
    : vfs_(env, index ? std::move(index) : std::make_shared<SqliteWalIndex>()), now_ms_(std::move(now_ms)) {
  try {
    open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute("PRAGMA foreign_keys = ON");
    // The one that writes holds the pages of a queue of thousands of jobs, which each claim looks at.
    execute("PRAGMA cache_size = -8192");
    execute("PRAGMA wal_autocheckpoint = " + std::to_string(checkpoint_pages));
  } catch (const std::exception&) {
    close();
    throw;
  }
}

SqliteDb::SqliteDb(Env& env, const std::string& path, std::function<int64_t()> now_ms,
                   std::shared_ptr<SqliteWalIndex> index)
    : vfs_(env, std::move(index)), now_ms_(std::move(now_ms)) {
  try {
    // Readers write to the log's index, where they say what they read.
    open(path, SQLITE_OPEN_READWRITE);
    execute("PRAGMA query_only = ON");
    // The writer folds the log when it closes.
    sqlite3_db_config(connection_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  } catch (const std::exception&) {
    close();
    throw;
  }
}

SqliteDb::~SqliteDb() { close(); }

void SqliteDb::close() {
  for (const Idle& idle : idle_) sqlite3_finalize(idle.statement);
  idle_.clear();
  sqlite3_close_v2(std::exchange(connection_, nullptr));
}

sqlite3_stmt* SqliteDb::take_idle(std::string_view sql) {
  for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
    if (idle->sql != sql) continue;
    sqlite3_stmt* const statement = idle->statement;
    idle_.erase(idle);
    return statement;
  }
  return nullptr;
}

void SqliteDb::keep_idle(std::string sql, sqlite3_stmt* statement) {
  idle_.push_front({std::move(sql), statement});
  if (idle_.size() <= kMostIdle) return;
  sqlite3_finalize(idle_.back().statement);
  idle_.pop_back();
}

void SqliteDb::fail(int rc, std::string_view what) {
  const std::unique_ptr<Error> cause = vfs_.take_error();
  if (cause) {
    Error error = *cause;
    error.add_context(what);
    throw error;
  }
  const std::string message =
      std::string(what) + ": " + (connection_ != nullptr ? sqlite3_errmsg(connection_) : sqlite3_errstr(rc));
  switch (rc & 0xff) {
    case SQLITE_FULL:
      throw Error(ErrorCode::kDiskFull, message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw Error(ErrorCode::kCorrupt, message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(ErrorCode::kUnavailable, message);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      throw Error(ErrorCode::kIo, message);
    default:
      throw InternalError("sqlite " + std::to_string(rc) + ": " + message);
  }
}

void SqliteDb::execute(std::string_view sql) {
  const int rc = sqlite3_exec(connection_, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) fail(rc, "catalog");
}

std::unique_ptr<SqlStatement> SqliteDb::prepare(std::string_view sql) {
  return std::make_unique<SqliteStatement>(*this, sql);
}

int64_t SqliteDb::changes() const { return sqlite3_changes64(connection_); }
bool SqliteDb::in_transaction() const { return sqlite3_get_autocommit(connection_) == 0; }

Transaction::~Transaction() {
  if (!db_.in_transaction()) return;
  try {
    db_.execute("ROLLBACK");
  } catch (const Error&) {
    // The error that led here is the one to report; SQLite rolls back at the next use of the file.
  }
}

SqliteStatement::SqliteStatement(SqliteDb& db, std::string_view sql)
    : db_(db), sql_(sql), statement_(db.take_idle(sql)) {
  if (statement_ != nullptr) return;
  const int rc = sqlite3_prepare_v3(db_.connection_, sql_.data(), static_cast<int>(sql_.size()),
                                    SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (rc != SQLITE_OK) db_.fail(rc, "catalog: " + sql_);
}

SqliteStatement::~SqliteStatement() {
  // What a step that failed said was told then.
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  db_.keep_idle(sql_, statement_);
}

void SqliteStatement::check(int rc) {
  if (rc != SQLITE_OK) db_.fail(rc, "catalog: bind");
}

void SqliteStatement::bind_integer(int64_t value) { check(sqlite3_bind_int64(statement_, next_++, value)); }

void SqliteStatement::bind_text(std::string_view value) {
  // An empty view may have no data, which SQLite would take for NULL.
  const char* data = value.data() != nullptr ? value.data() : "";
  check(sqlite3_bind_text64(statement_, next_++, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::bind_null() { check(sqlite3_bind_null(statement_, next_++)); }

bool SqliteStatement::step() {
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  db_.fail(rc, "catalog");
}

int64_t SqliteStatement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::string SqliteStatement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(size));
}

bool SqliteStatement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

}  // namespace tensormill::storage
