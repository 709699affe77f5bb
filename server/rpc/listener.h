/// Remote procedure calls as requests of the REST interface: what stands between a listener, which knows gRPC
/// and lies in a module that is loaded on demand, and the process. A call has a request of HTTP in whose
/// place it stands, so keys, scopes, budgets, limits, log and audit are those of HTTP.
///
/// The module uses these headers and none of the code behind them: what it tells is values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "api/http/body.h"

namespace tensormill::rpc {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  ///< of HTTP
  std::string target;
  Fields fields;                           ///< header fields
  std::string peer;                        ///< "127.0.0.1:40312"
  std::shared_ptr<http::BodySource> body;  ///< never null; does not block
  std::stop_token cancelled;               ///< the client has gone, or its deadline has passed
  std::chrono::steady_clock::time_point received;
  bool is_here = false;  ///< answered on a thread that reads others' messages: as is_quick() allowed
};

struct Answer {
  int status = 200;     ///< of HTTP
  int code = 0;         ///< gRPC's; 0: OK
  std::string message;  ///< of an error
  Fields trailing;      ///< metadata behind the answer; a name that ends in "-bin" has any bytes
  std::shared_ptr<const std::string> body;
  size_t head = 0;             ///< bytes of JSON in front of tensors; 0: all
  std::shared_ptr<void> hold;  ///< memory that counts until the answer is out
};

/// Thread-safety: all methods from many threads.
class Handler {
public:
  virtual ~Handler() = default;
  /// Whether the message of a call with these fields is worth reading: keys are not needed, or it has one.
  /// Quick.
  virtual bool may_send(const Fields& fields) = 0;
  /// Counts `bytes` as memory of requests in flight until `hold`, which is given more to hold, goes. False
  /// with code and message in `refusal` where there is no capacity.
  virtual bool reserve(uint64_t bytes, std::shared_ptr<void>& hold, Answer& refusal) = 0;
  /// Runs `task`, which must not throw, on a worker. False when all are busy and the queue is full.
  virtual bool submit(std::function<void()> task) = 0;
  /// Whether a request with a small head and at most kMostHere bytes of tensors may be answered by the thread
  /// that read it, which saves a change of threads: it is held for about a millisecond.
  virtual bool is_quick(const std::string& target) const noexcept = 0;
  static constexpr size_t kMostHere = size_t{1} << 20;
  static constexpr size_t kMostHeadHere = size_t{16} << 10;
  /// `respond` is called once, on any thread, before this returns already.
  virtual void answer(Request request, std::function<void(Answer)> respond) noexcept = 0;
  /// Whether requests are answered: quick.
  virtual bool ready() const noexcept = 0;
};

struct ListenerOptions {
  std::string tls_certificate;  ///< PEM files, read again when they change; empty: in the clear
  std::string tls_key;
  int max_message_bytes = 0;                ///< of a request
  size_t buffer_bytes = size_t{512} << 20;  ///< of requests that are coming in, in all
  int max_calls = 1024;                     ///< at once; past it UNAVAILABLE
  int max_streams = 64;                     ///< of those, calls that last; past it UNAVAILABLE
  uint32_t max_header_bytes = 16 * 1024;    ///< metadata of a call
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds message_timeout{300'000};  ///< from a call's beginning to its message's end
  std::chrono::milliseconds idle_timeout{60'000};      ///< of a connection without a call
};

/// What knows the protocol: it serves connections that it is given, so that their number is bounded with that
/// of HTTP's. Thread-safety: take() from any thread between start() and stop(); the rest from one.
class Listener {
public:
  virtual ~Listener() = default;
  /// `handler` must outlive stop(). Returns what is wrong, or "". Called once.
  virtual std::string start(const ListenerOptions& options, Handler& handler) = 0;
  /// Serves a connection: the descriptor of a TCP socket that does not block, which it closes, and of which
  /// it makes no duplicate (transport::BoundedAcceptor).
  virtual void take(int socket) noexcept = 0;
  /// Takes no more calls, ends those that last, gives the others `grace` and then cancels them. Returns when
  /// none is left. Called once, after start() alone; no take() runs or comes any more.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

/// The listener of the module. Throws Error(kNotSupported) where it is not installed.
std::unique_ptr<Listener> load_listener();

}  // namespace tensormill::rpc
