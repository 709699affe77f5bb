/// The lease of this process among those that share a catalog, renewed by a thread of its own. While it is
/// held, what the process holds and runs is its own; once it is over by the catalog's clock, others take
/// that. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "storage/catalog/shared_catalog.h"

namespace tensormill::storage {

class ReplicaLease {
public:
  /// Begins it: earlier runs of the same `name`, of which no process lives any more, lose what they had.
  /// Throws what the catalog throws.
  ReplicaLease(SharedCatalog& catalog, const std::string& name, const std::string& address,
               std::chrono::milliseconds lease);
  /// Ends it.
  ~ReplicaLease();
  ReplicaLease(const ReplicaLease&) = delete;
  ReplicaLease& operator=(const ReplicaLease&) = delete;

  const std::string& id() const { return row_.id; }
  const std::string& name() const { return row_.name; }
  /// So much of the lease is left that what is begun now, and takes less than half of it, ends within.
  bool is_sure();

private:
  void work(const std::stop_token& stop);
  /// Whether the catalog was reached.
  bool renew();

  SharedCatalog& catalog_;
  const ReplicaRow row_;
  const std::chrono::milliseconds lease_;
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::chrono::steady_clock::time_point sure_until_;
  std::jthread thread_;
};

}  // namespace tensormill::storage
