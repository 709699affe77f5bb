/// A TCP port whose connections somebody else serves, within limits that other listeners share.
/// Thread-safety: port() from any thread; the rest from one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tensormill::transport {

class ConnectionLimits;

struct BoundedAcceptorOptions {
  std::string address = "127.0.0.1";  ///< as parse_listen_address gives it
  uint16_t port = 0;                  ///< 0: any free one
  std::string option;                 ///< that chooses them, for the error of a port that is taken
  /// As TransportOptions::on_refused: "connections" or "address". May be empty.
  std::function<void(std::string_view reason)> on_refused;
};

class BoundedAcceptor {
public:
  /// Takes the descriptor of a connected socket that does not block, and closes it when it likes. Must not
  /// duplicate it: a connection counts until its descriptor is closed.
  using Serve = std::function<void(int socket)>;

  /// Listens, and calls `serve` on a thread of its own for each connection that has a place; others are
  /// closed without a word. Throws Error(kUsage) for a port that is taken and an address that is none of this
  /// machine's.
  BoundedAcceptor(BoundedAcceptorOptions options, std::shared_ptr<ConnectionLimits> limits, Serve serve);
  /// Stops.
  ~BoundedAcceptor();
  BoundedAcceptor(const BoundedAcceptor&) = delete;
  BoundedAcceptor& operator=(const BoundedAcceptor&) = delete;

  /// The port that is listened on.
  uint16_t port() const;
  /// Accepts no more; then `serve` is not running and is not called again. Connections keep their places for
  /// as long as this lives. May be called again.
  void stop();

private:
  class Loop;
  const std::unique_ptr<Loop> loop_;
};

}  // namespace tensormill::transport
