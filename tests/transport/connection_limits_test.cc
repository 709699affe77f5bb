#include "server/transport/connection_limits.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace tensormill::transport {
namespace {

using boost::asio::ip::make_address;

TEST(ConnectionLimits, CountsEachAddressForItself) {
  ConnectionLimits limits(100, 1, {});
  auto first = limits.enter(make_address("192.0.2.1")).place;
  EXPECT_TRUE(first);
  EXPECT_FALSE(limits.enter(make_address("192.0.2.1")).place);
  EXPECT_TRUE(limits.enter(make_address("192.0.2.2")).place);
  // A listener of both kinds sees IPv4 clients so.
  EXPECT_FALSE(limits.enter(make_address("::ffff:192.0.2.1")).place);
  first.reset();
  EXPECT_TRUE(limits.enter(make_address("192.0.2.1")).place);
}

TEST(ConnectionLimits, CountsAllAddressesTogether) {
  ConnectionLimits limits(2, 1, {"192.0.2.9"});
  auto first = limits.enter(make_address("192.0.2.1"));
  EXPECT_TRUE(first.place);
  // Whoever has no limit alone has the one of all.
  const auto second = limits.enter(make_address("192.0.2.9"));
  EXPECT_TRUE(second.place);
  for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.9"}) {
    const auto refused = limits.enter(make_address(address));
    EXPECT_FALSE(refused.place) << address;
    EXPECT_EQ(refused.reason(), "connections") << address;
  }
  first.place.reset();
  const auto of_an_address = limits.enter(make_address("192.0.2.2"));
  EXPECT_TRUE(of_an_address.place);
}

TEST(ConnectionLimits, TellsWhichLimitItIs) {
  ConnectionLimits limits(2, 1, {});
  const auto first = limits.enter(make_address("192.0.2.1"));
  const auto refused = limits.enter(make_address("192.0.2.1"));
  EXPECT_FALSE(refused.place);
  EXPECT_EQ(refused.reason(), "address");
}

TEST(ConnectionLimits, TakesANetworkOf64BitsForOneClient) {
  ConnectionLimits limits(100, 1, {});
  const auto first = limits.enter(make_address("2001:db8:0:1::1")).place;
  EXPECT_TRUE(first);
  EXPECT_FALSE(limits.enter(make_address("2001:db8:0:1:ffff::2")).place);
  EXPECT_TRUE(limits.enter(make_address("2001:db8:0:2::1")).place);
}

TEST(ConnectionLimits, LeavesAddressesAndNetworksAlone) {
  ConnectionLimits limits(100, 0, {"192.0.2.7", "10.16.0.0/12", "2001:db8::/33", "::1"});
  for (const char* free : {"192.0.2.7", "10.16.0.0", "10.31.255.255", "2001:db8:7fff::1", "::1"})
    EXPECT_TRUE(limits.enter(make_address(free)).place) << free;
  for (const char* limited :
       {"192.0.2.6", "10.15.255.255", "10.32.0.0", "2001:db8:8000::1", "::2", "127.0.0.1"})
    EXPECT_FALSE(limits.enter(make_address(limited)).place) << limited;
}

TEST(ConnectionLimits, RefusesWhatIsNoAddress) {
  for (const char* text :
       {"", "host", "10.0.0.1/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "::1/129", "/8"}) {
    try {
      const ConnectionLimits limits(100, 1, {text});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
    }
  }
}

}  // namespace
}  // namespace tensormill::transport
