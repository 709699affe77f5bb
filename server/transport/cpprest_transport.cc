// cpprestsdk behind the same interface, for comparison. What its listener cannot do (timeouts, limits of
// heads and bodies, early answers, pipelining …) is listed in README.md; nothing here tries to hide it.
#define _TURN_OFF_PLATFORM_STRING
#include <arpa/inet.h>
#include <cpprest/http_listener.h>
#include <cpprest/producerconsumerstream.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include "api/http/problem.h"
#include "api/http/time.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/transport/adapters.h"
#include "server/transport/executor.h"
#include "server/transport/framing.h"
#include "server/transport/in_work.h"
#include "server/transport/tls.h"

namespace tensormill::transport {
namespace {

namespace rest = web::http;

/// How many free ports are tried: another process may take one between the look-up and the listening.
constexpr int kPortAttempts = 8;

/// The listener cannot tell which port it got for 0, so one that is free now is looked up before.
uint16_t find_free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (!socket.valid() || ::bind(socket.get(), plain, length) != 0 ||
      ::getsockname(socket.get(), plain, &length) != 0) {
    throw_errno(errno, "look-up of a free port");
  }
  return ntohs(address.sin_port);
}

class CpprestBody : public http::BodySource {
public:
  CpprestBody(const rest::http_request& request, std::optional<uint64_t> length)
      : request_(request), stream_(request_.body()), length_(length) {}

  size_t read(std::span<std::byte> buffer) override {
    if (buffer.empty()) return 0;
    try {
      return stream_.streambuf().getn(reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()).get();
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kInvalidRequest, std::string("the body cannot be read: ") + error.what());
    }
  }

  std::optional<uint64_t> length() const override { return length_; }

private:
  rest::http_request request_;
  concurrency::streams::istream stream_;
  std::optional<uint64_t> length_;
};

std::string read_content(const http::ContentBody& body) {
  std::string bytes(body.length, '\0');
  const size_t count = body.content->read_at(
      body.offset, {reinterpret_cast<std::byte*>(bytes.data()), static_cast<size_t>(body.length)});
  bytes.resize(count);
  return bytes;
}

/// How long answers that the handler gave late may take to leave: a client that does not read holds up no
/// stop.
constexpr std::chrono::milliseconds kDeliveryLimit{500};

class CpprestTransport : public ServerTransport {
public:
  explicit CpprestTransport(const TransportOptions& options)
      : options_(options),
        workers_(options.workers, options.queue),
        reserved_(options.reserved_workers, options.queue) {}

  ~CpprestTransport() override { stop(std::chrono::milliseconds(0)); }

  void start(http::Handler& handler) override {
    handler_ = &handler;
    const int attempts = options_.port == 0 ? kPortAttempts : 1;
    for (int attempt = 1; !open_; ++attempt) {
      port_ = options_.port == 0 ? find_free_port() : options_.port;
      try {
        open();
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        if (attempt < attempts) continue;
        throw Error(ErrorCode::kUsage, "cannot listen on " + options_.address + " port " +
                                           std::to_string(port_) + ": " + error.what());
      }
    }
  }

  uint16_t port() const override { return port_; }

  /// Requests in work: the listener does not tell its connections.
  int connections() const override { return in_work_->count(); }

  void stop(std::chrono::milliseconds grace) override {
    if (!open_) return;
    draining_ = true;
    in_work_->wait_until_idle(grace);
    stop_.request_stop();
    workers_.stop();
    reserved_.stop();
    // The library's close() does not wait for a write that it has just begun, and crashes when it meets one.
    in_work_->wait_until_idle(kDeliveryLimit);
    open_ = false;
    try {
      listener_->close().wait();
    } catch (const rest::http_exception&) {
      // Another listener of this process that failed on the same port has removed this one from the library's
      // list.
    }
  }

private:
  void open() {
    web::uri_builder address;
    address.set_scheme(uses_tls(options_) ? "https" : "http").set_host(options_.address).set_port(port_);
    rest::experimental::listener::http_listener_config config;
    if (uses_tls(options_)) {
      // The library calls back for each connection; what is wrong with the files shows here.
      boost::asio::ssl::context trial(boost::asio::ssl::context::tls_server);
      set_up_tls(trial, options_);
      config.set_ssl_context_callback(
          [options = options_](boost::asio::ssl::context& context) { set_up_tls(context, options); });
    }
    listener_ = std::make_unique<rest::experimental::listener::http_listener>(address.to_uri(), config);
    listener_->support([this](const rest::http_request& request) { take(request); });
    listener_->open().wait();
    open_ = true;
  }

  void take(const rest::http_request& message) {
    http::Request request;
    std::optional<Error> wrong;
    try {
      fill(message, request);
    } catch (const Error& error) {
      wrong = error;
    }
    if (draining_) wrong = Error(ErrorCode::kUnavailable, "the server is stopping");
    const bool reserved = handler_->lane(request.method, request.target) == http::Lane::kReserved;
    auto shared = std::make_shared<http::Request>(std::move(request));
    in_work_->change(1);
    const auto work = [this, message, shared, wrong] {
      const auto respond = [this, message, shared](http::Response response) {
        finish(reply(message, *shared, std::move(response)));
      };
      if (!wrong) return handler_->answer(*shared, respond);
      respond(refusal(*wrong, http::request_id_for(shared->headers)));
    };
    if ((reserved ? reserved_ : workers_).submit(work)) return;
    finish(reply(message, *shared,
                 refusal(Error(ErrorCode::kUnavailable, "all workers are busy and the queue is full"),
                         http::request_id_for(shared->headers))));
  }

  /// A request is in work until its answer is written: closing the listener cuts what is still being sent.
  void finish(const pplx::task<void>& sent) const {
    sent.then([in_work = in_work_](const pplx::task<void>& ended) {
      ignore_failure(ended);
      in_work->change(-1);
    });
  }

  void fill(const rest::http_request& message, http::Request& request) const {
    request.method = message.method();
    request.target = message.request_uri().to_string();
    request.peer = message.remote_address();
    request.cancelled = stop_.get_token();
    for (const auto& [name, value] : message.headers()) request.headers.add(name, value);
    const Framing framing =
        check_framing(request.headers, message.http_version() != rest::http_versions::HTTP_1_0);
    if (framing.chunked || framing.content_length.value_or(0) > 0) {
      request.body = std::make_shared<CpprestBody>(message, framing.content_length);
    } else {
      request.body = std::make_shared<http::BytesBody>("");
    }
  }

  static pplx::task<void> reply(const rest::http_request& message, const http::Request& request,
                                http::Response response) {
    rest::http_response answer(static_cast<rest::status_code>(response.status));
    answer.set_reason_phrase(std::string(http::reason_phrase(response.status)));
    for (const auto& [name, value] : response.headers.fields()) answer.headers().add(name, value);
    answer.headers().add("Date", http::format_http_date(std::time(nullptr)));
    const std::string type(response.headers.get("Content-Type").value_or("application/octet-stream"));
    if (const auto* stream = std::get_if<std::shared_ptr<http::ResponseStream>>(&response.body)) {
      return reply_stream(message, answer, **stream, type);
    }
    if (request.method != "HEAD" && status_has_body(response.status)) {
      std::string bytes;
      if (const auto* content = std::get_if<http::ContentBody>(&response.body)) {
        bytes = read_content(*content);
      } else {
        bytes = std::move(std::get<std::string>(response.body));
      }
      answer.set_body(std::move(bytes), type);
    }
    return message.reply(answer);
  }

  static pplx::task<void> reply_stream(const rest::http_request& message, rest::http_response& answer,
                                       http::ResponseStream& stream, const std::string& type) {
    concurrency::streams::producer_consumer_buffer<uint8_t> buffer;
    answer.set_body(buffer.create_istream(), type);
    const auto sent = message.reply(answer);
    std::string piece;
    while (!sent.is_done() && stream.next(piece)) {
      if (!piece.empty()) {
        buffer.putn_nocopy(reinterpret_cast<const uint8_t*>(piece.data()), piece.size()).wait();
        buffer.sync().wait();
      }
      piece.clear();
    }
    buffer.close(std::ios_base::out).wait();
    return sent;
  }

  /// A response that cannot be delivered is the client's affair: it went away.
  static void ignore_failure(const pplx::task<void>& sent) {
    try {
      sent.wait();
    } catch (const std::exception&) {
    }
  }

  const TransportOptions options_;
  http::Handler* handler_ = nullptr;
  Executor workers_;
  Executor reserved_;
  std::unique_ptr<rest::experimental::listener::http_listener> listener_;
  uint16_t port_ = 0;
  bool open_ = false;
  std::atomic<bool> draining_{false};
  std::stop_source stop_;
  const std::shared_ptr<InWork> in_work_ = std::make_shared<InWork>();
};

}  // namespace

std::unique_ptr<ServerTransport> make_cpprest_transport(const TransportOptions& options) {
  return std::make_unique<CpprestTransport>(options);
}

}  // namespace tensormill::transport
