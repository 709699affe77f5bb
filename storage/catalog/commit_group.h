/// Writers of one database whose transactions become durable together: what comes while a commit is on its
/// way to the disk goes into one transaction, each piece of work behind a savepoint of its own, and one
/// commit is for all. Who comes alone waits for nobody.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "storage/catalog/sqlite_db.h"

namespace tensormill::storage {

class CommitGroup {
public:
  using Work = std::function<void(SqlDb&)>;

  /// `db` is used by one caller of run() at a time, and must outlive this.
  explicit CommitGroup(SqliteDb& db) : db_(db) {}
  CommitGroup(const CommitGroup&) = delete;
  CommitGroup& operator=(const CommitGroup&) = delete;

  /// Runs `work` in a transaction, on this thread or on that of another caller. When it has returned, its
  /// effect is durable; when it throws, what `work` or the commit threw, there is none. May run `work`
  /// several times, of which all but the last are undone. Thread-safety: from many threads.
  void run(const Work& work);
  /// How many callers wait for a batch to begin that will have them.
  size_t waiting() const;

private:
  struct Waiting;
  using Batch = std::vector<Waiting*>;

  void run_batch(const Batch& batch);
  /// False when all of them are undone, and each is to be run alone.
  bool run_together(const Batch& batch);
  void run_behind_savepoint(Waiting& one);
  void run_alone(Waiting& one);

  SqliteDb& db_;
  mutable std::mutex mutex_;
  bool is_led_ = false;  ///< somebody runs a batch, or is about to
  Batch waiting_;
};

}  // namespace tensormill::storage
