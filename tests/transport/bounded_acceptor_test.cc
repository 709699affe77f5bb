// Connections that somebody else serves, within limits that HTTP shares.
#include "server/transport/bounded_acceptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "server/transport/connection_limits.h"
#include "tests/transport/fixture.h"

namespace tensormill::transport {
namespace {

/// Greets whoever is served, and has the descriptors.
class Sockets {
public:
  void take(int socket) {
    const std::lock_guard lock(mutex_);
    last_ = FileDescriptor(socket);
    write_all(socket, "x", "a socket");
  }
  /// The descriptor that came last.
  FileDescriptor last() {
    const std::lock_guard lock(mutex_);
    return std::move(last_);
  }

private:
  std::mutex mutex_;
  FileDescriptor last_;
};

class BoundedAcceptorTest : public TransportTest {
protected:
  void accept(std::shared_ptr<ConnectionLimits> limits) {
    BoundedAcceptorOptions options;
    options.option = "x.listen";
    options.on_refused = [this](std::string_view reason) { events().add("closed " + std::string(reason)); };
    acceptor_ = std::make_unique<BoundedAcceptor>(std::move(options), std::move(limits),
                                                  [this](int socket) { sockets_.take(socket); });
  }
  RawClient connect_from(const std::string& address) { return RawClient(acceptor_->port(), address); }
  static bool is_served(RawClient& client) { return client.read_some(1) == "x"; }
  /// Whether a client of that address is served at last: what was closed shows when it is looked for.
  bool is_served_at_last(const std::string& address) {
    for (int attempt = 0; attempt < 100'000; ++attempt) {
      RawClient client = connect_from(address);
      if (is_served(client)) return true;
    }
    return false;
  }

  Sockets sockets_;
  std::unique_ptr<BoundedAcceptor> acceptor_;
};

TEST_F(BoundedAcceptorTest, CountsAConnectionUntilItsDescriptorIsClosed) {
  accept(std::make_shared<ConnectionLimits>(100, 1, std::vector<std::string>{}));
  RawClient first = connect_from("127.0.0.1");
  ASSERT_TRUE(is_served(first));
  FileDescriptor served = sockets_.last();
  RawClient refused = connect_from("127.0.0.1");
  EXPECT_TRUE(refused.at_end());
  EXPECT_TRUE(events().wait("closed address"));
  RawClient other = connect_from("127.0.0.2");
  EXPECT_TRUE(is_served(other));
  // That the client has gone does not close it.
  first.close();
  RawClient still = connect_from("127.0.0.1");
  EXPECT_TRUE(still.at_end());
  served = FileDescriptor();
  EXPECT_TRUE(is_served_at_last("127.0.0.1"));
}

TEST_F(BoundedAcceptorTest, ADescriptorsNumberIsNotTheConnection) {
  accept(std::make_shared<ConnectionLimits>(100, 1, std::vector<std::string>{}));
  RawClient first = connect_from("127.0.0.1");
  ASSERT_TRUE(is_served(first));
  const FileDescriptor served = sockets_.last();
  // Something else has its number before anybody looks.
  const FileDescriptor else_where(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup3(else_where.get(), served.get(), O_CLOEXEC), served.get());
  EXPECT_TRUE(is_served_at_last("127.0.0.1"));
}

TEST_F(BoundedAcceptorTest, SharesTheLimitOfAllWithHttp) {
  options_.max_connections = 2;
  start();
  accept(transport_->limits());
  RawClient here = connect_from("127.0.0.2");
  ASSERT_TRUE(is_served(here));
  RawClient http = connect();
  EXPECT_EQ(http.request(get("/ignore")).status, 200);
  EXPECT_EQ(exchange(get("/ignore")).status, 503);
  RawClient refused = connect_from("127.0.0.3");
  EXPECT_TRUE(refused.at_end());
  EXPECT_TRUE(events().wait("closed connections"));
  // Its end shows without another connection there.
  sockets_.last();
  int status = 0;
  for (int attempt = 0; attempt < 100'000 && status != 200; ++attempt)
    status = exchange(get("/ignore")).status;
  EXPECT_EQ(status, 200);
  http.close();
  EXPECT_TRUE(is_served_at_last("127.0.0.3"));
}

TEST_F(BoundedAcceptorTest, StopsAndNamesThePortThatIsTaken) {
  const auto limits = std::make_shared<ConnectionLimits>(100, 100, std::vector<std::string>{});
  accept(limits);
  BoundedAcceptorOptions options;
  options.port = acceptor_->port();
  options.option = "x.listen";
  try {
    const BoundedAcceptor second(options, limits, [](int) {});
    ADD_FAILURE() << "the port is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.message(), "port " + std::to_string(options.port) +
                                   " of 127.0.0.1 is taken; choose another with x.listen");
  }
  acceptor_->stop();
  acceptor_->stop();
  const BoundedAcceptor again(options, limits, [](int) {});
  EXPECT_EQ(again.port(), options.port);
}

}  // namespace
}  // namespace tensormill::transport
