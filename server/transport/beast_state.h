/// What the connections of one Beast transport share.
#pragma once

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "server/transport/executor.h"
#include "server/transport/transport.h"

namespace tensormill::transport {

class Connection;

/// The connections that are open.
/// Thread-safety: all methods from any thread.
class ConnectionSet {
public:
  void add(Connection* key, std::weak_ptr<Connection> connection);
  void remove(Connection* key);
  int size() const;
  std::vector<std::shared_ptr<Connection>> all() const;
  /// Waits until none is left; false after `timeout`.
  bool wait_until_empty(std::chrono::milliseconds timeout) const;

private:
  mutable std::mutex mutex_;
  mutable std::condition_variable empty_;
  std::map<Connection*, std::weak_ptr<Connection>> connections_;
};

struct BeastState {
  static constexpr int kMaxStreams = 64;

  explicit BeastState(const TransportOptions& transport_options)
      : options(transport_options),
        workers(options.workers, options.queue),
        reserved(options.reserved_workers, options.queue),
        streams(kMaxStreams, 0) {}

  /// Whether a request may run on the I/O thread that asks; then give_back_thread() follows. One I/O thread
  /// is always left to the others.
  bool take_thread() {
    if (direct.fetch_add(1, std::memory_order_relaxed) < options.io_threads - 1) return true;
    give_back_thread();
    return false;
  }
  void give_back_thread() { direct.fetch_sub(1, std::memory_order_relaxed); }

  const TransportOptions options;
  std::optional<boost::asio::ssl::context> tls;  ///< set before the first connection, or never
  http::Handler* handler = nullptr;
  Executor workers;
  Executor reserved;
  Executor streams;  ///< live responses hold a thread each
  ConnectionSet connections;
  std::atomic<bool> draining{false};
  std::atomic<int> direct{0};  ///< I/O threads that run a handler now
};

}  // namespace tensormill::transport
