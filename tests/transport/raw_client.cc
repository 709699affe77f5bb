#include "tests/transport/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "api/http/headers.h"

namespace tensormill::transport {
RawClient::RawClient(uint16_t port, int receive_buffer, std::chrono::milliseconds guard)
    : RawClient(AF_INET, port, receive_buffer, guard) {}

RawClient::RawClient(int family, uint16_t port, int receive_buffer, std::chrono::milliseconds guard)
    : socket_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)), guard_(guard) {
  prepare(receive_buffer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 address_6{};
  address_6.sin6_family = AF_INET6;
  address_6.sin6_port = htons(port);
  address_6.sin6_addr = in6addr_loopback;
  const bool six = family == AF_INET6;
  const auto* where = six ? reinterpret_cast<sockaddr*>(&address_6) : reinterpret_cast<sockaddr*>(&address);
  if (::connect(socket_.get(), where, six ? sizeof address_6 : sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
}

RawClient::RawClient(uint16_t port, const std::string& from)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), guard_(std::chrono::seconds(20)) {
  prepare(0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  ::inet_pton(AF_INET, from.c_str(), &own.sin_addr);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(port);
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 ||
      ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) {
    throw std::runtime_error("cannot connect from " + from);
  }
}

void RawClient::prepare(int receive_buffer) {
  const timeval send_guard{guard_.count() / 1000, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &send_guard, sizeof send_guard);
  if (receive_buffer > 0) {
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void RawClient::shutdown_write() { ::shutdown(socket_.get(), SHUT_WR); }

void RawClient::reset() {
  const linger none{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

std::string RawClient::read_some(size_t size) {
  if (buffer_.empty()) fill();
  std::string some = buffer_.substr(0, size);
  buffer_.erase(0, some.size());
  return some;
}

bool RawClient::fill() {
  pollfd entry{socket_.get(), POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(guard_.count())) <= 0)
    throw std::runtime_error("the server neither answers nor closes");
  char bytes[16384];
  const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (count > 0) buffer_.append(bytes, static_cast<size_t>(count));
  return count > 0;
}

std::optional<std::string> RawClient::take_line() {
  size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

bool RawClient::take(size_t count, std::string& out) {
  while (buffer_.size() < count) {
    if (!fill()) break;
  }
  const size_t got = std::min(count, buffer_.size());
  out.append(buffer_, 0, got);
  buffer_.erase(0, got);
  return got == count;
}

void RawClient::read_chunks(RawResponse& response) {
  while (true) {
    const auto line = take_line();
    if (!line) return;
    const size_t size = std::stoul(*line, nullptr, 16);
    std::string end;
    if (!take(size, response.body) || !take(2, end)) return;
    if (size == 0) {
      response.complete = true;
      return;
    }
  }
}

void RawClient::read_body(RawResponse& response) {
  if (response.header("transfer-encoding") == "chunked") return read_chunks(response);
  const std::string length = response.header("content-length");
  if (!length.empty()) {
    response.complete = take(std::stoul(length), response.body);
    return;
  }
  while (fill()) continue;
  response.body.swap(buffer_);
  response.complete = true;
}

RawResponse RawClient::read_response(bool head_only) {
  RawResponse response;
  const auto status = take_line();
  if (!status || status->size() < 12) return response;
  const int number = std::stoi(status->substr(9, 3));
  while (true) {
    const auto line = take_line();
    if (!line) return response;
    if (line->empty()) break;
    const size_t colon = line->find(':');
    const std::string name = http::to_lower(line->substr(0, colon));
    std::string& value = response.headers[name];
    if (!value.empty()) value += ", ";
    value += http::trim(std::string_view(*line).substr(colon + 1));
  }
  response.status = number;
  response.complete = true;
  if (head_only || number < 200 || number == 204 || number == 304) return response;
  response.complete = false;
  read_body(response);
  return response;
}

bool RawClient::at_end() { return buffer_.empty() && !fill(); }

RawResponse RawClient::request(std::string_view bytes) {
  send(bytes);
  return read_response();
}

}  // namespace tensormill::transport
