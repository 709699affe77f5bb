/// A server with a handler whose behaviour the request's path chooses.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/transport/transport.h"
#include "tests/transport/raw_client.h"

namespace tensormill::transport {

/// Named counters that a test can wait for.
class Events {
public:
  void add(const std::string& name);
  /// Waits until `name` was added `count` times; false after the guard.
  bool wait(const std::string& name, int count = 1);
  int count(const std::string& name);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> counts_;
  static constexpr std::chrono::milliseconds kGuard{60'000};
};

/// /echo: the body, with the method and target as fields. /ignore: leaves the body unread. /limit: reads at
/// most 1000 bytes. /gate: waits for the event "open" or until the client has gone ("cancelled"). /content:
/// kContentSize bytes in pieces. /stream: three pieces. /endless: pieces until the client has gone, for which
/// a place is asked for first. /quiet: the same of empty pieces, "quiet" with each. /stuck: never returns,
/// whatever becomes of the client. /status/N: an empty answer of that status. /reserved: as /ignore, on the
/// reserved lane. /bulk: the body and the thread's nice value, on the bulk lane. /direct: as /echo, on the
/// direct lane. /later: as /gate, answered by another thread. /turn: "turn", on the direct lane, in a later
/// turn of the thread where it has such. /tended: waits until the client has gone, which one that sends no
/// more has. /offer: waits for "open", says "undelivered" where the answer is.
class TestHandler : public http::Handler {
public:
  static constexpr uint64_t kContentSize = 32 << 20;

  http::Lane lane(const http::Request& request, std::string_view body) const noexcept override;
  void answer(http::Request& request, const std::function<void(http::Response)>& respond) noexcept override;
  http::Response handle(http::Request& request) noexcept override;
  Events& events() { return events_; }

private:
  http::Response response_to(http::Request& request);
  Events events_;
  std::mutex mutex_;
  std::vector<std::jthread> threads_;  ///< that answer later
};

class TransportTest : public testing::Test {
protected:
  TransportTest() { options_.half_close_probe = std::chrono::milliseconds(20); }
  void TearDown() override;
  /// Starts the server with `options_`; tests change these before.
  void start();
  RawClient connect(int receive_buffer = 0) { return RawClient(transport_->port(), receive_buffer, kGuard); }
  /// Starts, connects, sends, reads.
  RawResponse exchange(const std::string& bytes);
  Events& events() { return handler_.events(); }
  /// Longer than anything takes when all is well.
  static constexpr std::chrono::milliseconds kGuard{60'000};

  TransportOptions options_;
  TestHandler handler_;
  std::unique_ptr<ServerTransport> transport_;
};

/// "POST /echo HTTP/1.1" with Host, the given fields and body.
std::string post(const std::string& target, const std::string& fields, const std::string& body = "");
std::string get(const std::string& target, const std::string& fields = "");

}  // namespace tensormill::transport
