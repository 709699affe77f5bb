/// HTTP/1.1 over TCP, behind an interface that knows no library.
/// Framing is strict: both Content-Length and Transfer-Encoding, a repeated or malformed Content-Length, a
/// bad chunk, a folded or malformed header field: 400 and close; a transfer coding other than chunked: 501.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/handler.h"
#include "runtime/base/error.h"

namespace tensormill::transport {

class ConnectionLimits;

struct TransportOptions {
  std::string address = "127.0.0.1";  ///< an IPv4 or IPv6 address, or "localhost"
  uint16_t port = 0;                  ///< 0: any free one, see ServerTransport::port
  std::string tls_certificate;        ///< PEM file with a certificate chain; empty: no TLS
  std::string tls_key;                ///< PEM file with its key
  /// Called with what became of TLS files that have changed: null when they are in use, else why they are
  /// not. Called from an I/O thread, once a change; may be empty.
  std::function<void(const Error*)> on_tls_change;
  /// Called for each connection or request that is refused before a handler sees it, and why: "connections"
  /// and "address" (past the limits below; also those closed without an answer), "queue" (no worker), "head"
  /// (one that is malformed, too large or too slow). Called from an I/O thread; may be empty.
  std::function<void(std::string_view reason)> on_refused;
  int io_threads = 1;
  int workers = 8;                        ///< threads that run handlers; as many of the bulk lane's
  int reserved_workers = 1;               ///< threads that run handlers of the reserved lane
  int queue = 64;                         ///< requests that wait for a worker; past it 503 with Retry-After
  int max_connections = 1024;             ///< past it a connection is answered 503 and closed
  int max_connections_per_address = 256;  ///< the same for those of one address
  std::vector<std::string> unlimited_addresses;  ///< addresses and networks that have no limit of their own
  int max_streams = 64;                          ///< live responses at once, a thread each; past it 503
  uint32_t max_header_bytes = 16 * 1024;         ///< past it 431
  uint64_t max_body_bytes = uint64_t{1} << 40;   ///< of any request; routes have smaller limits of their own
  /// From the first byte of a request to the end of its head; of the first one from the connection on.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};  ///< without a single byte of a body that is being read
  /// Bytes a second that a body brings, and that a client takes of an answer, on average, once body_timeout
  /// or write_timeout was waited for it. Chunks' frames do not count.
  uint64_t min_read_rate = 1024;
  uint64_t min_write_rate = 1024;
  std::chrono::milliseconds keep_alive_timeout{60'000};  ///< between requests
  std::chrono::milliseconds write_timeout{30'000};       ///< without a single byte taken by the client
  std::chrono::milliseconds linger_timeout{2'000};       ///< of reading what a refused client still sends
  /// How long after the client's half of a connection has ended, while its request is in work, it is probed
  /// whether it is still there: with a 100 Continue, which clients pass over, and which one that has closed
  /// its socket answers with a reset. Until then the two cannot be distinguished.
  std::chrono::milliseconds half_close_probe{1'000};
};

/// Thread-safety: port() and connections() from any thread; the rest from one.
class ServerTransport {
public:
  virtual ~ServerTransport() = default;
  /// Binds, listens and returns; `handler` must outlive stop(). Throws Error(kUsage) naming address and port
  /// when the port is taken or the address is not one of this machine, and for TLS files that cannot be used.
  /// Called once.
  virtual void start(http::Handler& handler) = 0;
  /// The port that is listened on.
  virtual uint16_t port() const = 0;
  /// Accepts no more, closes idle connections, ends live responses, lets requests in flight finish for up to
  /// `grace`, then closes all and cancels them. Returns true when no handler runs any more; false when one
  /// still does after `patience` more: then the process is to end by _exit, since the destructor waits for
  /// it. May be called again.
  virtual bool stop(std::chrono::milliseconds grace, std::chrono::milliseconds patience) = 0;
  /// Connections that are open now.
  virtual int connections() const = 0;
  /// What its connections count against, for a listener that shares the limits. Never null; any thread.
  virtual std::shared_ptr<ConnectionLimits> limits() const = 0;
};

/// Never null. Throws Error(kUsage) for an entry of unlimited_addresses that is no address.
std::unique_ptr<ServerTransport> make_transport(const TransportOptions& options);

/// Splits "127.0.0.1:8080", "[::1]:8080" or "localhost:0". Throws Error(kUsage).
void parse_listen_address(const std::string& text, TransportOptions& options);
/// Whether an address that parse_listen_address gave is of the loopback interface.
bool is_loopback_address(const std::string& address);

}  // namespace tensormill::transport
