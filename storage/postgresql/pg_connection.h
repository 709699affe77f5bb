/// A connection to PostgreSQL. Statements are prepared once, sent in pipelines (what is posted goes with the
/// next statement whose rows are read, or with the commit) and bounded in time. Values travel in binary, so a
/// text is the bytes that it is. Errors: PgError; a connection that broke stays broken. Thread-safety: one
/// thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/error.h"
#include "storage/catalog/sql_db.h"
#include "storage/postgresql/libpq.h"
#include "storage/postgresql/pg_url.h"

namespace tensormill::storage {

/// What the database refused, by its SQLSTATE; "08006" also where the connection is lost.
class PgError : public Error {
public:
  PgError(std::string state, const std::string& message);
  const std::string& state() const { return state_; }
  /// Another transaction came between: the same work may do next time.
  bool is_conflict() const;
  bool is_lost() const { return state_.starts_with("08") || state_.starts_with("57P"); }

private:
  std::string state_;
};

struct PgOptions {
  std::string url;
  std::string password_file;  ///< "" for none; read at each connection, so that passwords may change
  std::chrono::milliseconds patience{30'000};  ///< for the answer to one pipeline
  int connections = 8;                         ///< at most, beside one that listens
  std::function<int64_t()> now_ms = nullptr;   ///< of tests; null: the database's clock
};

class PgConnection;

class PgStatement final : public SqlStatement {
public:
  PgStatement(PgConnection& connection, std::string sql);
  bool step() override;
  int64_t integer(int column) const override;
  std::string text(int column) const override;
  bool is_null(int column) const override;

private:
  friend class PgConnection;
  struct Value {
    Oid type = 0;
    bool null = false;
    std::string bytes = {};
  };
  void bind_integer(int64_t value) override;
  void bind_text(std::string_view value) override;
  void bind_null() override;

  PgConnection& connection_;
  const std::string sql_;
  std::vector<Value> values_;
  std::unique_ptr<PGresult, decltype(&PQclear)> result_;
  bool ran_ = false;
  int row_ = -1;
};

class PgConnection final : public SqlDb {
public:
  /// Throws Error(kUnavailable) when the database cannot be reached or does not let us in,
  /// Error(kNotSupported) for one that is too old.
  explicit PgConnection(const PgOptions& options);
  ~PgConnection() override;

  std::unique_ptr<SqlStatement> prepare(std::string_view sql) override;
  int64_t changes() const override { return changes_; }
  int64_t now_ms() const override;
  std::string_view skip_locked() const override { return "FOR UPDATE SKIP LOCKED "; }
  std::string_view queue() const override { return "jobs"; }

  /// Begins with the next statement.
  void begin(std::string_view isolation);
  /// Sends what is posted, and commits. Throws PgError when there is no commit, or none is known of.
  void commit();
  /// Does not throw: a connection that cannot roll back is broken.
  void roll_back() noexcept;
  /// Sends what is posted.
  void flush();
  /// Runs statements without parameters, outside of a transaction of begin().
  void script(const std::string& sql);
  bool is_broken() const;
  /// Nothing is open or waits.
  bool is_idle() const { return !in_transaction_ && pending_.empty(); }
  /// Counts from 0 in each transaction: distinguishes its events.
  int64_t next_event() { return events_++; }

  // For who listens.
  int socket() const;
  /// Whether another connection has notified this one. Reads what has come, and waits for nothing.
  bool take_notices();

private:
  friend class PgStatement;
  struct Pending {
    std::string prepared;  ///< the key of a statement to prepare; "" for one that runs
    PgStatement* reads = nullptr;
  };

  void send(std::unique_ptr<SqlStatement> statement) override;
  void enqueue(const PgStatement& statement, PgStatement* reads);
  void send_statement(const PgStatement& statement);
  std::string prepared_name(const PgStatement& statement);
  std::unique_ptr<PGresult, decltype(&PQclear)> next_result();
  void wait_for_answer();
  /// Reads the answer to one statement; its error if it had one.
  void take(const Pending& pending, std::unique_ptr<PgError>& error);
  std::string translated(std::string_view sql) const;
  void check(bool ok);
  [[noreturn]] void lose(const std::string& why);

  const Libpq& libpq_;
  const std::chrono::milliseconds patience_;
  const std::function<int64_t()> now_ms_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::unordered_map<std::string, std::string> prepared_;  ///< text and types to name
  int64_t names_ = 0;
  std::vector<Pending> pending_;
  std::chrono::steady_clock::time_point deadline_{};
  int64_t changes_ = 0;
  int64_t events_ = 0;
  bool in_transaction_ = false;
  bool broken_ = false;
};

}  // namespace tensormill::storage
