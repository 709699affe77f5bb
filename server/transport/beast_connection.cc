#include "server/transport/beast_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>

#include "api/http/problem.h"
#include "server/transport/beast_body.h"

namespace tensormill::transport {
namespace {

/// Bytes taken from the socket at once while a head is read.
constexpr size_t kHeadRead = 64 * 1024;
/// Room for chunk headers and body bytes beside a head.
constexpr size_t kBufferSlack = 128 * 1024;
/// When a request is taken to be long enough to look whether its client is still there.
constexpr std::chrono::milliseconds kWatchAfter{50};
/// How often after that, where waiting for the socket tells no more.
constexpr std::chrono::milliseconds kLookAgain{1'000};

/// Size of the head at the front of `bytes`, with its empty line; 0 when it is not complete. A bare LF LF
/// ends it as well, so that the check of the raw head can refuse it at once.
size_t find_head_end(std::string_view bytes) {
  const size_t crlf = bytes.find("\r\n\r\n");
  const size_t lf = bytes.substr(0, crlf).find("\n\n");
  if (crlf == std::string_view::npos && lf == std::string_view::npos) return 0;
  return crlf < lf ? crlf + 4 : lf + 2;
}

std::string_view text_of(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

Connection::Connection(Socket socket, BeastState& state, std::optional<ConnectionLimits::Place> place)
    : stream_(std::move(socket), state.tls ? state.tls->current() : nullptr),
      socket_(stream_.socket()),
      state_(state),
      timer_(socket_.get_executor()),
      place_(std::move(place)),
      buffer_(state.options.max_header_bytes + kBufferSlack) {
  if (!place_) ++state_.refused;
  ErrorCodeIo ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  // For write_now(); asynchronous operations do not care.
  socket_.non_blocking(true, ignored);
  const auto endpoint = socket_.remote_endpoint(ignored);
  const std::string address = endpoint.address().to_string();
  peer_ =
      (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
  peer_is_loopback_ = endpoint.address().is_loopback();
}

Connection::~Connection() {
  if (!place_) --state_.refused;
  state_.connections.remove(this);
}

void Connection::start(bool full) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), full] {
    if (!self->place_) return self->start_refusing(full);
    // A connection that says nothing is worth no more than a head that does not end.
    self->head_deadline_ = std::chrono::steady_clock::now() + self->state_.options.header_timeout;
    self->stream_.is_secure() ? self->shake_hands() : self->begin_request();
  });
}

void Connection::shake_hands() {
  arm_timer(state_.options.header_timeout);
  stream_.async_handshake([self = shared_from_this()](ErrorCodeIo error) {
    self->disarm_timer();
    error ? self->close() : self->begin_request();
  });
}

void Connection::start_refusing(bool full) {
  // A handshake is work that a refused client shall not get.
  if (stream_.is_secure()) return close();
  const TransportOptions& options = state_.options;
  refuse(Error(ErrorCode::kUnavailable,
               full ? "there are " + std::to_string(options.max_connections) +
                          " connections already, which is http.max_connections"
                    : "there are " + std::to_string(options.max_connections_per_address) +
                          " connections of this address already, which is http.max_connections_per_address"));
}

void Connection::drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->draining_ = true;
    // What a live response waits for does not come any more.
    const bool live = std::holds_alternative<std::shared_ptr<http::ResponseStream>>(self->response_.body);
    if (self->exchange_ && live) self->exchange_->stop.request_stop();
    const bool idle = !self->exchange_ && self->head_.empty() && self->buffer_.size() == 0;
    if (idle) self->close();
  });
}

void Connection::abort() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::close() {
  closed_ = true;
  disarm_timer();
  timer_.cancel();
  if (exchange_) exchange_->stop.request_stop();
  ErrorCodeIo ignored;
  if (exchange_ && body_read_here_) {
    // The handler's thread may be at the descriptor, which finish() closes.
    socket_.shutdown(Socket::shutdown_both, ignored);
    return;
  }
  socket_.close(ignored);
}

/// Most waits end long before their deadline. So a timer that fires at the deadline or before it is left as
/// it is, and looks at the deadline of that time when it fires.
void Connection::arm_timer(std::chrono::milliseconds duration) {
  timed_out_ = false;
  deadline_ = std::chrono::steady_clock::now() + duration;
  if (!timer_at_ || *timer_at_ > *deadline_) wait_for_timer();
}

void Connection::disarm_timer() {
  deadline_.reset();
  watch_is_due_ = false;
}

void Connection::wait_for_timer() {
  timer_at_ = deadline_;
  timer_.expires_at(*deadline_);
  timer_.async_wait([self = shared_from_this(), at = *deadline_](ErrorCodeIo error) {
    if (error || self->closed_ || self->timer_at_ != at) return;
    self->timer_at_.reset();
    if (!self->deadline_) return;
    if (*self->deadline_ > std::chrono::steady_clock::now()) return self->wait_for_timer();
    if (self->watch_is_due_) return self->on_watch();
    self->timed_out_ = true;
    ErrorCodeIo ignored;
    self->socket_.cancel(ignored);
  });
}

void Connection::next_request() {
  head_deadline_.reset();
  begin_request();
}

void Connection::begin_request() {
  if (closed_ || ((draining_ || state_.draining) && buffer_.size() == 0)) return close();
  parser_.emplace();
  parser_->header_limit(state_.options.max_header_bytes);
  parser_->body_limit(state_.options.max_body_bytes);
  framing_broken_ = false;
  continue_expected_ = false;
  body_length_.reset();
  body_read_here_ = false;
  http_1_1_ = true;
  continue_head();
}

void Connection::continue_head() {
  // RFC 9112 asks to pass over empty lines before a request.
  while (text_of(buffer_).starts_with("\r\n")) buffer_.consume(2);
  const size_t head_size = find_head_end(text_of(buffer_));
  if (head_size > state_.options.max_header_bytes ||
      (head_size == 0 && buffer_.size() >= state_.options.max_header_bytes)) {
    return refuse_head(Error(ErrorCode::kHeadersTooLarge,
                             "the request head is larger than http.max_header_bytes, which is " +
                                 std::to_string(state_.options.max_header_bytes)));
  }
  if (head_size > 0) return on_head(head_size);
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  milliseconds left = state_.options.keep_alive_timeout;
  if (buffer_.size() > 0 && !head_deadline_)
    head_deadline_ = steady_clock::now() + state_.options.header_timeout;
  if (head_deadline_) {
    left = std::max(milliseconds(0),
                    std::chrono::duration_cast<milliseconds>(*head_deadline_ - steady_clock::now()));
  }
  arm_timer(left);
  stream_.async_read_some(
      buffer_.prepare(kHeadRead),
      [self = shared_from_this()](ErrorCodeIo error, size_t count) { self->on_head_bytes(error, count); });
}

void Connection::on_head_bytes(ErrorCodeIo error, size_t count) {
  disarm_timer();
  if (closed_) return;
  if (error) {
    if (timed_out_ && buffer_.size() > 0) {
      return refuse_head(Error(ErrorCode::kRequestTimeout,
                               "the request head did not arrive within " +
                                   std::to_string(state_.options.header_timeout.count()) + " ms"));
    }
    return close();
  }
  buffer_.commit(count);
  continue_head();
}

void Connection::on_head(size_t head_size) {
  try {
    check_raw_head(text_of(buffer_).substr(0, head_size));
    ErrorCodeIo error;
    const size_t used = parser_->put(asio::buffer(buffer_.data().data(), head_size), error);
    buffer_.consume(used);
    std::shared_ptr<Exchange> exchange = make_exchange();
    if (error == beast::http::error::body_limit) {
      throw Error(ErrorCode::kTooLarge, "the body is larger than http.max_body_bytes, which is " +
                                            std::to_string(state_.options.max_body_bytes));
    }
    if (error || !parser_->is_header_done()) {
      throw Error(ErrorCode::kInvalidRequest, "the request head is malformed: " + error.message());
    }
    parser_->eager(true);
    dispatch(exchange);
  } catch (const Error& error) {
    refuse_head(error);
  }
}

std::shared_ptr<Exchange> Connection::make_exchange() {
  auto exchange = std::make_shared<Exchange>();
  http::Request& request = exchange->request;
  const auto& message = parser_->get();
  for (const auto& field : message) {
    const auto name = field.name_string();
    const auto value = field.value();
    request.headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  http_1_1_ = message.version() >= 11;
  const Framing framing = check_framing(request.headers, http_1_1_);
  body_length_ = framing.content_length;
  body_taken_ = 0;
  body_error_.reset();
  body_received_ = 0;
  body_waited_ = {};
  body_read_here_ = false;
  readable_ = false;
  half_closed_ = false;
  probed_ = false;
  body_complete_.store(false, std::memory_order_relaxed);
  const auto method = message.method_string();
  const auto target = message.target();
  request.method.assign(method.data(), method.size());
  request.target.assign(target.data(), target.size());
  request.peer = peer_;
  request.peer_is_loopback = peer_is_loopback_;
  request.cancelled = exchange->stop.get_token();
  request.take_stream = [&state = state_, exchange = exchange.get()] {
    exchange->live_place = state.take_live_place();
  };
  request.ends_with_client = [exchange = exchange.get()] { exchange->ends_with_client = true; };
  const bool empty = !framing.chunked && framing.content_length.value_or(0) == 0;
  if (empty) {
    request.body = std::make_shared<http::BytesBody>("");
    exchange->lane = state_.handler->lane(request, "");
  } else {
    request.body = std::make_shared<BeastBody>(weak_from_this(), framing.content_length);
    continue_expected_ =
        http_1_1_ && http::equals_ignoring_case(request.headers.get("Expect").value_or(""), "100-continue");
    if (body_length_ && buffer_.size() >= *body_length_) {
      take_buffered_body(*exchange);
    } else {
      body_read_here_ = body_length_ && !stream_.is_secure();
      exchange->lane = state_.handler->lane(request, "");
    }
  }
  return exchange;
}

/// A body that came with its head needs no reads.
void Connection::take_buffered_body(Exchange& exchange) {
  const std::string_view body = text_of(buffer_).substr(0, *body_length_);
  exchange.lane = state_.handler->lane(exchange.request, body);
  exchange.request.body = std::make_shared<http::BytesBody>(std::string(body));
  buffer_.consume(*body_length_);
  body_taken_ = *body_length_;
  continue_expected_ = false;
}

void Connection::dispatch(const std::shared_ptr<Exchange>& exchange) {
  exchange_ = exchange;
  const http::Lane lane = exchange->lane;
  if (lane == http::Lane::kDirect && body_is_done()) return run_here(exchange);
  Executor& executor = state_.executor_of(lane);
  // From submit() on the body may be the handler's.
  const bool complete = body_is_done();
  const bool accepted = executor.submit([self = shared_from_this(), exchange] { self->hand_over(exchange); });
  if (!accepted) {
    state_.report_refusal("queue");
    exchange->response = refusal(Error(ErrorCode::kUnavailable, "all workers are busy and the queue is full"),
                                 http::request_id_for(exchange->request.headers));
    return finish(exchange);
  }
  if (complete) return watch_for_disconnect(exchange);
  if (body_read_here_) watch_later();
}

/// Most answers are there before it is worth a look at the client.
void Connection::watch_later() {
  arm_timer(kWatchAfter);
  watch_is_due_ = true;
}

void Connection::on_watch() {
  disarm_timer();
  if (!exchange_) return;
  if (readable_) return look_at_client();
  if (!body_complete_.load(std::memory_order_acquire)) return watch_later();
  watch_for_disconnect(exchange_);
}

void Connection::run_here(const std::shared_ptr<Exchange>& exchange) {
  exchange->request.later = [io = socket_.get_executor()](std::function<void()> task) {
    asio::post(io, std::move(task));
  };
  hand_over(exchange);
}

/// Any thread. The answer gets a turn of its own: whoever gives it may be in the middle of this connection's
/// work, or of another's.
void Connection::hand_over(const std::shared_ptr<Exchange>& exchange) {
  exchange->in_work.emplace(state_.in_work);
  exchange->connection = shared_from_this();
  state_.handler->answer(exchange->request, [exchange](http::Response response) {
    exchange->response = std::move(response);
    asio::post(exchange->connection->socket_.get_executor(),
               [exchange] { exchange->connection->finish(exchange); });
  });
}

void Connection::refuse_head(const Error& error) {
  state_.report_refusal("head");
  refuse(error);
}

void Connection::refuse(const Error& error) {
  framing_broken_ = true;
  if (!parser_) parser_.emplace();
  send_response(refusal(error, http::make_request_id()), false);
}

void Connection::watch_for_disconnect(const std::shared_ptr<Exchange>& exchange) {
  watching_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this(), exchange](ErrorCodeIo error) {
    if (!self->exchange_ || self->exchange_ == exchange) self->watching_ = false;
    if (error || self->exchange_ != exchange) return;
    self->readable_ = true;
    self->look_at_client();
  });
}

/// While a request is in work whose body is there. A reset is a client that has gone. The end of its stream
/// may be one that sends no more and waits for the answer: it is asked a while later. Bytes are
/// the next request of a client that pipelines, or TLS's word that the client ends; they wait in the socket.
void Connection::look_at_client() {
  pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
  const bool seen = ::poll(&entry, 1, 0) > 0;
  const bool ended = seen && (entry.revents & POLLRDHUP) != 0;
  const bool gone = seen && (entry.revents & (POLLHUP | POLLERR)) != 0;
  if (gone || (ended && exchange_->ends_with_client)) {
    exchange_->stop.request_stop();
    return;
  }
  if (ended && half_closed_ && !probed_) {
    probe_client();
    probed_ = true;
  }
  half_closed_ = ended;
  arm_timer(ended ? state_.options.half_close_probe : kLookAgain);
  watch_is_due_ = true;
}

bool Connection::client_has_ended() const {
  pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
  return closed_ || (::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

/// It fits into the socket's buffer, which is empty while there is no answer. A socket that is closed already
/// answers with a reset, which the next look sees.
void Connection::probe_client() {
  if (!http_1_1_) return;
  if (stream_.is_secure()) return probe_secure_client();
  ::send(socket_.native_handle(), kContinue.data(), kContinue.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// An answer that is there meanwhile waits for the turn of the event loop that ends this: a record is not
/// begun in another one. Whether the client ended its half with TLS's own word or without makes no
/// difference: the request is whole, and what it writes no more is not needed.
void Connection::probe_secure_client() {
  probing_ = true;
  stream_.async_write_some(asio::buffer(kContinue.data(), kContinue.size()),
                           [self = shared_from_this()](ErrorCodeIo error, size_t) {
                             self->probing_ = false;
                             if (error && self->exchange_) self->exchange_->stop.request_stop();
                             const auto answered = std::exchange(self->answered_, nullptr);
                             if (answered) self->finish(answered);
                           });
}

}  // namespace tensormill::transport
