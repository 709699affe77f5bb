// The client of cpprestsdk, a library that is not ours, against the listener: what the raw sockets of the
// other tests write by hand, a client writes its own way. cpprestsdk is not built with the thread sanitizer,
// which then knows nothing of its locks.
#ifndef __SANITIZE_THREAD__
#define _TURN_OFF_PLATFORM_STRING
#include <cpprest/containerstream.h>
#include <cpprest/http_client.h>
#include <gtest/gtest.h>

#include "tests/transport/fixture.h"
#include "tests/transport/tls_client.h"

namespace tensormill::transport {
namespace {

namespace rest = web::http;

class RestClient : public TransportTest {
protected:
  rest::client::http_client client(const std::string& scheme = "http") {
    if (!transport_) start();
    rest::client::http_client_config config;
    config.set_timeout(std::chrono::duration_cast<std::chrono::seconds>(kGuard));
    config.set_validate_certificates(scheme == "http");
    return rest::client::http_client(scheme + "://localhost:" + std::to_string(transport_->port()), config);
  }

  static std::string body_of(const rest::http_response& response) {
    const std::vector<unsigned char> bytes = response.extract_vector().get();
    return {bytes.begin(), bytes.end()};
  }
};

TEST_F(RestClient, SendsAndReadsBodies) {
  rest::client::http_client client = this->client();
  for (int i = 0; i < 20; ++i) {
    const std::string body(static_cast<size_t>(i) * 7'001, static_cast<char>('a' + i));
    const rest::http_response response =
        client.request(rest::methods::POST, "/echo", body, "application/octet-stream").get();
    EXPECT_EQ(response.status_code(), 200);
    EXPECT_EQ(response.headers().find("X-Method")->second, "POST");
    EXPECT_TRUE(body_of(response) == body) << i;
  }
}

TEST_F(RestClient, SendsChunks) {
  // A stream of unknown length goes out in chunks.
  const std::string body(1'000'003, 'c');
  const auto stream = concurrency::streams::bytestream::open_istream(body);
  const rest::http_response response = client().request(rest::methods::POST, "/echo", stream).get();
  EXPECT_EQ(response.status_code(), 200);
  EXPECT_TRUE(body_of(response) == body);
}

TEST_F(RestClient, ReadsStreamsAndLargeContent) {
  rest::client::http_client client = this->client();
  EXPECT_EQ(body_of(client.request(rest::methods::GET, "/stream").get()), "piece\npiece\npiece\n");
  const std::string content = body_of(client.request(rest::methods::GET, "/content").get());
  ASSERT_EQ(content.size(), TestHandler::kContentSize);
  bool same = true;
  for (size_t i = 0; i < content.size(); i += 4'099)
    same = same && static_cast<unsigned char>(content[i]) == i % 251;
  EXPECT_TRUE(same);
}

TEST_F(RestClient, GetsHeadsAndStatusesWithoutBody) {
  rest::client::http_client client = this->client();
  const rest::http_response head = client.request(rest::methods::HEAD, "/echo").get();
  EXPECT_EQ(head.status_code(), 200);
  EXPECT_EQ(body_of(head), "");
  EXPECT_EQ(client.request(rest::methods::GET, "/status/204").get().status_code(), 204);
  EXPECT_EQ(client.request(rest::methods::POST, "/limit", std::string(5'000, 'x')).get().status_code(), 413);
}

TEST_F(RestClient, SendsManyRequestsAtOnce) {
  options_.workers = 2;
  options_.queue = 64;
  rest::client::http_client client = this->client();
  std::vector<pplx::task<rest::http_response>> answers;
  for (int i = 0; i < 40; ++i)
    answers.push_back(client.request(rest::methods::POST, "/echo", std::to_string(i)));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(body_of(answers[static_cast<size_t>(i)].get()), std::to_string(i));
}

TEST_F(RestClient, SpeaksTls) {
  const TestCertificate certificate;
  options_.tls_certificate = certificate.certificate();
  options_.tls_key = certificate.key();
  rest::client::http_client client = this->client("https");
  EXPECT_EQ(body_of(client.request(rest::methods::POST, "/echo", "secret").get()), "secret");
}

}  // namespace
}  // namespace tensormill::transport
#endif
