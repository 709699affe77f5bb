// Starting and stopping: busy ports, draining, cancelling; listen addresses; the executor.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/transport/executor.h"
#include "tests/transport/fixture.h"

namespace tensormill::transport {
namespace {

using std::chrono::milliseconds;

class Lifecycle : public TransportTest {};

TEST_F(Lifecycle, NamesABusyPort) {
  start();
  TransportOptions options;
  options.port = transport_->port();
  const auto second = make_transport(options);
  try {
    second->start(handler_);
    FAIL() << "two servers on one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(error.message().find(std::to_string(options.port)), std::string::npos) << error.message();
  }
}

TEST_F(Lifecycle, LetsRequestsInWorkFinish) {
  start();
  RawClient client = connect();
  client.send(get("/gate"));
  ASSERT_TRUE(events().wait("entered"));
  const auto stopped =
      std::async(std::launch::async, [this] { transport_->stop(milliseconds(20'000), kGuard); });
  events().add("open");
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "gate");
  client.close();
  stopped.wait();
  EXPECT_EQ(transport_->connections(), 0);
}

TEST_F(Lifecycle, CancelsWhatDoesNotFinish) {
  start();
  RawClient client = connect();
  client.send(get("/gate"));
  ASSERT_TRUE(events().wait("entered"));
  transport_->stop(milliseconds(0), kGuard);
  EXPECT_EQ(events().count("cancelled"), 1);
}

TEST_F(Lifecycle, AClientThatSendsNoMoreHasGoneWhereThatIsAskedFor) {
  options_.half_close_probe = std::chrono::hours(1);
  start();
  RawClient client = connect();
  client.send(post("/tended", "Content-Length: 2\r\n", "{}"));
  ASSERT_TRUE(events().wait("entered"));
  client.shutdown_write();
  EXPECT_TRUE(events().wait("cancelled"));
}

TEST_F(Lifecycle, TellsThatAnAnswerReachedNobody) {
  options_.half_close_probe = std::chrono::hours(1);
  start();
  {
    RawClient half = connect();
    half.send(post("/offer", "Content-Length: 2\r\n", "{}"));
    RawClient gone = connect();
    gone.send(get("/offer"));
    ASSERT_TRUE(events().wait("entered", 2));
    half.shutdown_write();
    gone.close();
    events().add("open");
    EXPECT_TRUE(events().wait("undelivered", 2));
    EXPECT_TRUE(half.at_end()) << "it is closed without an answer";
  }
  RawClient client = connect();
  EXPECT_EQ(client.request(get("/offer")).body, "offer");
  EXPECT_EQ(client.request(get("/echo")).status, 200);
  EXPECT_EQ(events().count("undelivered"), 2) << "an answer that was taken is no loss";
}

TEST_F(Lifecycle, CancelsWhatIsAnsweredLaterAndWaitsForIt) {
  start();
  RawClient client = connect();
  client.send(get("/later"));
  ASSERT_TRUE(events().wait("entered"));
  transport_->stop(milliseconds(0), kGuard);
  EXPECT_EQ(events().count("cancelled"), 1);
}

TEST_F(Lifecycle, SaysThatAHandlerDoesNotEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        start();
        RawClient client = connect();
        client.send(get("/stuck"));
        const bool entered = events().wait("entered");
        const bool ended = transport_->stop(milliseconds(10), milliseconds(50));
        // What runs still would keep the destructor for ever.
        ::_exit(entered && !ended ? 7 : 8);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(Lifecycle, EndsStreamsInOrderWhenItStops) {
  start();
  RawClient client = connect();
  client.send(get("/quiet"));
  ASSERT_TRUE(events().wait("quiet"));
  EXPECT_TRUE(transport_->stop(std::chrono::hours(1), kGuard));
  EXPECT_TRUE(client.read_response().complete);
}

TEST_F(Lifecycle, ClosesIdleConnectionsWhenItStops) {
  start();
  RawClient client = connect();
  EXPECT_EQ(client.request(get("/ignore")).status, 200);
  transport_->stop(milliseconds(20'000), kGuard);
  EXPECT_TRUE(client.at_end());
  transport_->stop(milliseconds(20'000), kGuard);
}

TEST(ListenAddress, Parses) {
  TransportOptions options;
  parse_listen_address("127.0.0.1:8080", options);
  EXPECT_EQ(options.address, "127.0.0.1");
  EXPECT_EQ(options.port, 8080);
  parse_listen_address("[::1]:0", options);
  EXPECT_EQ(options.address, "::1");
  EXPECT_EQ(options.port, 0);
  EXPECT_TRUE(is_loopback_address("::1"));
  EXPECT_TRUE(is_loopback_address("127.9.9.9"));
  EXPECT_TRUE(is_loopback_address("localhost"));
  EXPECT_FALSE(is_loopback_address("0.0.0.0"));
  EXPECT_FALSE(is_loopback_address("::"));
}

TEST(ListenAddress, RefusesOthers) {
  for (const char* text : {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x",
                           "::1:80", "example.com:80", "[127.0.0.1]:80"}) {
    TransportOptions options;
    EXPECT_THROW(parse_listen_address(text, options), Error) << text;
  }
}

/// Whether this machine's loopback has an IPv6 address.
bool has_ipv6_loopback() {
  const FileDescriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return socket.get() >= 0 &&
         ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

TEST_F(Lifecycle, ServesOverIpv6WhereThereIsIt) {
  options_.address = "::1";
  if (has_ipv6_loopback()) {
    start();
    RawClient client(AF_INET6, transport_->port());
    EXPECT_EQ(client.request(get("/echo")).status, 200);
    return;
  }
  try {
    start();
    FAIL() << "listens on an address that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(error.message().find("::1"), std::string::npos) << error.message();
  }
}

TEST(ExecutorTest, RunsWhatItTookAndRefusesTheRest) {
  Executor executor(1, 1, 256);
  std::promise<void> entered;
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> ran{0};
  ASSERT_TRUE(executor.submit([&] {
    entered.set_value();
    gate.wait();
    ++ran;
  }));
  entered.get_future().wait();
  EXPECT_TRUE(executor.submit([&] { ++ran; }));
  EXPECT_FALSE(executor.submit([&] { ran = 100; }));
  open.set_value();
  executor.stop();
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(executor.submit([] {}));
}

TEST(ExecutorTest, TellsWhatDoesNotEnd) {
  Executor executor(1, 0, 0);
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  ASSERT_TRUE(executor.submit([&] { gate.wait(); }));
  EXPECT_FALSE(executor.stop(std::chrono::steady_clock::now()));
  open.set_value();
  EXPECT_TRUE(executor.stop(std::chrono::steady_clock::now() + std::chrono::hours(1)));
}

TEST(ExecutorTest, WhoIsBlockedLeavesAThreadToAnother) {
  Executor executor(1, 1, 256);
  std::promise<void> entered;
  std::promise<void> second;
  ASSERT_TRUE(executor.submit([&] {
    const Executor::Blocked blocked(executor);
    entered.set_value();
    EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }));
  entered.get_future().wait();
  // One runs and one waits, as if the first were not there.
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::atomic<bool> third{false};
  ASSERT_TRUE(executor.submit([&] {
    second.set_value();
    gate.wait();
  }));
  while (!executor.submit([&] { third = true; })) std::this_thread::yield();
  EXPECT_FALSE(third);
  open.set_value();
  executor.stop();
  EXPECT_TRUE(third);
}

}  // namespace
}  // namespace tensormill::transport
