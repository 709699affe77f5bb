// TLS: versions, keep-alive, large bodies both ways, clients without TLS, files that are
// wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/transport/fixture.h"
#include "tests/transport/tls_client.h"

namespace tensormill::transport {
namespace {

class Tls : public TransportTest {
protected:
  void start_tls() {
    options_.tls_certificate = certificate_.certificate();
    options_.tls_key = certificate_.key();
    options_.io_threads = 2;
    start();
  }
  TlsClient client(int max_version = 0) {
    return TlsClient(transport_->port(), certificate_.certificate(), max_version);
  }
  std::string refusal_of(const std::string& certificate, const std::string& key) {
    options_.tls_certificate = certificate;
    options_.tls_key = key;
    try {
      start();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.message();
    }
    return "none";
  }

  TestCertificate certificate_;
};

TEST_F(Tls, ServesRequestAfterRequest) {
  start_tls();
  TlsClient client = this->client();
  for (const char* path : {"/echo", "/direct", "/echo"}) {
    client.send(post(path, "Content-Length: 4\r\n", "body"));
    EXPECT_NE(client.read_head().find(" 200 "), std::string::npos);
    EXPECT_EQ(client.read(4), "body");
  }
}

TEST_F(Tls, CarriesLargeBodies) {
  start_tls();
  TlsClient client = this->client();
  std::string body(300'000, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 + i / 253);
  client.send(post("/echo", "Content-Length: 300000\r\n"));
  client.send(body);
  EXPECT_NE(client.read_head().find(" 200 "), std::string::npos);
  EXPECT_TRUE(client.read(body.size()) == body);
}

TEST_F(Tls, TakesNoOldVersions) {
  start_tls();
  TlsClient good = client(TLS1_2_VERSION);
  good.send(get("/echo"));
  EXPECT_NE(good.read_head().find(" 200 "), std::string::npos);
  EXPECT_THROW(client(TLS1_1_VERSION), std::runtime_error);
}

TEST_F(Tls, DoesNotSpeakInTheClear) {
  start_tls();
  RawClient plain = connect();
  const RawResponse response = plain.request(get("/echo"));
  EXPECT_EQ(response.status, 0);
  EXPECT_EQ(events().count("entered"), 0);
  TlsClient other = client();
  other.send(get("/echo"));
  EXPECT_NE(other.read_head().find(" 200 "), std::string::npos);
}

TEST_F(Tls, EndsAConnectionInOrder) {
  start_tls();
  TlsClient client = this->client();
  client.send(get("/echo", "Connection: close\r\n"));
  EXPECT_NE(client.read_head().find(" 200 "), std::string::npos);
  EXPECT_EQ(client.read(1), "");
}

TEST_F(Tls, WhoSendsNoMoreGetsTheAnswer) {
  start_tls();
  for (const int version : {TLS1_2_VERSION, 0}) {
    for (const bool in_order : {true, false}) {
      const int before = events().count("entered");
      TlsClient client = this->client(version);
      client.send(post("/later", "Content-Length: 2\r\n", "ab"));
      ASSERT_TRUE(events().wait("entered", before + 1));
      client.end_sending(in_order);
      // The server asks whether it is there; the first gate stays open for those that come after.
      std::string head = client.read_head();
      if (before == 0) {
        EXPECT_NE(head.find(" 100 "), std::string::npos);
        events().add("open");
      }
      if (head.find(" 100 ") != std::string::npos) head = client.read_head();
      EXPECT_NE(head.find(" 200 "), std::string::npos);
      EXPECT_EQ(client.read(4), "gate");
      EXPECT_EQ(events().count("cancelled"), 0);
    }
  }
}

TEST_F(Tls, NoticesAClientThatGoes) {
  start_tls();
  TlsClient client = this->client();
  client.send(post("/gate", "Content-Length: 2\r\n", "ab"));
  ASSERT_TRUE(events().wait("entered"));
  client.close();
  EXPECT_TRUE(events().wait("cancelled"));
}

TEST_F(Tls, WhoSendsNoMoreGetsTheWholeStream) {
  start_tls();
  TlsClient client = this->client();
  client.send(get("/quiet"));
  client.end_sending();
  // Only a client that has ended its half gets the pieces that say nothing.
  std::string all = client.read_head();
  while (all.find("idle\n") == std::string::npos) all += client.read(1);
}

TEST_F(Tls, RefusesFilesThatAreWrong) {
  const TestCertificate other;
  EXPECT_NE(refusal_of("/nowhere.pem", certificate_.key()).find("/nowhere.pem"), std::string::npos);
  EXPECT_NE(refusal_of(certificate_.certificate(), "/nowhere.pem").find("/nowhere.pem"), std::string::npos);
  EXPECT_NE(refusal_of(certificate_.certificate(), "").find("without its key"), std::string::npos);
  EXPECT_NE(refusal_of(certificate_.certificate(), other.key()).find(other.key()), std::string::npos);
}

TEST_F(Tls, ReadsFilesAgainThatHaveChanged) {
  std::atomic<int> taken{0}, refused{0};
  options_.on_tls_change = [&](const Error* error) { ++(error == nullptr ? taken : refused); };
  start_tls();
  const TestCertificate first_files, next;
  const auto answers = [&](const TestCertificate& trusted) {
    try {
      TlsClient one(transport_->port(), trusted.certificate());
      one.send(get("/echo"));
      return one.read_head().find(" 200 ") != std::string::npos;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  first_files.replace_certificate(certificate_);
  first_files.replace_key(certificate_);
  TlsClient open = client();
  EXPECT_TRUE(answers(first_files));
  // Half of a change, and a file that is no certificate: what there was stays.
  certificate_.replace_certificate(next);
  EXPECT_TRUE(answers(first_files));
  EXPECT_FALSE(answers(next));
  EXPECT_EQ(refused, 1) << "told once a change";
  write_file(certificate_.certificate(), "rubbish");
  EXPECT_TRUE(answers(first_files));
  std::filesystem::remove(certificate_.certificate());
  EXPECT_TRUE(answers(first_files));
  EXPECT_EQ(refused, 3);
  certificate_.replace_certificate(next);
  certificate_.replace_key(next);
  EXPECT_TRUE(answers(next));
  EXPECT_FALSE(answers(first_files));
  EXPECT_EQ(taken, 1);
  open.send(get("/echo"));
  EXPECT_NE(open.read_head().find(" 200 "), std::string::npos) << "a connection keeps what it has";
}

}  // namespace
}  // namespace tensormill::transport
