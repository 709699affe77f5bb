/// Connections for reading, as many as there are readers at a time up to a bound; each is made when it is
/// first needed and kept. Thread-safety: all methods from many threads; a Turn belongs to one.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/catalog/sqlite_db.h"

namespace tensormill::storage {

class SqliteReaders {
public:
  /// Of the database that a writing connection with `index` has open; it outlives this.
  SqliteReaders(Env& env, std::string path, std::function<int64_t()> now_ms,
                std::shared_ptr<SqliteWalIndex> index);

  /// A connection for as long as it lives; its statements must be gone by then. Waits for one.
  class Turn {
  public:
    explicit Turn(SqliteReaders& readers) : readers_(readers), db_(readers.take()) {}
    ~Turn() { readers_.give_back(std::move(db_)); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    SqliteDb& operator*() const { return *db_; }
    SqliteDb* operator->() const { return db_.get(); }

  private:
    SqliteReaders& readers_;
    std::unique_ptr<SqliteDb> db_;
  };

private:
  std::unique_ptr<SqliteDb> take();
  void give_back(std::unique_ptr<SqliteDb> db);

  Env& env_;
  const std::string path_;
  const std::function<int64_t()> now_ms_;
  const std::shared_ptr<SqliteWalIndex> index_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<SqliteDb>> idle_;
  int made_ = 0;
};

}  // namespace tensormill::storage
