#include "server/transport/beast_body.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <future>
#include <utility>

#include "server/transport/beast_connection.h"

namespace tensormill::transport {
namespace {

constexpr size_t kBodyRead = 96 * 1024;

}  // namespace

size_t BeastBody::read(std::span<std::byte> buffer) {
  if (buffer.empty()) return 0;
  const auto connection = connection_.lock();
  if (!connection) throw Error(ErrorCode::kInvalidRequest, "the connection is closed");
  if (connection->body_is_read_here()) return connection->read_body_here(buffer);
  // Shared, because the I/O thread may still be in set_value() when this thread has its answer. The error
  // crosses as a value and is thrown here.
  auto result = std::make_shared<std::promise<Connection::BodyRead>>();
  connection->read_body(buffer, [result](Connection::BodyRead read) { result->set_value(std::move(read)); });
  // Clients that are slow, or say nothing more, do not keep the others from the workers.
  const Executor::Blocked blocked(connection->executor());
  const Connection::BodyRead read = result->get_future().get();
  if (read.error) throw Error(*read.error);
  return read.count;
}

void Connection::read_body(std::span<std::byte> buffer, BodyCallback done) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), buffer, done = std::move(done)]() mutable {
    self->body_buffer_ = buffer;
    self->body_filled_ = 0;
    self->body_done_ = std::move(done);
    auto& body = self->parser_->get().body();
    body.data = buffer.data();
    body.size = buffer.size();
    if (self->continue_expected_ && self->buffer_.size() == 0 && !self->closed_) return self->send_continue();
    self->continue_body();
  });
}

void Connection::send_continue() {
  continue_expected_ = false;
  arm_timer(state_.options.write_timeout);
  // It fits into the socket's buffer, which is empty now. A failed write shows again in the read that
  // follows.
  stream_.async_write_some(asio::buffer(kContinue.data(), kContinue.size()),
                           [self = shared_from_this()](ErrorCodeIo, size_t) {
                             self->disarm_timer();
                             self->continue_body();
                           });
}

/// Parses what is buffered; true when the pending read has its answer.
bool Connection::parse_body_bytes() {
  continue_expected_ = false;
  while (true) {
    const bool got = parser_->get().body().size < body_buffer_.size();
    if (got || body_is_done()) {
      finish_body_read(std::nullopt);
      return true;
    }
    if (buffer_.size() == 0) return false;
    ErrorCodeIo error;
    const size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    // Neither is an error: the handler's buffer is full, or the next chunk header is not complete yet. Body
    // bytes may have come before it.
    const bool incomplete = error == beast::http::error::need_more;
    if (incomplete || error == beast::http::error::need_buffer) error = {};
    if (error) {
      framing_broken_ = true;
      const bool limit = error == beast::http::error::body_limit;
      finish_body_read(
          limit ? Error(ErrorCode::kTooLarge, "the body is larger than http.max_body_bytes, which is " +
                                                  std::to_string(state_.options.max_body_bytes))
                : Error(ErrorCode::kInvalidRequest, "the body is malformed: " + error.message()));
      return true;
    }
    if (used > 0 && !incomplete) continue;
    if (parser_->get().body().size < body_buffer_.size() || body_is_done()) continue;
    return false;
  }
}

void Connection::continue_body() {
  if (closed_) {
    framing_broken_ = true;
    return finish_body_read(Error(ErrorCode::kUnavailable, "the connection is closed"));
  }
  if (body_length_) return continue_known_body();
  if (parse_body_bytes()) return;
  if (buffer_.size() + kBodyRead > buffer_.max_size()) {
    framing_broken_ = true;
    return finish_body_read(Error(ErrorCode::kInvalidRequest, "a chunk header of the body is too long"));
  }
  wait_for_body(buffer_.prepare(kBodyRead));
}

/// Without chunks the bytes go from the socket to where the handler wants them, and a read ends when its
/// buffer is full: each costs two changes of threads.
void Connection::continue_known_body() {
  if (body_error_) return finish_body_read(std::exchange(body_error_, std::nullopt));
  const size_t buffered = static_cast<size_t>(
      std::min<uint64_t>({buffer_.size(), body_buffer_.size() - body_filled_, *body_length_ - body_taken_}));
  if (buffered > 0) {
    std::memcpy(body_buffer_.data() + body_filled_, buffer_.data().data(), buffered);
    buffer_.consume(buffered);
    body_filled_ += buffered;
    body_taken_ += buffered;
    continue_expected_ = false;
  }
  const uint64_t wanted = std::min<uint64_t>(body_buffer_.size() - body_filled_, *body_length_ - body_taken_);
  if (wanted == 0) return finish_body_read(std::nullopt);
  wait_for_body(asio::buffer(body_buffer_.data() + body_filled_, static_cast<size_t>(wanted)));
}

void Connection::wait_for_body(asio::mutable_buffer target) {
  arm_timer(state_.options.body_timeout);
  body_wait_start_ = std::chrono::steady_clock::now();
  stream_.async_read_some(target, [self = shared_from_this()](ErrorCodeIo error, size_t count) {
    self->on_body_bytes(error, count);
  });
}

/// A client that sends a byte now and then would hold a worker for ever. Only the time that was spent waiting
/// for it counts, not that of a slow handler.
bool Connection::body_is_too_slow() const {
  const double seconds = std::chrono::duration<double>(body_waited_).count();
  return body_waited_ > state_.options.body_timeout &&
         static_cast<double>(body_received_) < seconds * static_cast<double>(state_.options.min_read_rate);
}

Error Connection::slow_body() const {
  return Error(ErrorCode::kRequestTimeout, "the body comes with less than " +
                                               std::to_string(state_.options.min_read_rate) +
                                               " bytes a second, which is http.min_read_rate");
}

Error Connection::silent_body() const {
  return Error(ErrorCode::kRequestTimeout,
               "no byte of the body came for " + std::to_string(state_.options.body_timeout.count()) + " ms");
}

void Connection::on_body_bytes(ErrorCodeIo error, size_t count) {
  disarm_timer();
  if (!error) {
    continue_expected_ = false;
    if (body_length_) {
      body_filled_ += count;
      body_taken_ += count;
      body_received_ += count;
    } else {
      buffer_.commit(count);
    }
    body_waited_ += std::chrono::steady_clock::now() - body_wait_start_;
    if (!body_is_too_slow()) return continue_body();
    framing_broken_ = true;
    return finish_body_read(slow_body());
  }
  framing_broken_ = true;
  if (timed_out_) {
    return finish_body_read(silent_body());
  }
  if (exchange_) exchange_->stop.request_stop();
  finish_body_read(Error(ErrorCode::kInvalidRequest, "the connection ended in the middle of the body"));
}

/// Without a change of threads: what has come is copied once, from the socket to where the handler wants it.
size_t Connection::read_body_here(std::span<std::byte> buffer) {
  if (body_error_) throw Error(*std::exchange(body_error_, std::nullopt));
  const uint64_t left = *body_length_ - body_taken_;
  buffer = buffer.first(static_cast<size_t>(std::min<uint64_t>(buffer.size(), left)));
  size_t filled = 0;
  take_buffered(buffer, filled);
  try {
    while (filled < buffer.size()) {
      if (!take_from_socket(buffer, filled)) wait_for_bytes();
    }
  } catch (const Error& error) {
    if (filled == 0) throw;
    // What came before the error is not lost.
    body_error_ = error;
  }
  if (body_is_done()) body_complete_.store(true, std::memory_order_release);
  return filled;
}

/// Moves what came with the head, or behind the part of the body before.
void Connection::take_buffered(std::span<std::byte> buffer, size_t& filled) {
  const size_t count = std::min(buffer_.size(), buffer.size());
  if (count == 0) return;
  std::memcpy(buffer.data(), buffer_.data().data(), count);
  buffer_.consume(count);
  continue_expected_ = false;
  filled += count;
  body_taken_ += count;
}

/// False when nothing is there.
bool Connection::take_from_socket(std::span<std::byte> buffer, size_t& filled) {
  const ssize_t count =
      ::recv(socket_.native_handle(), buffer.data() + filled, buffer.size() - filled, MSG_DONTWAIT);
  if (count > 0) {
    continue_expected_ = false;
    filled += static_cast<size_t>(count);
    body_taken_ += static_cast<uint64_t>(count);
    body_received_ += static_cast<uint64_t>(count);
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (exchange_->stop.stop_requested()) fail_body(Error(ErrorCode::kUnavailable, "the connection is closed"));
  exchange_->stop.request_stop();
  fail_body(Error(ErrorCode::kInvalidRequest, "the connection ended in the middle of the body"));
}

void Connection::wait_for_bytes() {
  const int fd = socket_.native_handle();
  if (std::exchange(continue_expected_, false)) {
    // It fits into the socket's buffer, which is empty now. A failed write shows again in the read that
    // follows.
    ::send(fd, kContinue.data(), kContinue.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  // Clients that are slow, or say nothing more, do not keep the others from the workers.
  const Executor::Blocked blocked(executor());
  body_wait_start_ = std::chrono::steady_clock::now();
  pollfd entry{fd, POLLIN, 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(state_.options.body_timeout.count()));
  if (ready < 0 && errno != EINTR) throw_errno(errno, "poll of a connection");
  body_waited_ += std::chrono::steady_clock::now() - body_wait_start_;
  if (ready == 0) fail_body(silent_body());
  if (body_is_too_slow()) fail_body(slow_body());
}

void Connection::fail_body(Error error) {
  framing_broken_ = true;
  throw Error(std::move(error));
}

size_t Connection::body_filled() const {
  return body_length_ ? body_filled_ : body_buffer_.size() - parser_->get().body().size;
}

void Connection::finish_body_read(std::optional<Error> error) {
  size_t count = error ? 0 : body_filled();
  if (error && body_filled_ > 0) {
    // What came before the error is not lost.
    body_error_ = std::exchange(error, std::nullopt);
    count = body_filled_;
  }
  if (!body_length_) body_received_ += count;
  body_buffer_ = {};
  body_filled_ = 0;
  const BodyCallback done = std::move(body_done_);
  body_done_ = nullptr;
  if (!error && body_is_done() && exchange_ && !watching_ && !closed_) watch_for_disconnect(exchange_);
  done({count, std::move(error)});
}

}  // namespace tensormill::transport
