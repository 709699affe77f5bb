/// KServe v2 over gRPC, where grpc.listen is set. Thread-safety: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace tensormill::http {
class Handler;
}
namespace tensormill::rpc {
class Gateway;
class Listener;
}  // namespace tensormill::rpc
namespace tensormill::server {
class Server;
}
namespace tensormill::transport {
class BoundedAcceptor;
class ServerTransport;
}  // namespace tensormill::transport

namespace tensormill::cli {

class GrpcEndpoint {
public:
  /// Throws Error(kUsage) for an address that is none.
  explicit GrpcEndpoint(const config::Settings& settings);
  ~GrpcEndpoint();
  GrpcEndpoint(const GrpcEndpoint&) = delete;
  GrpcEndpoint& operator=(const GrpcEndpoint&) = delete;

  /// Whether it is requested.
  bool is_on() const { return is_on_; }
  /// "" where it is off.
  const std::string& address() const { return address_; }
  /// Loads the module and listens; its connections have places of `http`, whose limits and count of refusals
  /// are theirs, too. `server` and `api` must outlive stop(). Throws Error(kUsage) for a port that is taken,
  /// Error(kNotSupported) where the module is not installed. Does nothing where it is off.
  void start(server::Server& server, http::Handler& api, const transport::ServerTransport& http,
             std::function<void(std::string_view)> on_refused);
  uint16_t port() const;
  /// Takes no more calls and gives those in work `grace`, then cancels them. Returns false when one is still
  /// in work `patience` later.
  bool stop(std::chrono::milliseconds grace, std::chrono::milliseconds patience);

private:
  const config::Settings& settings_;
  bool is_on_ = false;
  std::string address_;
  uint16_t wanted_port_ = 0;
  std::unique_ptr<rpc::Gateway> gateway_;
  std::unique_ptr<rpc::Listener> listener_;
  std::unique_ptr<transport::BoundedAcceptor> acceptor_;
};

}  // namespace tensormill::cli
