/// One connection: reads heads, hands requests to the executor, feeds bodies to handlers
/// at their pace, writes responses, lingers, and starts over.
///
/// All state belongs to the connection's I/O thread (the socket's executor). Handlers run elsewhere and reach
/// it by posting: read_body() and finish() are the only ways in, but for read_body_here(), which owns the
/// body's state while the handler runs.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "server/transport/beast_state.h"
#include "server/transport/beast_stream.h"
#include "server/transport/framing.h"

namespace tensormill::transport {

namespace asio = boost::asio;
namespace beast = boost::beast;

class Connection;

/// Tells a client to send its body; where none is waited for, nothing.
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/// A request on its way through a handler. Whoever may answer it holds it, and it the connection: only when
/// nobody does any more it does not count as in work, and what connections refer to may end.
struct Exchange {
  std::optional<InWork::Entry> in_work;
  std::shared_ptr<Connection> connection;  ///< while a handler has it
  http::Request request;
  http::Response response;
  std::stop_source stop;
  std::unique_ptr<LivePlace> live_place;      ///< of a live response
  std::atomic<bool> ends_with_client{false};  ///< http::Request::ends_with_client was called
  http::Lane lane = http::Lane::kWorker;
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
  using Socket = asio::ip::tcp::socket;
  /// Bytes that were read, or why none could be.
  struct BodyRead {
    size_t count = 0;
    std::optional<Error> error;
  };
  using BodyCallback = std::function<void(BodyRead)>;

  /// `place`: nothing for a connection past a limit.
  Connection(Socket socket, BeastState& state, std::optional<ConnectionLimits::Place> place);
  ~Connection();

  /// Starts reading; without a place answers 503 whatever comes: there are too many connections, in all
  /// (`full`) or of this address. Any thread.
  void start(bool full);
  /// Closes when no request is in work, else after its response; any thread.
  void drain();
  /// Closes now and cancels the request in work; any thread.
  void abort();
  /// What runs the handler of the request in work, on whose thread this is called.
  Executor& executor() { return state_.executor_of(exchange_->lane); }
  /// Fills `buffer`, which must stay valid until `done` is called on the I/O thread; any thread.
  void read_body(std::span<std::byte> buffer, BodyCallback done);
  /// Whether the handler's thread takes the body from the socket itself: in the clear, of known length. Then
  /// read_body_here() is called, by that thread alone and until the handler returns.
  bool body_is_read_here() const { return body_read_here_; }
  /// Fills `buffer` and waits for what it takes; less only at the end of the body. Throws as
  /// BodySource::read.
  size_t read_body_here(std::span<std::byte> buffer);

private:
  using Parser = beast::http::request_parser<beast::http::buffer_body>;
  using ErrorCodeIo = boost::system::error_code;

  // beast_connection.cc: heads and dispatch
  void start_refusing(bool full);
  void shake_hands();
  void next_request();
  void begin_request();
  void continue_head();
  void on_head_bytes(ErrorCodeIo error, size_t count);
  void on_head(size_t head_size);
  std::shared_ptr<Exchange> make_exchange();
  void dispatch(const std::shared_ptr<Exchange>& exchange);
  void refuse(const Error& error);
  void refuse_head(const Error& error);
  void watch_for_disconnect(const std::shared_ptr<Exchange>& exchange);
  void take_buffered_body(Exchange& exchange);
  void run_here(const std::shared_ptr<Exchange>& exchange);
  void hand_over(const std::shared_ptr<Exchange>& exchange);
  void arm_timer(std::chrono::milliseconds duration);
  void disarm_timer();
  void wait_for_timer();
  void watch_later();
  void on_watch();
  void look_at_client();
  /// Whether the client has closed its side, or all.
  bool client_has_ended() const;
  void probe_client();
  void probe_secure_client();
  void close();

  // beast_body.cc: bodies
  void send_continue();
  void continue_body();
  void continue_known_body();
  void wait_for_body(asio::mutable_buffer target);
  void on_body_bytes(ErrorCodeIo error, size_t count);
  bool body_is_too_slow() const;
  Error slow_body() const;
  Error silent_body() const;
  void take_buffered(std::span<std::byte> buffer, size_t& filled);
  bool take_from_socket(std::span<std::byte> buffer, size_t& filled);
  void wait_for_bytes();
  [[noreturn]] void fail_body(Error error);
  bool parse_body_bytes();
  void finish_body_read(std::optional<Error> error);
  size_t body_filled() const;
  bool body_is_done() const { return body_length_ ? body_taken_ == *body_length_ : parser_->is_done(); }

  // beast_response.cc: responses
  void finish(const std::shared_ptr<Exchange>& exchange);
  void send_response(http::Response response, bool head_only);
  void write_all(std::function<void(bool sent)> done);
  void write_now(std::function<void(bool sent)> done);
  void written(size_t count);
  void write_some();
  void write_content();
  void start_stream();
  void write_piece(std::string piece, const http::ResponseStream& stream, std::function<void(bool)> done);
  bool client_is_too_slow() const;
  void response_sent(bool sent);
  void drain_body();
  void end_tls();
  void linger();
  void linger_more();
  bool may_keep_alive() const;

  BeastStream stream_;
  Socket& socket_;  ///< of stream_
  BeastState& state_;
  asio::steady_timer timer_;
  using TimePoint = std::chrono::steady_clock::time_point;
  std::optional<TimePoint> deadline_;  ///< of what is waited for now
  std::optional<TimePoint> timer_at_;  ///< when the timer fires, at the deadline or before it
  bool timed_out_ = false;
  bool draining_ = false;
  bool closed_ = false;
  bool watching_ = false;
  bool watch_is_due_ = false;  ///< at deadline_ the client is to be watched; nothing is waited for
  bool readable_ =
      false;  ///< something came while the request was in work, so that waiting for it tells no more
  bool half_closed_ = false;            ///< the client sends no more
  bool probed_ = false;                 ///< it was probed whether it is still there
  bool probing_ = false;                ///< that is being written
  std::shared_ptr<Exchange> answered_;  ///< waits for that
  std::optional<ConnectionLimits::Place> place_;
  std::string peer_;
  bool peer_is_loopback_ = false;

  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<std::chrono::steady_clock::time_point> head_deadline_;
  bool http_1_1_ = true;
  bool framing_broken_ = false;     ///< the next message's start is not known any more
  bool continue_expected_ = false;  ///< the client waits for 100 before it sends its body
  std::shared_ptr<Exchange> exchange_;

  std::optional<uint64_t> body_length_;  ///< as announced
  uint64_t body_taken_ = 0;              ///< handed to the handler, or to a read of it under way
  uint64_t body_received_ = 0;           ///< without the frames of chunks
  std::chrono::steady_clock::time_point body_wait_start_;
  std::chrono::steady_clock::duration body_waited_{0};
  std::span<std::byte> body_buffer_;
  size_t body_filled_ = 0;           ///< of body_buffer_, when the length is known
  std::optional<Error> body_error_;  ///< for the read after the one that had bytes before it
  BodyCallback body_done_;
  /// Set while no handler runs. While one runs and it is true, what is above belongs to the handler's thread,
  /// and the socket stays open.
  bool body_read_here_ = false;
  std::atomic<bool> body_complete_{false};  ///< the handler's thread has taken all of it

  http::Response response_;
  bool close_after_ = false;
  std::string head_;
  std::vector<std::byte> content_buffer_;
  uint64_t content_done_ = 0;
  std::vector<asio::const_buffer> writing_;
  uint64_t write_sent_ = 0;  ///< of this response
  TimePoint write_wait_start_;
  std::chrono::steady_clock::duration write_waited_{0};
  std::function<void(bool)> written_;
  std::string piece_;
  uint64_t lingered_ = 0;
};

}  // namespace tensormill::transport
