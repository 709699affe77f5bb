// Message boundaries: what is refused because others could read it differently, and what must be understood.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/transport/fixture.h"

namespace tensormill::transport {
namespace {

class Framing : public TransportTest {
protected:
  void expect_refused(const std::string& bytes, int status) {
    RawClient client = connect();
    client.send(bytes);
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, status) << bytes;
    EXPECT_EQ(response.header("content-type"), "application/problem+json") << bytes;
    EXPECT_EQ(response.header("connection"), "close") << bytes;
    EXPECT_TRUE(client.at_end()) << bytes;
  }
};

const std::string kChunked = "Transfer-Encoding: chunked\r\n";

TEST_F(Framing, RefusesContentLengthBesideTransferEncoding) {
  start();
  expect_refused(post("/echo", "Content-Length: 5\r\n" + kChunked, "5\r\nhello\r\n0\r\n\r\n"), 400);
  expect_refused(post("/echo", kChunked + "Content-Length: 5\r\n", "5\r\nhello\r\n0\r\n\r\n"), 400);
}

TEST_F(Framing, RefusesRepeatedContentLength) {
  start();
  expect_refused(post("/echo", "Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400);
  expect_refused(post("/echo", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400);
  expect_refused(post("/echo", "Content-Length: 5, 5\r\n", "hello"), 400);
}

TEST_F(Framing, RefusesMalformedContentLength) {
  start();
  for (const char* length :
       {"-1", "+5", "0x5", "5 5", "", "five", "5.0", "18446744073709551616", "99999999999999999999999"}) {
    expect_refused(post("/echo", "Content-Length: " + std::string(length) + "\r\n", "hello"), 400);
  }
}

TEST_F(Framing, RefusesTransferCodingsThatAreNotThere) {
  start();
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked"}) {
    expect_refused(post("/echo", "Transfer-Encoding: " + std::string(coding) + "\r\n", "0\r\n\r\n"), 501);
  }
}

TEST_F(Framing, RefusesTransferEncodingInHttp10) {
  start();
  expect_refused("POST /echo HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 400);
}

TEST_F(Framing, RefusesFoldedFields) {
  start();
  expect_refused(get("/echo", "X-Field: a\r\n b\r\n"), 400);
  expect_refused(get("/echo", "X-Field: a\r\n\tb\r\n"), 400);
}

TEST_F(Framing, RefusesMalformedFields) {
  start();
  expect_refused(get("/echo", "X-Field : a\r\n"), 400);
  expect_refused(get("/echo", "no colon\r\n"), 400);
  expect_refused(get("/echo", ": a\r\n"), 400);
  expect_refused(get("/echo", "X-Field: a" + std::string(1, '\0') + "b\r\n"), 400);
  expect_refused(get("/echo", "X-Field: a\rb\r\n"), 400);
}

TEST_F(Framing, RefusesBareLineFeeds) {
  start();
  expect_refused("GET /echo HTTP/1.1\nHost: localhost\n\n", 400);
  expect_refused("GET /echo HTTP/1.1\r\nHost: localhost\nX-Field: a\r\n\r\n", 400);
}

TEST_F(Framing, RefusesMalformedRequestLines) {
  start();
  for (const char* line : {"GET", "GET /echo", "GET  /echo HTTP/1.1", "GET /echo HTTP/2.0",
                           "G(T /echo HTTP/1.1", "GET /echo HTTX/1.1", "/echo GET HTTP/1.1 "}) {
    expect_refused(std::string(line) + "\r\nHost: localhost\r\n\r\n", 400);
  }
}

TEST_F(Framing, RefusesMissingAndRepeatedHost) {
  start();
  expect_refused("GET /echo HTTP/1.1\r\n\r\n", 400);
  expect_refused("GET /echo HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
}

TEST_F(Framing, RefusesMalformedChunks) {
  start();
  for (const char* body : {"zz\r\nhello\r\n0\r\n\r\n", "5\r\nhelloXX0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n",
                           "fffffffffffffffff\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n",
                           "0x5\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n"}) {
    expect_refused(post("/echo", kChunked, body), 400);
  }
}

TEST_F(Framing, RefusesEndlessChunkExtensions) {
  start();
  expect_refused(post("/echo", kChunked, "5;x=" + std::string(200'000, 'x')), 400);
}

TEST_F(Framing, ReadsContentLength) {
  const RawResponse response = exchange(post("/echo", "Content-Length: 5\r\n", "hello"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
}

TEST_F(Framing, ReadsChunks) {
  const RawResponse response =
      exchange(post("/echo", kChunked, "5\r\nhello\r\n00A\r\n, chunked!\r\n0\r\n\r\n"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello, chunked!");
}

TEST_F(Framing, ReadsChunkExtensionsAndTrailers) {
  const RawResponse response =
      exchange(post("/echo", kChunked, "5;name=\"value\"\r\nhello\r\n0;last\r\nX-Trailer: a\r\n\r\n"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
}

TEST_F(Framing, ReadsBytesOneByOne) {
  start();
  RawClient client = connect();
  for (const char byte : post("/echo", kChunked, "5\r\nhello\r\n3;x\r\nabc\r\n0\r\n\r\n")) {
    ASSERT_TRUE(client.send(std::string(1, byte)));
  }
  EXPECT_EQ(client.read_response().body, "helloabc");
}

TEST_F(Framing, ReadsLargeBodies) {
  std::string body(3'000'000, 'x');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 23);
  const RawResponse response =
      exchange(post("/echo", "Content-Length: " + std::to_string(body.size()) + "\r\n", body));
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body == body);
}

TEST_F(Framing, PassesOverEmptyLinesBeforeARequest) {
  EXPECT_EQ(exchange("\r\n\r\n" + get("/echo")).status, 200);
}

TEST_F(Framing, KeepsFieldsAsTheyAre) {
  const RawResponse response = exchange(get("/echo", "x-fIELD:   two  words \t\r\n"));
  EXPECT_EQ(response.header("x-field"), "two  words");
}

TEST_F(Framing, SurvivesMutatedRequests) {
  start();
  const std::string good =
      post("/echo", kChunked + "X-Field: a\r\n", "5;x=y\r\nhello\r\n0\r\nX-Trailer: b\r\n\r\n") +
      post("/limit", "Content-Length: 3\r\nConnection: close\r\n", "abc");
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 1 + round % 4; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    RawClient client = connect();
    client.send(bytes);
    client.shutdown_write();
    for (RawResponse response = client.read_response(); response.status != 0;
         response = client.read_response()) {
      EXPECT_LT(response.status, 500 + 2) << round;
    }
  }
  EXPECT_EQ(exchange(post("/echo", "Content-Length: 2\r\n", "ok")).body, "ok");
}

}  // namespace
}  // namespace tensormill::transport
