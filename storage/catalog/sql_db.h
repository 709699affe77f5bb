/// What the catalog's code needs of a database that speaks SQL: statements with bindings, as values that
/// throw. Both back ends understand the SQL that is written for it: placeholders are `?`, `now_ms()` is the
/// catalog's clock, an integer is of 64 bits, a text is any bytes where its column is of free text. Errors:
/// as Catalog states. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/digest.h"
#include "storage/catalog/rows.h"

namespace tensormill::storage {

/// A statement with its bindings; it runs when the first row is asked for. Columns are numbered from 0.
class SqlStatement {
public:
  SqlStatement() = default;
  virtual ~SqlStatement() = default;
  SqlStatement(const SqlStatement&) = delete;
  SqlStatement& operator=(const SqlStatement&) = delete;

  SqlStatement& bind(int64_t value) { return bind_integer(value), *this; }
  SqlStatement& bind(std::string_view value) { return bind_text(value), *this; }
  SqlStatement& bind(const std::string& value) { return bind_text(value), *this; }
  SqlStatement& bind(const Digest& value) { return bind_text(value.text()), *this; }
  template <typename T>
  SqlStatement& bind(const std::optional<T>& value) {
    if (value) return bind(*value);
    return bind_null(), *this;
  }

  /// True while there is a row.
  virtual bool step() = 0;
  virtual int64_t integer(int column) const = 0;
  virtual std::string text(int column) const = 0;
  virtual bool is_null(int column) const = 0;
  Digest digest(int column) const;
  std::optional<Digest> optional_digest(int column) const;

protected:
  virtual void bind_integer(int64_t value) = 0;
  virtual void bind_text(std::string_view value) = 0;
  virtual void bind_null() = 0;
};

class SqlDb {
public:
  SqlDb() = default;
  virtual ~SqlDb() = default;
  SqlDb(const SqlDb&) = delete;
  SqlDb& operator=(const SqlDb&) = delete;

  virtual std::unique_ptr<SqlStatement> prepare(std::string_view sql) = 0;
  /// Rows that the last statement of run() changed.
  virtual int64_t changes() const = 0;
  virtual int64_t now_ms() const = 0;
  /// What a SELECT ends with so that it takes rows that nobody else is about to change, and waits for none.
  virtual std::string_view skip_locked() const = 0;
  /// The table of jobs, for those that are queued: by the index of the queue, where the planner would else
  /// take one that holds all jobs that ever ended as well.
  virtual std::string_view queue() const = 0;

  /// Prepares `sql` and binds `values` in order.
  template <typename... Values>
  std::unique_ptr<SqlStatement> query(std::string_view sql, const Values&... values) {
    std::unique_ptr<SqlStatement> statement = prepare(sql);
    (statement->bind(values), ...);
    return statement;
  }
  /// Runs one statement and returns the number of rows it changed.
  template <typename... Values>
  int64_t run(std::string_view sql, const Values&... values) {
    const std::unique_ptr<SqlStatement> statement = query(sql, values...);
    while (statement->step()) continue;
    return changes();
  }
  /// Runs one statement of which nothing is to be known but that it did not fail. It may be sent only with
  /// the next one, and its error be thrown by that one or by the commit.
  template <typename... Values>
  void post(std::string_view sql, const Values&... values) {
    send(query(sql, values...));
  }

protected:
  virtual void send(std::unique_ptr<SqlStatement> statement) {
    while (statement->step()) continue;
  }
};

/// The sequence that the rows of a page, newest first, are below.
inline int64_t before(const PageRequest& page) {
  return page.cursor == 0 ? std::numeric_limits<int64_t>::max() : page.cursor;
}

/// "?, ?, ?" for an IN list.
std::string marks(size_t count);

}  // namespace tensormill::storage
