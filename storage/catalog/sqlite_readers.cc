#include "storage/catalog/sqlite_readers.h"

#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

/// A long read, as that of a collection, keeps one of them busy; few are ever needed, and each has pages.
constexpr int kMost = 4;

}  // namespace

SqliteReaders::SqliteReaders(Env& env, std::string path, std::function<int64_t()> now_ms,
                             std::shared_ptr<SqliteWalIndex> index)
    : env_(env), path_(std::move(path)), now_ms_(std::move(now_ms)), index_(std::move(index)) {}

std::unique_ptr<SqliteDb> SqliteReaders::take() {
  {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [&] { return !idle_.empty() || made_ < kMost; });
    if (!idle_.empty()) {
      std::unique_ptr<SqliteDb> db = std::move(idle_.back());
      idle_.pop_back();
      return db;
    }
    ++made_;
  }
  try {
    return std::make_unique<SqliteDb>(env_, path_, now_ms_, index_);
  } catch (const std::exception&) {
    {
      const std::lock_guard lock(mutex_);
      --made_;
    }
    free_.notify_one();
    throw;
  }
}

void SqliteReaders::give_back(std::unique_ptr<SqliteDb> db) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(db));
  }
  free_.notify_one();
}

}  // namespace tensormill::storage
