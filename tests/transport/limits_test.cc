// Limits of heads, bodies, connections and workers; early answers; slow, stalled and vanishing clients.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <vector>

#include "tests/transport/fixture.h"

namespace tensormill::transport {
namespace {

using std::chrono::milliseconds;

class Limits : public TransportTest {};

TEST_F(Limits, RefusesLargeHeads) {
  const RawResponse response = exchange(get("/echo", "X-Field: " + std::string(20'000, 'x') + "\r\n"));
  EXPECT_EQ(response.status, 431);
  EXPECT_EQ(response.header("connection"), "close");
}

TEST_F(Limits, RefusesHeadsThatNeverEnd) {
  EXPECT_EQ(exchange("GET /" + std::string(60'000, 'x')).status, 431);
}

TEST_F(Limits, TakesHeadsUpToTheLimit) {
  EXPECT_EQ(exchange(get("/echo", "X-Field: " + std::string(16'000, 'x') + "\r\n")).status, 200);
}

TEST_F(Limits, RefusesAnnouncedBodiesBeforeTheyAreSent) {
  options_.max_body_bytes = 1000;
  EXPECT_EQ(exchange(post("/echo", "Content-Length: 1001\r\n")).status, 413);
}

TEST_F(Limits, RefusesChunkedBodiesPastTheLimit) {
  options_.max_body_bytes = 1000;
  EXPECT_EQ(
      exchange(post("/echo", "Transfer-Encoding: chunked\r\n", "7d0\r\n" + std::string(1500, 'x'))).status,
      413);
}

TEST_F(Limits, AnswersEarlyToAHandlerThatRefuses) {
  start();
  RawClient client = connect();
  const RawResponse response = client.request(post("/limit", "Content-Length: 100000000\r\n"));
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST_F(Limits, DeliversEarlyAnswersToClientsThatGoOnSending) {
  start();
  RawClient client = connect();
  client.send(post("/limit", "Content-Length: 100000000\r\n"));
  // More than any socket buffer holds: without lingering the answer would be lost in a reset.
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 16; ++i) client.send(megabyte);
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(Limits, LetsSlowReadersOfTheBodySlowTheClient) {
  start();
  RawClient client = connect();
  const RawResponse response = client.request(
      post("/limit", "Transfer-Encoding: chunked\r\n", "7d0\r\n" + std::string(2000, 'x') + "\r\n"));
  EXPECT_EQ(response.status, 413);
}

TEST_F(Limits, RefusesConnectionsPastTheLimit) {
  options_.max_connections = 2;
  start();
  RawClient first = connect();
  RawClient second = connect();
  EXPECT_EQ(first.request(get("/ignore")).status, 200);
  EXPECT_EQ(second.request(get("/ignore")).status, 200);
  RawClient third = connect();
  const RawResponse response = third.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.header("retry-after"), "1");
  EXPECT_EQ(events().count("refused connections"), 1);
}

TEST_F(Limits, TellsOfEachRefusalThatNoHandlerSees) {
  options_.max_connections_per_address = 1;
  options_.max_header_bytes = 1000;
  start();
  RawClient client = connect();
  EXPECT_EQ(client.request(get("/ignore")).status, 200);
  // Those past the number that are answered are closed without a word, and counted as well.
  std::vector<RawClient> many;
  for (int i = 0; i < 80; ++i) many.push_back(connect());
  EXPECT_TRUE(events().wait("refused address", 80));
  EXPECT_EQ(client.request(get("/ignore")).status, 200);
  EXPECT_EQ(events().count("refused head"), 0);
  EXPECT_EQ(client.request(get("/ignore", "Content-Length: x\r\n")).status, 400);
  EXPECT_EQ(events().count("refused head"), 1);
  RawClient large(transport_->port(), "127.0.0.2");
  EXPECT_EQ(large.request(get("/ignore", "X: " + std::string(2000, 'x') + "\r\n")).status, 431);
  EXPECT_EQ(events().count("refused head"), 2);
  EXPECT_EQ(events().count("refused connections") + events().count("refused queue"), 0);
}

TEST_F(Limits, RefusesConnectionsPastTheLimitOfAnAddress) {
  options_.max_connections_per_address = 2;
  start();
  RawClient first = connect();
  RawClient second = connect();
  EXPECT_EQ(first.request(get("/ignore")).status, 200);
  EXPECT_EQ(second.request(get("/ignore")).status, 200);
  RawClient third = connect();
  const RawResponse response = third.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.header("retry-after"), "1");
  EXPECT_NE(response.body.find("http.max_connections_per_address"), std::string::npos) << response.body;
  RawClient other(transport_->port(), "127.0.0.2");
  EXPECT_EQ(other.request(get("/ignore")).status, 200);
  // A place is free again when its connection ends.
  first.close();
  int status = 0;
  for (int attempt = 0; attempt < 10'000 && status != 200; ++attempt)
    status = exchange(get("/ignore")).status;
  EXPECT_EQ(status, 200);
}

TEST_F(Limits, AddressesWithoutALimitHaveThatOfAllAlone) {
  options_.max_connections_per_address = 1;
  options_.unlimited_addresses = {"10.0.0.1", "127.0.0.0/31"};
  start();
  std::vector<RawClient> many;
  for (int i = 0; i < 5; ++i) many.push_back(connect());
  for (RawClient& one : many) EXPECT_EQ(one.request(get("/ignore")).status, 200);
  RawClient other(transport_->port(), "127.0.0.2");
  EXPECT_EQ(other.request(get("/ignore")).status, 200);
  RawClient refused(transport_->port(), "127.0.0.2");
  EXPECT_EQ(refused.read_response().status, 503);
}

TEST_F(Limits, WhoHasTooManyConnectionsShutsNobodyOut) {
  options_.max_connections = 3;
  options_.max_connections_per_address = 2;
  start();
  // Two silent ones, and more that are refused and do not go.
  std::vector<RawClient> many;
  for (int i = 0; i < 2; ++i) many.push_back(connect());
  for (int i = 0; i < 20; ++i) {
    many.push_back(connect());
    EXPECT_EQ(many.back().read_response().status, 503);
  }
  RawClient other(transport_->port(), "127.0.0.2");
  EXPECT_EQ(other.request(get("/ignore")).status, 200);
}

TEST_F(Limits, SilentConnectionsGetTheTimeOfAHead) {
  options_.header_timeout = milliseconds(50);
  options_.keep_alive_timeout = std::chrono::hours(1);
  options_.max_connections = 4;
  start();
  std::vector<RawClient> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(connect());
  for (RawClient& one : silent) EXPECT_TRUE(one.at_end());
  int status = 0;
  for (int attempt = 0; attempt < 10'000 && status != 200; ++attempt)
    status = exchange(get("/ignore")).status;
  EXPECT_EQ(status, 200);
}

TEST_F(Limits, RefusesStreamsPastTheLimitAndCutsNone) {
  options_.max_streams = 2;
  start();
  RawClient first = connect();
  RawClient second = connect();
  first.send(get("/endless"));
  second.send(get("/endless"));
  EXPECT_NE(first.read_some(1), "");
  EXPECT_NE(second.read_some(1), "");
  RawClient third = connect();
  const RawResponse refused = third.request(get("/endless"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(refused.header("content-type"), "application/problem+json");
  EXPECT_EQ(events().count("unavailable"), 1) << "the handler knows";
  // The connection is as good as before, and what was refused is let go of: also where nobody asked.
  EXPECT_EQ(third.request(get("/echo")).status, 200);
  EXPECT_EQ(third.request(get("/stream")).status, 503);
  EXPECT_EQ(events().count("stream released"), 1);
  std::string pieces;
  while (pieces.size() < 100'000) pieces += first.read_some(100'000);
  EXPECT_NE(pieces.find("piece\n"), std::string::npos);
  second.close();
  ASSERT_TRUE(events().wait("stream released", 2));
  int status = 0;
  for (int attempt = 0; attempt < 10'000 && status != 200; ++attempt) {
    third.send(get("/stream"));
    status = third.read_response().status;
  }
  EXPECT_EQ(status, 200);
}

TEST_F(Limits, StreamsKeepNoWorker) {
  options_.workers = 1;
  options_.queue = 1;  // the worker may be about to give the stream away
  start();
  RawClient streaming = connect();
  streaming.send(get("/quiet"));
  ASSERT_TRUE(events().wait("quiet"));
  EXPECT_EQ(exchange(get("/echo")).status, 200);
}

TEST_F(Limits, BulkHasThreadsOfItsOwnWhichGiveWay) {
  options_.workers = 1;
  options_.queue = 8;
  start();
  RawClient working = connect();
  working.send(get("/gate"));
  ASSERT_TRUE(events().wait("entered"));
  errno = 0;
  const int own = ::getpriority(PRIO_PROCESS, 0);
  ASSERT_EQ(errno, 0);
  const std::string below = std::to_string(std::min(own + 5, 19));
  for (const char* framing : {"Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n"}) {
    // A body that stalls leaves the lane to another one.
    RawClient stalled = connect();
    stalled.send(post("/bulk", framing));
    EXPECT_EQ(exchange(post("/bulk", "Content-Length: 4\r\n", "data")).body, "data " + below);
  }
  events().add("open");
  EXPECT_EQ(working.read_response().status, 200);
}

TEST_F(Limits, RefusesRequestsPastTheQueueButNotHealth) {
  options_.workers = 1;
  options_.queue = 1;
  start();
  RawClient working = connect();
  working.send(get("/gate"));
  ASSERT_TRUE(events().wait("entered"));
  RawClient waiting = connect();
  RawClient refused = connect();
  waiting.send(get("/gate"));
  refused.send(get("/gate"));
  // Which of the two is second in line is the network's choice; one waits and one is refused.
  RawClient health = connect();
  EXPECT_EQ(health.request(get("/reserved")).status, 200);
  events().add("open");
  const int one = waiting.read_response().status;
  const int other = refused.read_response().status;
  EXPECT_EQ(std::min(one, other), 200);
  EXPECT_TRUE(std::max(one, other) == 503 || std::max(one, other) == 200);
  EXPECT_EQ(working.read_response().body, "gate");
}

TEST_F(Limits, AnswersBusyWithRetryAfter) {
  options_.workers = 1;
  options_.queue = 0;
  start();
  RawClient working = connect();
  working.send(get("/gate"));
  ASSERT_TRUE(events().wait("entered"));
  const RawResponse refused = exchange(get("/ignore"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(events().count("refused queue"), 1);
  events().add("open");
  EXPECT_EQ(working.read_response().status, 200);
}

TEST_F(Limits, WhatIsAnsweredLaterKeepsNoWorker) {
  options_.workers = 1;
  // A handler has entered, and is about to return: the next request waits for that, and not for the answer.
  options_.queue = 1;
  start();
  RawClient waiting = connect();
  waiting.send(get("/later"));
  ASSERT_TRUE(events().wait("entered"));
  EXPECT_EQ(exchange(get("/echo")).status, 200);
  events().add("open");
  EXPECT_EQ(waiting.read_response().body, "gate");
}

TEST_F(Limits, TimesOutStalledHeads) {
  options_.header_timeout = milliseconds(50);
  start();
  RawClient client = connect();
  client.send("GET /echo HTTP/1.1\r\nHost: loc");
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_TRUE(client.at_end());
}

TEST_F(Limits, ClosesIdleConnectionsSilently) {
  options_.keep_alive_timeout = milliseconds(50);
  start();
  // A client that was held up for longer than the timeout before its request finds the connection closed.
  int status = 0;
  for (int attempt = 0; attempt < 100 && status == 0; ++attempt) {
    RawClient used = connect();
    status = used.request(get("/echo")).status;
    EXPECT_TRUE(status == 0 || used.at_end());
  }
  EXPECT_EQ(status, 200);
}

TEST_F(Limits, TimesOutStalledBodies) {
  options_.body_timeout = milliseconds(50);
  start();
  RawClient client = connect();
  client.send(post("/echo", "Content-Length: 10\r\n", "hello"));
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_EQ(events().count("request_timeout"), 1);
  EXPECT_TRUE(client.at_end());
}

TEST_F(Limits, TimesOutTricklingBodies) {
  options_.body_timeout = milliseconds(50);
  options_.min_read_rate = uint64_t{1} << 40;
  start();
  RawClient client = connect();
  client.send(post("/echo", "Content-Length: 1000000000\r\n"));
  const auto end = std::chrono::steady_clock::now() + kGuard;
  while (events().count("request_timeout") == 0 && std::chrono::steady_clock::now() < end && client.send("x"))
    continue;
  EXPECT_EQ(client.read_response().status, 408);
}

TEST_F(Limits, TimesOutTricklingChunks) {
  options_.body_timeout = milliseconds(50);
  options_.min_read_rate = uint64_t{1} << 40;
  start();
  RawClient client = connect();
  client.send(post("/echo", "Transfer-Encoding: chunked\r\n"));
  const auto end = std::chrono::steady_clock::now() + kGuard;
  while (events().count("request_timeout") == 0 && std::chrono::steady_clock::now() < end &&
         client.send("1;and-a-word-about-it\r\nx\r\n")) {
    continue;
  }
  EXPECT_EQ(client.read_response().status, 408);
}

TEST_F(Limits, TimesOutClientsThatReadLittle) {
  options_.write_timeout = milliseconds(5);
  options_.min_write_rate = uint64_t{1} << 40;
  start();
  // It reads all the time, in small pieces.
  RawClient client = connect(4096);
  client.send(get("/content"));
  uint64_t got = 0;
  for (std::string some = client.read_some(1'000); !some.empty(); some = client.read_some(1'000))
    got += some.size();
  EXPECT_LT(got, TestHandler::kContentSize);
  EXPECT_TRUE(events().wait("content released"));
}

TEST_F(Limits, TimesOutClientsThatDoNotRead) {
  options_.write_timeout = milliseconds(50);
  start();
  RawClient client = connect(4096);
  client.send(get("/content"));
  EXPECT_TRUE(events().wait("content released"));
}

TEST_F(Limits, BoundsTheLingering) {
  options_.linger_timeout = milliseconds(50);
  start();
  RawClient client = connect();
  EXPECT_EQ(client.request(post("/limit", "Content-Length: 100000000\r\n")).status, 413);
  EXPECT_TRUE(client.at_end());
  // The client never closes; the server forgets it all the same, and stop() finds nothing to wait for.
  transport_->stop(milliseconds(20'000), kGuard);
  EXPECT_EQ(transport_->connections(), 0);
}

TEST_F(Limits, NoticesDisconnectDuringWork) {
  start();
  RawClient client = connect();
  client.send(get("/gate"));
  ASSERT_TRUE(events().wait("entered"));
  client.close();
  EXPECT_TRUE(events().wait("cancelled"));
}

TEST_F(Limits, WhoSendsNoMoreGetsTheAnswer) {
  start();
  RawClient client = connect();
  client.send(post("/gate", "Content-Length: 2\r\n", "ab"));
  ASSERT_TRUE(events().wait("entered"));
  client.shutdown_write();
  // The server has seen the end of what the client sends, and asks whether it is there.
  EXPECT_EQ(client.read_response().status, 100);
  events().add("open");
  EXPECT_EQ(client.read_response().body, "gate");
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(events().count("cancelled"), 0);
}

TEST_F(Limits, WhoSendsNoMoreOverHttp10IsNotAsked) {
  start();
  RawClient client = connect();
  client.send("GET /gate HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(events().wait("entered"));
  client.shutdown_write();
  events().add("open");
  EXPECT_EQ(client.read_response().body, "gate");
  EXPECT_EQ(events().count("cancelled"), 0);
}

TEST_F(Limits, NoticesAResetAtOnce) {
  options_.half_close_probe = std::chrono::hours(1);
  start();
  RawClient client = connect();
  client.send(post("/gate", "Content-Length: 2\r\n", "ab"));
  ASSERT_TRUE(events().wait("entered"));
  client.reset();
  EXPECT_TRUE(events().wait("cancelled"));
}

TEST_F(Limits, NoticesDisconnectBehindTheNextRequest) {
  start();
  RawClient client = connect();
  client.send(get("/gate") + get("/echo"));
  ASSERT_TRUE(events().wait("entered"));
  client.close();
  EXPECT_TRUE(events().wait("cancelled"));
}

TEST_F(Limits, NoticesDisconnectInAStreamWithoutNews) {
  start();
  RawClient client = connect();
  client.send(get("/quiet"));
  ASSERT_TRUE(events().wait("quiet"));
  client.close();
  EXPECT_TRUE(events().wait("stream released"));
}

TEST_F(Limits, WhoSendsNoMoreGetsTheWholeStream) {
  start();
  RawClient client = connect();
  client.send(get("/quiet"));
  client.shutdown_write();
  // Only a client that has ended its half gets the pieces that say nothing.
  std::string all;
  while (all.find("idle\n") == std::string::npos) all += client.read_some(100);
  EXPECT_EQ(events().count("stream released"), 0);
}

TEST_F(Limits, NoticesDisconnectInTheBody) {
  start();
  RawClient client = connect();
  client.send(post("/echo", "Content-Length: 10\r\n", "hello"));
  client.close();
  EXPECT_TRUE(events().wait("invalid_request"));
}

TEST_F(Limits, NoticesDisconnectInAStream) {
  start();
  RawClient client = connect();
  client.send(get("/endless"));
  EXPECT_TRUE(client.send(""));
  client.close();
  EXPECT_TRUE(events().wait("stream released"));
}

TEST_F(Limits, BodiesThatStallHoldUpNobodyElse) {
  options_.workers = 2;
  options_.queue = 8;
  start();
  std::vector<RawClient> stalled;
  for (int i = 0; i < 6; ++i) {
    stalled.push_back(connect());
    stalled.back().send(post("/echo", "Content-Length: 10\r\n", "some"));
  }
  RawClient client = connect();
  EXPECT_EQ(client.request(post("/echo", "Content-Length: 4\r\n", "body")).body, "body");
  for (RawClient& one : stalled) EXPECT_EQ(one.request(" bytes").body, "some bytes");
}

TEST_F(Limits, FiveHundredIdleAndFiftyStalledConnectionsHoldUpNobody) {
  options_.workers = 4;
  options_.queue = 64;
  options_.max_connections_per_address = 1000;
  start();
  std::vector<RawClient> idle;
  for (int i = 0; i < 500; ++i) idle.push_back(connect());
  std::vector<RawClient> stalled;
  for (int i = 0; i < 50; ++i) {
    stalled.push_back(connect());
    // Every other one stalls in its head.
    const std::string whole = post("/echo", "Content-Length: 10\r\n", "some");
    stalled.back().send(i % 2 == 0 ? whole : whole.substr(0, 20));
  }
  RawClient client = connect();
  EXPECT_EQ(client.request(post("/echo", "Content-Length: 4\r\n", "body")).body, "body");
  EXPECT_EQ(idle.front().request(post("/echo", "Content-Length: 5\r\n", "first")).body, "first");
  EXPECT_EQ(idle.back().request(post("/echo", "Content-Length: 4\r\n", "last")).body, "last");
  EXPECT_EQ(stalled.front().request(" bytes").body, "some bytes");
}

}  // namespace
}  // namespace tensormill::transport
