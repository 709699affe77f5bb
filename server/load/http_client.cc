#include "server/load/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <memory>

namespace tensormill::load {

namespace {

namespace http = boost::beast::http;

constexpr uint64_t kMaxBody = uint64_t{1} << 32;

[[noreturn]] void bad_url(const std::string& text) {
  throw Error(ErrorCode::kUsage, "\"" + text + "\" is no http or https address: write http://HOST:PORT/PATH");
}

Answer lost(const std::string& why) { return {0, why, ""}; }

}  // namespace

std::string Url::authority() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

Url parse_url(const std::string& text) {
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c == 0x7F; };
  Url url;
  url.tls = text.starts_with("https://");
  if ((!url.tls && !text.starts_with("http://")) || std::any_of(text.begin(), text.end(), is_bad))
    bad_url(text);
  if (url.tls) url.port = "443";
  const std::string rest = text.substr(url.tls ? 8 : 7);
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string place = rest.substr(0, slash);
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (place.starts_with('[')) {
    const size_t end = place.find(']');
    if (end == std::string::npos) bad_url(text);
    url.host = place.substr(1, end - 1);
    place = place.substr(end + 1);
  } else {
    url.host = place.substr(0, place.find(':'));
    place = place.substr(url.host.size());
  }
  if (!place.empty()) url.port = place.substr(1);
  const bool is_number =
      !url.port.empty() && url.port.size() <= 5 &&
      std::all_of(url.port.begin(), url.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (url.host.empty() || (!place.empty() && place.front() != ':') || !is_number) bad_url(text);
  return url;
}

HttpClient::HttpClient(const Url& url, std::chrono::milliseconds timeout, TlsContext tls)
    : url_(url), timeout_(timeout), tls_(url.tls && !tls ? tls_context({}) : std::move(tls)) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  if (code != 0 || found == nullptr)
    throw Error(ErrorCode::kUnavailable, url.authority() + ": " + ::gai_strerror(code));
  address_.assign(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen);
  family_ = found->ai_family;
}

void HttpClient::close() {
  session_.reset();
  socket_ = FileDescriptor();
}

bool HttpClient::wait_for(short events, Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd one = {socket_.get(), events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

template <typename Step>
TlsSession::Step HttpClient::drive(const Step& step, Deadline deadline, bool& is_late) {
  while (true) {
    const TlsSession::Step result = step();
    if (result != TlsSession::Step::kWantsRead && result != TlsSession::Step::kWantsWrite) return result;
    if (wait_for(result == TlsSession::Step::kWantsRead ? POLLIN : POLLOUT, deadline)) continue;
    is_late = true;
    return TlsSession::Step::kFailed;
  }
}

HttpClient::Failure HttpClient::connect_socket(Deadline deadline) {
  socket_ = FileDescriptor(::socket(family_, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.valid()) return "connection";
  const int yes = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(address_.data()),
                static_cast<socklen_t>(address_.size())) == 0)
    return "";
  if (errno != EINPROGRESS) return "connection";
  if (!wait_for(POLLOUT, deadline)) return "timeout";
  int failed = 0;
  socklen_t size = sizeof failed;
  const bool is_asked = ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failed, &size) == 0;
  return is_asked && failed == 0 ? "" : "connection";
}

HttpClient::Failure HttpClient::connect(Deadline deadline) {
  const Failure failure = connect_socket(deadline);
  if (!failure.empty() || !url_.tls) return failure;
  session_ = std::make_unique<TlsSession>(tls_, socket_.get(), url_.host);
  bool is_late = false;
  if (drive([&] { return session_->handshake(); }, deadline, is_late) == TlsSession::Step::kDone) return "";
  reason_ = session_->reason();
  return is_late ? "timeout" : "tls";
}

HttpClient::Failure HttpClient::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    size_t sent = 0;
    if (session_) {
      bool is_late = false;
      const auto step =
          drive([&] { return session_->write(bytes.data(), bytes.size(), sent); }, deadline, is_late);
      if (step != TlsSession::Step::kDone) return is_late ? "timeout" : "connection";
    } else {
      const ssize_t result = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (result < 0 && errno == EAGAIN && !wait_for(POLLOUT, deadline)) return "timeout";
      if (result < 0 && errno != EAGAIN && errno != EINTR) return "connection";
      sent = static_cast<size_t>(std::max<ssize_t>(0, result));
    }
    bytes.remove_prefix(sent);
  }
  return "";
}

HttpClient::Failure HttpClient::receive(char* data, size_t size, size_t& count, Deadline deadline) {
  count = 0;
  if (session_) {
    bool is_late = false;
    const auto step = drive([&] { return session_->read(data, size, count); }, deadline, is_late);
    if (step == TlsSession::Step::kDone || step == TlsSession::Step::kEnd) return "";
    return is_late ? "timeout" : "connection";
  }
  while (true) {
    const ssize_t got = ::recv(socket_.get(), data, size, 0);
    if (got >= 0) {
      count = static_cast<size_t>(got);
      return "";
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return "connection";
    if (!wait_for(POLLIN, deadline)) return "timeout";
  }
}

Answer HttpClient::read(Deadline deadline) {
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxBody);
  parser.eager(true);
  std::string pending;
  std::array<char, 65536> part = {};
  while (!parser.is_done()) {
    size_t got = 0;
    const Failure failure = receive(part.data(), part.size(), got, deadline);
    if (!failure.empty()) return lost(failure);
    boost::beast::error_code error;
    if (got == 0) {
      if (parser.is_header_done()) parser.put_eof(error);
      if (!parser.is_done() || error) return lost("connection");
      break;
    }
    pending.append(part.data(), got);
    while (!pending.empty() && !parser.is_done()) {
      const size_t taken = parser.put(boost::asio::buffer(pending), error);
      pending.erase(0, taken);
      if (error == http::error::need_more || (!error && taken == 0)) break;
      if (error) return lost("connection");
    }
  }
  Answer answer{static_cast<int>(parser.get().result_int()), "", std::move(parser.get().body())};
  if (!parser.get().keep_alive()) close();
  return answer;
}

Answer HttpClient::send(std::string_view wire) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout_;
  Answer answer;
  // A server may close a connection that was idle, just before it is used: that is no failure of the request.
  for (int attempt = socket_.valid() ? 0 : 1; attempt < 2; ++attempt) {
    Failure failure = socket_.valid() ? "" : connect(deadline);
    if (failure.empty()) failure = write(wire, deadline);
    answer = failure.empty() ? read(deadline) : lost(failure);
    if (answer.status != 0) return answer;
    close();
    if (answer.failure == "timeout") break;
  }
  if (answer.failure == "tls") answer.body = reason_;
  return answer;
}

std::string HttpClient::get(const std::string& path, const std::string& headers) {
  const Answer answer = send(request_head(url_, "GET", path, headers, 0));
  const std::string what = (url_.tls ? "https://" : "http://") + url_.authority() + path;
  if (answer.status == 0) throw Error(ErrorCode::kUnavailable, what + " " + why_lost(answer));
  if (answer.status != 200) {
    throw Error(answer.status == 404 ? ErrorCode::kNotFound : ErrorCode::kInvalidRequest,
                what + " answers " + std::to_string(answer.status) + ": " + answer.body.substr(0, 500));
  }
  return answer.body;
}

std::string why_lost(const Answer& answer) {
  return "does not answer: " + answer.failure + (answer.body.empty() ? "" : ", " + answer.body);
}

std::string request_head(const Url& url, std::string_view method, const std::string& path,
                         const std::string& headers, size_t body_bytes) {
  std::string head = std::string(method) + " " + path + " HTTP/1.1\r\nHost: " + url.authority() +
                     "\r\nUser-Agent: tensormill-bench\r\n" + headers;
  if (method != "GET") head += "Content-Length: " + std::to_string(body_bytes) + "\r\n";
  return head + "\r\n";
}

}  // namespace tensormill::load
