/// What the connections of one Beast transport share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/transport/connection_limits.h"
#include "server/transport/executor.h"
#include "server/transport/in_work.h"
#include "server/transport/tls.h"
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

/// One live response; it counts while this lives. Thread-safety: may end on any thread.
class LivePlace {
public:
  explicit LivePlace(std::atomic<int>& count) : count_(count), number_(++count) {}
  ~LivePlace() { --count_; }
  LivePlace(const LivePlace&) = delete;
  LivePlace& operator=(const LivePlace&) = delete;
  /// How many there were with this one: of two that come for the last place one gets it.
  int number() const { return number_; }

private:
  std::atomic<int>& count_;
  const int number_;
};

struct BeastState {
  /// Of what reads and unfolds large bodies: a third of a thread of the others, where they want the processor
  /// at the same time, and three times one of an import. They hold nothing for long that the others need.
  static constexpr int kBulkNice = 5;

  explicit BeastState(const TransportOptions& transport_options)
      : options(transport_options),
        workers(options.workers, options.queue, options.max_connections),
        bulk(options.workers, options.queue, options.max_connections, kBulkNice),
        reserved(options.reserved_workers, options.queue, 0),
        // A place is free a moment before the thread of the response that had it.
        streams(options.max_streams, options.max_streams, 0),
        limits(std::make_shared<ConnectionLimits>(
            options.max_connections, options.max_connections_per_address, options.unlimited_addresses)) {}

  /// Throws Error(kUnavailable) when all are taken.
  std::unique_ptr<LivePlace> take_live_place() {
    auto place = std::make_unique<LivePlace>(live);
    if (place->number() <= options.max_streams) return place;
    throw Error(ErrorCode::kUnavailable, "there are " + std::to_string(options.max_streams) +
                                             " live responses already, which is http.max_streams");
  }

  void report_refusal(std::string_view reason) const {
    if (options.on_refused) options.on_refused(reason);
  }

  Executor& executor_of(http::Lane lane) {
    if (lane == http::Lane::kReserved) return reserved;
    return lane == http::Lane::kBulk ? bulk : workers;
  }

  const TransportOptions options;
  std::unique_ptr<TlsFiles> tls;  ///< set before the first connection, or never
  http::Handler* handler = nullptr;
  Executor workers;
  Executor bulk;
  Executor reserved;
  Executor streams;                                ///< live responses hold a thread each
  std::atomic<int> live{0};                        ///< places of live responses that are taken
  const std::shared_ptr<ConnectionLimits> limits;  ///< never null
  ConnectionSet connections;
  std::atomic<int> refused{0};  ///< connections that are being refused, as there are too many
  InWork in_work;               ///< requests that a handler has, or that are being answered
  std::atomic<bool> draining{false};
};

}  // namespace tensormill::transport
