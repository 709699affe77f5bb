#include "storage/postgresql/pg_pool.h"

#include <utility>

namespace tensormill::storage {

std::unique_ptr<PgConnection> PgPool::take() {
  {
    std::unique_lock lock(mutex_);
    const bool free = free_.wait_for(lock, options_.patience,
                                     [&] { return !idle_.empty() || made_ < options_.connections; });
    if (!free) {
      throw Error(ErrorCode::kUnavailable,
                  "catalog: all " + std::to_string(options_.connections) + " connections are in use");
    }
    if (!idle_.empty()) {
      std::unique_ptr<PgConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
    ++made_;
  }
  try {
    return std::make_unique<PgConnection>(options_);
  } catch (const std::exception&) {
    {
      const std::lock_guard lock(mutex_);
      --made_;
    }
    free_.notify_one();
    throw;
  }
}

void PgPool::give_back(std::unique_ptr<PgConnection> connection) {
  if (!connection->is_broken() && !connection->is_idle()) connection->roll_back();
  std::vector<std::unique_ptr<PgConnection>> gone;
  {
    const std::lock_guard lock(mutex_);
    if (connection->is_broken()) {
      // What broke one has probably broken those that wait, too; whoever needs one makes it anew.
      made_ -= static_cast<int>(idle_.size()) + 1;
      gone = std::move(idle_);
      idle_.clear();
      gone.push_back(std::move(connection));
    } else {
      idle_.push_back(std::move(connection));
    }
  }
  free_.notify_all();
}

}  // namespace tensormill::storage
