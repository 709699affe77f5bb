// The life of a connection: reuse, pipelining, HEAD and statuses without body, 100-continue, HTTP/1.0.
#include <gtest/gtest.h>

#include "tests/transport/fixture.h"

namespace tensormill::transport {
namespace {

class ConnectionLife : public TransportTest {};

TEST_F(ConnectionLife, ServesRequestAfterRequest) {
  start();
  RawClient client = connect();
  for (int i = 0; i < 3; ++i) {
    const std::string body = "body " + std::to_string(i);
    const RawResponse response = client.request(post("/echo", "Content-Length: 6\r\n", body));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, body);
    EXPECT_NE(response.header("connection"), "close");
  }
}

TEST_F(ConnectionLife, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client = connect();
  client.send(post("/echo", "Content-Length: 1\r\n", "1") +
              post("/echo", "Transfer-Encoding: chunked\r\n", "1\r\n2\r\n0\r\n\r\n") + get("/stream") +
              post("/echo", "Content-Length: 1\r\n", "3"));
  EXPECT_EQ(client.read_response().body, "1");
  EXPECT_EQ(client.read_response().body, "2");
  EXPECT_EQ(client.read_response().body, "piece\npiece\npiece\n");
  EXPECT_EQ(client.read_response().body, "3");
}

TEST_F(ConnectionLife, AnswersOnTheThreadThatReads) {
  options_.io_threads = 2;
  start();
  RawClient client = connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.request(post("/direct", "Content-Length: 2\r\n", "ab")).body, "ab");
  }
  EXPECT_EQ(client.request(get("/turn")).body, "turn");
  // Larger than what comes with a head, and in chunks: these go to a worker.
  const std::string large(300'000, 'x');
  EXPECT_EQ(client.request(post("/direct", "Content-Length: 300000\r\n", large)).body, large);
  EXPECT_EQ(client.request(post("/direct", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n")).body,
            "abc");
}

TEST_F(ConnectionLife, ManyPipelinedRequestsTakeTurns) {
  options_.io_threads = 2;
  start();
  RawClient client = connect();
  constexpr int kRequests = 400;
  std::string requests;
  for (int i = 0; i < kRequests; ++i) {
    const std::string body = std::to_string(1000 + i);
    requests += post("/direct", "Content-Length: 4\r\n", body);
  }
  client.send(requests);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(client.read_response().body, std::to_string(1000 + i));
  }
}

TEST_F(ConnectionLife, ClosesWhenAsked) {
  start();
  RawClient client = connect();
  const RawResponse response = client.request(get("/echo", "Connection: close\r\n"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ConnectionLife, ClosesAfterHttp10) {
  start();
  RawClient client = connect();
  EXPECT_EQ(client.request("GET /echo HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_TRUE(client.at_end());
}

TEST_F(ConnectionLife, KeepsHttp10AliveWhenAsked) {
  start();
  RawClient client = connect();
  const std::string bytes = "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_EQ(client.request(bytes).header("connection"), "keep-alive");
  EXPECT_EQ(client.request(bytes).status, 200);
}

TEST_F(ConnectionLife, EndsStreamsOfHttp10ByClosing) {
  start();
  RawClient client = connect();
  const RawResponse response = client.request("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(response.header("transfer-encoding"), "");
  EXPECT_EQ(response.body, "piece\npiece\npiece\n");
}

TEST_F(ConnectionLife, AnswersHeadWithoutBody) {
  start();
  RawClient client = connect();
  client.send("HEAD /content HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawResponse response = client.read_response(true);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-length"), std::to_string(TestHandler::kContentSize));
  EXPECT_EQ(client.request(get("/ignore")).body, "ignored");
}

TEST_F(ConnectionLife, StatusesWithoutBodyHaveNone) {
  start();
  RawClient client = connect();
  for (const char* status : {"204", "304"}) {
    const RawResponse response = client.request(get("/status/" + std::string(status)));
    EXPECT_EQ(std::to_string(response.status), status);
    EXPECT_EQ(response.header("content-length"), "");
    EXPECT_EQ(response.header("transfer-encoding"), "");
  }
  EXPECT_EQ(client.request(get("/ignore")).body, "ignored");
}

TEST_F(ConnectionLife, SendsContentAndStreams) {
  start();
  RawClient client = connect();
  const RawResponse content = client.request(get("/content"));
  ASSERT_EQ(content.body.size(), TestHandler::kContentSize);
  EXPECT_EQ(static_cast<uint8_t>(content.body[1'000'000]), 1'000'000 % 251);
  const RawResponse stream = client.request(get("/stream"));
  EXPECT_EQ(stream.header("transfer-encoding"), "chunked");
  EXPECT_EQ(stream.body, "piece\npiece\npiece\n");
  EXPECT_TRUE(stream.complete);
}

TEST_F(ConnectionLife, TellsToContinueOnlyWhenTheBodyIsWanted) {
  start();
  RawClient client = connect();
  client.send(post("/echo", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client.read_response().status, 100);
  EXPECT_EQ(client.request("hello").body, "hello");
}

TEST_F(ConnectionLife, RefusesWithoutContinue) {
  start();
  RawClient client = connect();
  const RawResponse response =
      client.request(post("/ignore", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ConnectionLife, PassesOverASmallBodyThatNobodyRead) {
  start();
  RawClient client = connect();
  EXPECT_EQ(client.request(post("/ignore", "Content-Length: 5000\r\n", std::string(5000, 'x'))).body,
            "ignored");
  EXPECT_EQ(client.request(get("/ignore")).body, "ignored");
}

TEST_F(ConnectionLife, AnswersAClientThatClosedItsSendingSide) {
  start();
  RawClient client = connect();
  client.send(post("/echo", "Content-Length: 5\r\n", "hello"));
  client.shutdown_write();
  EXPECT_EQ(client.read_response().body, "hello");
  EXPECT_TRUE(client.at_end());
}

TEST_F(ConnectionLife, SaysTheDate) {
  const std::string date = exchange(get("/echo")).header("date");
  EXPECT_EQ(date.size(), 29u) << date;
  EXPECT_TRUE(date.ends_with(" GMT")) << date;
}

}  // namespace
}  // namespace tensormill::transport
