/// Connections to one database, as many as are needed at a time up to a bound; each is made when it is first
/// needed and kept. Thread-safety: all methods from many threads; a Turn belongs to one.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/postgresql/pg_connection.h"

namespace tensormill::storage {

class PgPool {
public:
  explicit PgPool(PgOptions options) : options_(std::move(options)) {}

  /// A connection for as long as it lives; its statements must be gone by then. Waits for one, and throws
  /// Error(kUnavailable) when there is none in good time or the database cannot be reached.
  class Turn {
  public:
    explicit Turn(PgPool& pool) : pool_(pool), connection_(pool.take()) {}
    ~Turn() { pool_.give_back(std::move(connection_)); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    PgConnection& operator*() const { return *connection_; }
    PgConnection* operator->() const { return connection_.get(); }

  private:
    PgPool& pool_;
    std::unique_ptr<PgConnection> connection_;
  };

  const PgOptions& options() const { return options_; }

private:
  std::unique_ptr<PgConnection> take();
  void give_back(std::unique_ptr<PgConnection> connection);

  const PgOptions options_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<PgConnection>> idle_;
  int made_ = 0;
};

}  // namespace tensormill::storage
