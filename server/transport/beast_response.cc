#include <poll.h>

#include <boost/asio/post.hpp>
#include <future>

#include "runtime/base/hex.h"
#include "server/transport/beast_connection.h"

namespace tensormill::transport {
namespace {

constexpr size_t kContentRead = 256 * 1024;
/// What a handler left of a body is read and dropped up to this size, to keep the connection.
constexpr uint64_t kMaxDrain = 64 * 1024;
/// What a client may go on sending after it was refused.
constexpr uint64_t kMaxLinger = uint64_t{64} << 20;

/// "" for nothing: a chunk of no bytes would be the last one.
std::string chunk(const std::string& piece) {
  if (piece.empty()) return "";
  std::string size;
  for (size_t rest = piece.size(); rest > 0; rest /= 16) size.insert(size.begin(), kHexDigits[rest % 16]);
  return size + "\r\n" + piece + "\r\n";
}

}  // namespace

void Connection::finish(const std::shared_ptr<Exchange>& exchange) {
  if (probing_) {
    answered_ = exchange;
    return;
  }
  body_read_here_ = false;
  if (watch_is_due_) disarm_timer();
  if (closed_ || (exchange->response.undelivered && client_has_ended())) {
    if (exchange->response.undelivered) exchange->response.undelivered();
    exchange_.reset();
    return close();
  }
  if (watching_) {
    ErrorCodeIo ignored;
    socket_.cancel(ignored);
  }
  send_response(std::move(exchange->response), exchange->request.method == "HEAD");
}

bool Connection::may_keep_alive() const {
  if (framing_broken_ || draining_ || state_.draining || !parser_->is_header_done() ||
      !parser_->keep_alive()) {
    return false;
  }
  if (body_is_done()) return true;
  return !continue_expected_ && body_length_ && *body_length_ - body_taken_ <= kMaxDrain;
}

void Connection::send_response(http::Response response, bool head_only) {
  response_ = std::move(response);
  write_sent_ = 0;
  write_waited_ = {};
  content_done_ = 0;
  const bool has_body = !head_only && status_has_body(response_.status);
  const bool stream = std::holds_alternative<std::shared_ptr<http::ResponseStream>>(response_.body);
  close_after_ = !may_keep_alive() || (stream && !http_1_1_);
  head_ = serialize_head(response_, http_1_1_, close_after_);
  if (stream && has_body) {
    try {
      // A handler that tells others what it answers has asked before it did.
      if (!exchange_->live_place) exchange_->live_place = state_.take_live_place();
      return start_stream();
    } catch (const Error& error) {
      response_ = refusal(error, std::string(response_.headers.get("X-Request-Id").value_or("")));
      close_after_ = !may_keep_alive();
      head_ = serialize_head(response_, http_1_1_, close_after_);
    }
  }
  writing_ = {asio::buffer(head_)};
  if (!has_body) {
    return write_now([this](bool sent) { response_sent(sent); });
  }
  if (const auto* bytes = std::get_if<std::string>(&response_.body)) {
    writing_.push_back(asio::buffer(*bytes));
    write_now([this](bool sent) { response_sent(sent); });
  } else {
    write_all([this](bool sent) { sent ? write_content() : response_sent(false); });
  }
}

/// Writes `writing_`. The callback runs on the I/O thread while this connection is held alive, so it may
/// capture `this`.
void Connection::write_all(std::function<void(bool sent)> done) {
  written_ = std::move(done);
  write_some();
}

/// As write_all(), but what the socket takes at once is written here, without a turn of the event loop.
void Connection::write_now(std::function<void(bool sent)> done) {
  if (stream_.is_secure()) return write_all(std::move(done));
  ErrorCodeIo error;
  const size_t count = closed_ ? 0 : socket_.write_some(writing_, error);
  written(count);
  if (error && error != asio::error::would_block) close();
  write_all(std::move(done));
}

void Connection::written(size_t count) {
  for (asio::const_buffer& part : writing_) {
    const size_t taken = std::min(count, part.size());
    part += taken;
    count -= taken;
  }
}

void Connection::write_some() {
  while (!writing_.empty() && writing_.front().size() == 0) writing_.erase(writing_.begin());
  if (writing_.empty() || closed_) {
    const auto done = std::move(written_);
    written_ = nullptr;
    return done(!closed_);
  }
  // Each write has the whole timeout: a client that takes nothing holds up the answer no longer than that,
  // and one that takes a little now and then has a least rate to keep.
  arm_timer(state_.options.write_timeout);
  write_wait_start_ = std::chrono::steady_clock::now();
  stream_.async_write_some(writing_, [self = shared_from_this()](ErrorCodeIo error, size_t count) {
    self->disarm_timer();
    self->write_sent_ += count;
    self->write_waited_ += std::chrono::steady_clock::now() - self->write_wait_start_;
    if (error || self->client_is_too_slow()) {
      self->close();
    } else {
      self->written(count);
    }
    self->write_some();
  });
}

/// Only the time that was spent waiting for the client counts.
bool Connection::client_is_too_slow() const {
  const double seconds = std::chrono::duration<double>(write_waited_).count();
  return write_waited_ > state_.options.write_timeout &&
         static_cast<double>(write_sent_) < seconds * static_cast<double>(state_.options.min_write_rate);
}

void Connection::write_content() {
  const auto& body = std::get<http::ContentBody>(response_.body);
  const uint64_t left = body.length - content_done_;
  if (left == 0) return response_sent(true);
  content_buffer_.resize(static_cast<size_t>(std::min<uint64_t>(left, kContentRead)));
  size_t count = 0;
  try {
    count = body.content->read_at(body.offset + content_done_, content_buffer_);
  } catch (const Error&) {
    // The head is out already: a connection cut short is the only way left to tell.
    count = 0;
  }
  if (count == 0) return response_sent(false);
  content_done_ += count;
  writing_ = {asio::buffer(content_buffer_.data(), count)};
  write_all([this](bool sent) { sent ? write_content() : response_sent(false); });
}

/// On a thread of its own, which the exchange's place is for. Throws Error(kUnavailable) when the server
/// ends.
void Connection::start_stream() {
  auto stream = std::get<std::shared_ptr<http::ResponseStream>>(response_.body);
  const bool begun = state_.streams.submit(
      [self = shared_from_this(), stream = std::move(stream), head = head_, chunked = http_1_1_] {
        const auto send = [&](std::string piece) {
          auto sent = std::make_shared<std::promise<bool>>();
          asio::post(self->socket_.get_executor(), [self, stream, sent, piece = std::move(piece)] {
            self->write_piece(piece, *stream, [sent](bool ok) { sent->set_value(ok); });
          });
          return sent->get_future().get();
        };
        bool alive = send(head);
        std::string piece;
        try {
          // A stream that follows what happens has no end of its own; at the end of the process it is over.
          while (alive && !self->state_.draining && stream->next(piece)) {
            alive = send(chunked ? chunk(piece) : piece);
            piece.clear();
          }
        } catch (const std::exception&) {
          // Nothing can be told any more; without its last chunk the client sees that the stream is cut.
          alive = false;
        }
        if (alive && chunked) alive = send("0\r\n\r\n");
        asio::post(self->socket_.get_executor(), [self, alive] { self->response_sent(alive); });
      });
  if (!begun) throw Error(ErrorCode::kUnavailable, "the server ends");
}

/// `piece`: as it is to be sent. An empty one is a look at the client: one that has closed its socket shows
/// when something is written to it.
void Connection::write_piece(std::string piece, const http::ResponseStream& stream,
                             std::function<void(bool)> done) {
  pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
  const bool seen = !closed_ && ::poll(&entry, 1, 0) > 0;
  if (closed_ || (seen && (entry.revents & (POLLHUP | POLLERR)) != 0)) return done(false);
  const bool ended = seen && (entry.revents & POLLRDHUP) != 0;
  if (ended && piece.empty()) piece = http_1_1_ ? chunk(stream.idle_piece()) : stream.idle_piece();
  piece_ = std::move(piece);
  writing_ = {asio::buffer(piece_)};
  write_all(std::move(done));
}

void Connection::response_sent(bool sent) {
  const auto exchange = std::move(exchange_);
  exchange_.reset();
  if (response_.undelivered && (!sent || closed_)) response_.undelivered();
  response_ = {};
  head_.clear();
  if (!sent || closed_) return close();
  if (watching_) {
    ErrorCodeIo ignored;
    socket_.cancel(ignored);
  }
  if (close_after_) return stream_.is_secure() ? end_tls() : linger();
  if (!body_is_done()) return drain_body();
  // A request that is here already gets a turn of its own: run where it was read, it would come back to here.
  if (buffer_.size() > 0) {
    return asio::post(socket_.get_executor(), [self = shared_from_this()] { self->next_request(); });
  }
  next_request();
}

/// Reads what a handler left of a short body, so that the next request begins where it should.
void Connection::drain_body() {
  content_buffer_.resize(kMaxDrain);
  read_body(content_buffer_, [self = shared_from_this()](const BodyRead& read) {
    if (read.error) return self->stream_.is_secure() ? self->end_tls() : self->linger();
    if (!self->body_is_done()) return self->drain_body();
    self->next_request();
  });
}

void Connection::end_tls() {
  arm_timer(state_.options.linger_timeout);
  stream_.async_shutdown([self = shared_from_this()](ErrorCodeIo) { self->close(); });
}

/// Closing at once while the client still sends would reset the connection and lose the response: the sending
/// side is closed, and what comes is dropped for a while.
void Connection::linger() {
  ErrorCodeIo ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  buffer_.consume(buffer_.size());
  content_buffer_.resize(kContentRead);
  lingered_ = 0;
  arm_timer(state_.options.linger_timeout);
  linger_more();
}

void Connection::linger_more() {
  socket_.async_read_some(asio::buffer(content_buffer_),
                          [self = shared_from_this()](ErrorCodeIo error, size_t count) {
                            self->lingered_ += count;
                            if (error || self->timed_out_ || self->lingered_ > kMaxLinger)
                              return self->close();
                            self->linger_more();
                          });
}

}  // namespace tensormill::transport
