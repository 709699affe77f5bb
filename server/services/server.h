/// The whole process behind `tensormill serve`: store, workers, services, transport.
/// Thread-safety: one thread starts and stops it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/settings.h"

namespace tensormill::http {
class Handler;
}
namespace tensormill::services {
struct Services;
}
namespace tensormill::metrics {
class Registry;
struct AnsweredRequest;
}  // namespace tensormill::metrics
namespace tensormill::storage {
class Env;
}

namespace tensormill {
class Error;
class MemoryBudget;
}  // namespace tensormill

namespace tensormill::server {

/// Store, workers and services; what is in front of them (API and transport) is server/cli's.
class Server {
public:
  /// Opens the store (for a read-only server: reads the packages), takes up what an earlier process left,
  /// loads the deployments. Throws Error(kInUse) when another process has the store. `env` is the file system
  /// of the store, borrowed; null: the machine's, or, for a read-only server, memory.
  explicit Server(const config::Settings& settings, storage::Env* env = nullptr);
  /// As stop.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const services::Services& services() const;
  /// Of all requests in flight, for the API in front of the services.
  std::shared_ptr<MemoryBudget> memory();
  metrics::Registry& metrics();
  /// Keeps the request in the audit log that /v1/audit shows. Thread-safety: from many threads.
  void audit(const metrics::AnsweredRequest& request);
  /// As KeyFile::on_change, where there is a key file. Before requests come.
  void on_key_file_change(std::function<void(const Error*)> tell);
  /// Tells clients where gRPC is listened for.
  void set_grpc_port(int port);
  /// From now on not ready; requests are still answered.
  void set_draining();
  /// Ends the workers; running jobs are given back to the queue.
  void stop();

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tensormill::server
