// Times from when a request was to be sent; schedules; a client over sockets of the test's own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/load/bodies.h"
#include "server/load/http_client.h"
#include "server/load/load.h"

namespace tensormill::load {
namespace {

using std::chrono::milliseconds;

/// Time that goes on when somebody waits or works.
class FakeClock final : public Clock {
public:
  Nanoseconds now() override { return now_; }
  void wait_until(Nanoseconds time) override { now_ = std::max(now_, time); }
  void work(Nanoseconds time) { now_ += time; }

private:
  Nanoseconds now_{0};
};

TEST(Load, APauseIsSeenByAllRequestsThatFallIntoIt) {
  // 100 requests a second, each takes 2 ms; the 11th takes a second: 98 more are due before it is answered.
  FakeClock clock;
  int sent = 0;
  const Send send = [&] {
    clock.work(milliseconds(++sent == 11 ? 1000 : 2));
    return std::string();
  };
  const LoadResult result = run_load(even_schedule(100, 3), {send}, clock);
  const Json json = load_json(result);
  EXPECT_EQ(json["answered"], 300);
  EXPECT_DOUBLE_EQ(result.latency_ms[9], 2);
  EXPECT_DOUBLE_EQ(result.latency_ms[10], 1000);
  // Due at 110 ms, sent at 1,100 ms.
  EXPECT_DOUBLE_EQ(result.latency_ms[11], 992);
  EXPECT_DOUBLE_EQ(result.service_ms[11], 2);
  EXPECT_EQ(json["late"], 124);  // each gains 8 ms on the last: 990 / 8
  EXPECT_DOUBLE_EQ(json["service_ms"]["p99"].get<double>(), 2);
  EXPECT_GT(json["latency_ms"]["p90"].get<double>(), 700);
  EXPECT_DOUBLE_EQ(json["latency_ms"]["max"].get<double>(), 1000);
}

TEST(Load, FailuresAreCountedApart) {
  FakeClock clock;
  int sent = 0;
  const Send send = [&] { return ++sent % 4 == 0 ? std::string("503") : std::string(); };
  const Json json = load_json(run_load(even_schedule(10, 2), {send}, clock));
  EXPECT_EQ(json["requests"], 20);
  EXPECT_EQ(json["answered"], 15);
  EXPECT_EQ(json["failed"], (Json{{"503", 5}}));
  const Json none = load_json(run_load(even_schedule(10, 1), {[] { return std::string("timeout"); }}, clock));
  EXPECT_TRUE(none["latency_ms"].is_null());
}

TEST(Load, ConnectionsShareTheSchedule) {
  std::atomic<int> calls{0};
  const std::vector<Send> connections(8, [&] {
    ++calls;
    return std::string();
  });
  const std::unique_ptr<Clock> clock = system_clock();
  const LoadResult result = run_load(even_schedule(20'000, 0.05), connections, *clock);
  EXPECT_EQ(calls, 1000);
  EXPECT_EQ(result.latency_ms.size(), 1000u);
}

TEST(Schedule, TimesAreTheRates) {
  const std::vector<Nanoseconds> even = even_schedule(4, 1);
  EXPECT_EQ(even, (std::vector<Nanoseconds>{milliseconds(0), milliseconds(250), milliseconds(500),
                                            milliseconds(750)}));
  EXPECT_EQ(even_schedule(0.5, 1).size(), 1u);
  const std::vector<Nanoseconds> poisson = poisson_schedule(1000, 10, 7);
  EXPECT_EQ(poisson, poisson_schedule(1000, 10, 7));
  EXPECT_NE(poisson, poisson_schedule(1000, 10, 8));
  EXPECT_TRUE(std::is_sorted(poisson.begin(), poisson.end()));
  // Five standard deviations of a count whose mean is 10,000.
  EXPECT_NEAR(static_cast<double>(poisson.size()), 10'000, 500);
  EXPECT_THROW(check_schedule(1e6, 3600), Error);
  EXPECT_THROW(check_schedule(0, 1), Error);
}

TEST(Url, Forms) {
  EXPECT_EQ(parse_url("http://a.example:8080/v1/x/").path, "/v1/x");
  EXPECT_EQ(parse_url("http://a.example").port, "80");
  const Url six = parse_url("http://[::1]:81");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.authority(), "[::1]:81");
  for (const char* bad : {"", "a:1", "ftp://a", "http://", "http://a:", "http://a:x", "http://a:123456",
                          "http://[::1", "http://a b", "http://a\r\nX: y", "http://[::1]x"})
    EXPECT_THROW(parse_url(bad), Error) << bad;
  EXPECT_EQ(parse_url("https://a").authority(), "a:443");
  EXPECT_TRUE(parse_url("https://a").tls);
}

/// A server on loopback that gives one answer a connection's request, in parts, as told.
class Server {
public:
  explicit Server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = parse_url("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    thread_.join();
    ::close(socket_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  const Url& url() const { return url_; }

private:
  /// An answer that begins with "!" ends its connection.
  void serve() {
    int peer = -1;
    for (std::string answer : answers_) {
      if (peer < 0) peer = ::accept(socket_, nullptr, nullptr);
      std::string request;
      char byte = 0;
      while (!request.ends_with("\r\n\r\n") && ::recv(peer, &byte, 1, 0) == 1) request += byte;
      const bool ends = answer.starts_with('!');
      if (ends) answer.erase(0, 1);
      for (const char& one : answer) {
        if (::send(peer, &one, 1, MSG_NOSIGNAL) != 1) break;
      }
      if (ends) {
        ::close(peer);
        peer = -1;
      }
    }
    if (peer >= 0) ::close(peer);
  }

  std::vector<std::string> answers_;
  Url url_;
  int socket_ = -1;
  std::thread thread_;
};

std::string get(const Url& url) { return request_head(url, "GET", "/", "", 0); }

TEST(HttpClient, ReadsAnswersInPartsAndKeepsTheConnection) {
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  const Server server({"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", chunked,
                       "!HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                       "!HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nrest"});
  HttpClient client(server.url(), std::chrono::minutes(10));
  EXPECT_EQ(client.send(get(server.url())).body, "abc");
  EXPECT_EQ(client.send(get(server.url())).body, "abcde");
  EXPECT_EQ(client.send(get(server.url())).status, 404);
  // The server has ended the connection; the next request has a new one.
  EXPECT_EQ(client.send(get(server.url())).body, "rest");
}

TEST(HttpClient, WhatIsNoAnswer) {
  const Server server({"!nonsense\r\n\r\n", "!HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"});
  HttpClient client(server.url(), std::chrono::minutes(10));
  EXPECT_EQ(client.send(get(server.url())).failure, "connection");
  EXPECT_EQ(client.send(get(server.url())).failure, "connection");
}

TEST(HttpClient, ASilentServerIsATimeout) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket, 8), 0);
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const Url url = parse_url("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  HttpClient client(url, milliseconds(50));
  EXPECT_EQ(client.send(get(url)).failure, "timeout");
  ::close(socket);
  HttpClient refused(url, std::chrono::minutes(10));
  EXPECT_EQ(refused.send(get(url)).failure, "connection");
}

TEST(Bodies, TensorsAsTheV2ProtocolHasThem) {
  const std::vector<float> values = {1, 2};
  const std::string wire =
      v2_request(parse_url("http://h:1"), "net", {{"x", Tensor::from<float>({2}, values)}}, "A: b\r\n");
  EXPECT_TRUE(wire.starts_with("POST /v2/models/net/infer HTTP/1.1\r\nHost: h:1\r\n"));
  EXPECT_NE(wire.find("\r\nA: b\r\n"), std::string::npos);
  const size_t body = wire.find("\r\n\r\n") + 4;
  const size_t length = std::stoul(wire.substr(wire.find("Inference-Header-Content-Length: ") + 33));
  const Json json = Json::parse(wire.substr(body, length));
  EXPECT_EQ(json["inputs"][0]["datatype"], "FP32");
  EXPECT_EQ(json["inputs"][0]["parameters"]["binary_data_size"], 8);
  EXPECT_EQ(wire.size() - body - length, 8u);
}

}  // namespace
}  // namespace tensormill::load
