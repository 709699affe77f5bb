/// Tells the processes that have one database open that jobs have changed: a thread that listens, and that
/// notifies for this process, no more often than a person could tell. A notification is a hint: it may be
/// late or lost, so the watcher looks now and then in any case, and more often while it has no connection.
/// Thread-safety: announce() from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "runtime/base/file.h"
#include "storage/catalog/catalog.h"
#include "storage/postgresql/pg_connection.h"

namespace tensormill::storage {

class PgWatch final : public CatalogWatch {
public:
  /// `closed` is called first when the watch ends.
  PgWatch(PgOptions options, std::function<void()> changed, std::function<void()> closed);
  ~PgWatch() override;
  /// This process has changed jobs.
  void announce();

private:
  void run(const std::stop_token& stop);
  /// Until the socket (none: -1) has something, there is something to announce, or `timeout` has passed; true
  /// when it has.
  bool wait(int socket, std::chrono::milliseconds timeout);
  void wake();

  const PgOptions options_;
  const std::function<void()> changed_;
  const std::function<void()> closed_;
  FileDescriptor wakes_;
  std::atomic<bool> announced_{false};
  std::jthread thread_;
};

}  // namespace tensormill::storage
