#include "storage/catalog/commit_group.h"

#include <exception>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {

struct CommitGroup::Waiting {
  explicit Waiting(const Work& its_work) : work(&its_work) {}

  const Work* work;
  std::condition_variable changed;
  bool leads = false;
  bool is_done = false;
  std::exception_ptr error = nullptr;  ///< of this one alone: who catches an Error may add to it
};

void CommitGroup::run(const Work& work) {
  Waiting own(work);
  std::unique_lock lock(mutex_);
  waiting_.push_back(&own);
  if (is_led_) {
    own.changed.wait(lock, [&] { return own.leads || own.is_done; });
  } else {
    is_led_ = own.leads = true;
  }
  if (own.leads) {
    // Its own is one of them.
    const Batch batch = std::exchange(waiting_, {});
    lock.unlock();
    run_batch(batch);
    lock.lock();
    for (Waiting* one : batch) {
      one->is_done = true;
      if (one != &own) one->changed.notify_one();
    }
    // Those that came meanwhile have a leader among themselves, so that nobody works for others for ever.
    is_led_ = !waiting_.empty();
    if (is_led_) {
      waiting_.front()->leads = true;
      waiting_.front()->changed.notify_one();
    }
  }
  if (own.error) std::rethrow_exception(own.error);
}

size_t CommitGroup::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void CommitGroup::run_batch(const Batch& batch) {
  if (batch.size() > 1 && run_together(batch)) return;
  for (Waiting* one : batch) run_alone(*one);
}

bool CommitGroup::run_together(const Batch& batch) {
  try {
    Transaction transaction(db_);
    for (Waiting* one : batch) {
      run_behind_savepoint(*one);
      // A full disk ends the transaction as a whole, with what came before.
      if (!db_.in_transaction()) return false;
    }
    transaction.commit();
    return true;
  } catch (const std::exception&) {
    // It could not begin or could not be committed: which of them had to do with that shows when each runs
    // alone, and has the error then.
    return false;
  }
}

void CommitGroup::run_behind_savepoint(Waiting& one) {
  one.error = nullptr;
  SqliteStatement(db_, "SAVEPOINT one").step();
  try {
    (*one.work)(db_);
  } catch (const std::exception&) {
    one.error = std::current_exception();
  }
  if (!db_.in_transaction()) return;
  if (one.error) SqliteStatement(db_, "ROLLBACK TO one").step();
  SqliteStatement(db_, "RELEASE one").step();
}

void CommitGroup::run_alone(Waiting& one) {
  one.error = nullptr;
  try {
    Transaction transaction(db_);
    (*one.work)(db_);
    transaction.commit();
  } catch (const std::exception&) {
    one.error = std::current_exception();
  }
}

}  // namespace tensormill::storage
