// The audit log in the catalog; what the listener for operators tells, and whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/cli/ops_handler.h"
#include "server/metrics/registry.h"
#include "server/services/info_service.h"
#include "server/services/keys/audit_trail.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "tests/storage/support.h"

namespace tensormill::server {
namespace {

using testing::HasSubstr;
using testing::Not;

metrics::AnsweredRequest request(const std::string& method, const std::string& caller, int status) {
  return {"id-1", method, "/v1/jobs", "/v1/jobs", caller, "10.0.0.1:5", status, 0.5, "", "192.0.2.7"};
}

class Trail : public testing::Test {
protected:
  storage::MemoryEnv env_;
  storage::SqliteCatalog catalog_{env_, "/catalog.db"};
  metrics::Registry registry_;
};

TEST_F(Trail, ShowsWhatWasAnsweredBefore) {
  AuditTrail trail(catalog_, registry_, {int64_t{1} << 50, 1000});
  trail.answered(request("POST", "ci", 202));
  trail.answered(request("GET", "ci", 200));
  trail.answered(request("GET", "", 401));
  const auto page = trail.list({});
  ASSERT_EQ(page.items.size(), 2U) << "reading changes nothing";
  EXPECT_EQ(page.items[0].caller, "");
  EXPECT_EQ(page.items[1].caller, "ci");
  EXPECT_EQ(page.items[1].client, "192.0.2.7");
  EXPECT_EQ(page.items[1].peer, "10.0.0.1:5");
  EXPECT_GT(page.items[1].ts.ms, 0);
}

TEST_F(Trail, IsWrittenWhenItEnds) {
  { AuditTrail(catalog_, registry_, {int64_t{1} << 50, 1000}).answered(request("POST", "ci", 202)); }
  EXPECT_EQ(catalog_.list_audit({}, {}).items.size(), 1U);
}

TEST_F(Trail, IsBounded) {
  AuditTrail trail(catalog_, registry_, {int64_t{1} << 50, 3});
  for (int i = 0; i < 50; ++i) {
    trail.answered(request("POST", "ci", 202));
    if (i % 10 == 0) trail.list({});
  }
  EXPECT_EQ(trail.list({}).items.size(), 3U);
}

TEST(LoggedTargets, TellNoKeysAndHaveAnEnd) {
  const std::string digits(64, 'a');
  EXPECT_EQ(metrics::logged_target("/v1/jobs?limit=2"), "/v1/jobs?limit=2");
  EXPECT_EQ(metrics::logged_target("/v1/x?key=tm_" + digits + "&b=tm_" + digits),
            "/v1/x?key=tm_...&b=tm_...");
  EXPECT_EQ(metrics::logged_target("/v1/models/tm_abc"), "/v1/models/tm_abc") << "a name that begins so";
  EXPECT_LT(metrics::logged_target("/" + std::string(16'000, 'x')).size(), 3000U);
}

class Ops : public testing::Test {
protected:
  http::Response ask(const std::string& target, const std::string& host) {
    http::Request request;
    request.method = "GET";
    request.target = target;
    request.headers.add("Host", host);
    return handler_.handle(request);
  }

  metrics::Registry registry_;
  HealthServiceImpl health_;
  cli::OpsHandler handler_{registry_, health_, {{"mill.example"}, {}}};
};

TEST_F(Ops, GivesMetricsToWhoAsksByAnAddressOrAnAllowedName) {
  for (const char* host : {"10.1.2.3:9090", "[2001:db8::1]:9090", "localhost:9090", "mill.example"})
    EXPECT_EQ(ask("/metrics", host).status, 200) << host;
  for (const char* host : {"evil.example", "evil.example:9090", ""}) {
    EXPECT_EQ(ask("/metrics", host).status, 421) << host;
    EXPECT_EQ(ask("/healthz", host).status, 200) << "probes come with any name";
  }
}

}  // namespace
}  // namespace tensormill::server
