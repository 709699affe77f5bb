/// A socket, in the clear or under TLS, for one connection.
/// Thread-safety: as the socket: all calls on the connection's I/O thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace tensormill::transport {

class BeastStream {
public:
  using Socket = boost::asio::ip::tcp::socket;

  /// `tls`: null for a connection in the clear; in use for as long as the connection is.
  BeastStream(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls)
      : socket_(std::move(socket)), context_(std::move(tls)) {
    if (context_) tls_.emplace(socket_, *context_);
  }
  BeastStream(const BeastStream&) = delete;
  BeastStream& operator=(const BeastStream&) = delete;

  /// The socket itself: for its options, its end, and waiting.
  Socket& socket() { return socket_; }
  bool is_secure() const { return tls_.has_value(); }

  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      socket_.async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      socket_.async_write_some(buffers, std::forward<Handler>(handler));
    }
  }
  /// Only under TLS, as the one below.
  template <typename Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  /// Says that no more comes, and waits until the client says so too.
  template <typename Handler>
  void async_shutdown(Handler&& handler) {
    tls_->async_shutdown(std::forward<Handler>(handler));
  }

private:
  Socket socket_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace tensormill::transport
