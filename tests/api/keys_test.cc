// API keys and the audit log over HTTP, what keys for some deployments reach, who is behind a proxy.
#include "api/endpoints/context.h"
#include "api/http/client_address.h"
#include "api/http/scopes.h"
#include "api/http/security.h"
#include "api/http/time.h"
#include "tests/api/fakes.h"
#include "tests/expect_error.h"

namespace tensormill::testing_api {
namespace {

class KeysTest : public ApiTest {
protected:
  KeysTest() {
    services_.keys = &keys_;
    rebuild();
  }
  static std::vector<std::string> as(const std::string& token) { return {"Authorization: Bearer " + token}; }
  static std::vector<std::string> json_as(const std::string& token) {
    return {"Authorization: Bearer " + token, "Content-Type: application/json"};
  }
};

TEST_F(KeysTest, AreMadeShownOnceListedAndRevoked) {
  const Answer made =
      send("POST", "/v1/keys", json_as("boss"),
           R"({"name":"ci","scopes":["infer:digits","read"],"expires_at":"2030-01-31T12:00:00Z"})");
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.json().at("key"), "tm_secret");
  EXPECT_EQ(made.header("Location"), "/v1/keys/ci");
  EXPECT_EQ(made.header("Cache-Control"), "no-store");
  const Answer shown = get("/v1/keys/ci", as("boss"));
  EXPECT_FALSE(shown.json().contains("key"));
  EXPECT_EQ(shown.json().at("expires_at"), "2030-01-31T12:00:00.000Z");
  EXPECT_EQ(get("/v1/keys", as("boss")).json().at("items").size(), 1U);
  expect_problem(send("POST", "/v1/keys", json_as("boss"), R"({"name":"ci","scopes":["read"]})"), 409,
                 "name_taken");
  EXPECT_EQ(send("DELETE", "/v1/keys/ci", as("boss")).status, 204);
  expect_problem(send("DELETE", "/v1/keys/ci", as("boss")), 404, "not_found");
}

TEST_F(KeysTest, AnAnswerWithAKeyIsNotKeptForRepeats) {
  const std::vector<std::string> fields = {"Authorization: Bearer boss", "Content-Type: application/json",
                                           "Idempotency-Key: once"};
  EXPECT_EQ(send("POST", "/v1/keys", fields, R"({"name":"ci","scopes":["read"]})").status, 201);
  EXPECT_TRUE(answers_.kept.empty());
}

TEST_F(KeysTest, WrongOnesAreRefusedWithEveryReason) {
  const Answer wrong =
      send("POST", "/v1/keys", json_as("boss"),
           R"({"name":"a b","scopes":["infer:","write:x","root"],"expires_at":"soon","more":1})");
  expect_problem(wrong, 422, "invalid_argument");
  EXPECT_EQ(wrong.json().at("errors").size(), 6U) << wrong.body;
  for (const char* body :
       {R"({"name":"local","scopes":["read"]})", R"({"name":"x","scopes":[]})", R"({"name":"x"})"})
    expect_problem(send("POST", "/v1/keys", json_as("boss"), body), 422, "invalid_argument");
}

TEST_F(KeysTest, AreTheAffairOfAdmins) {
  for (const char* token : {"reader", "clerk"}) {
    expect_problem(get("/v1/keys", as(token)), 403, "forbidden");
    expect_problem(get("/v1/audit", as(token)), 403, "forbidden");
    expect_problem(send("POST", "/v1/keys", json_as(token), "{}"), 403, "forbidden");
  }
  services_.keys = nullptr;
  rebuild();
  expect_problem(get("/v1/keys"), 409, "conflict");
}

TEST_F(KeysTest, AnExpiredOneIsToldSo) {
  const Answer late = get("/v1/info", as("late"));
  expect_problem(late, 401, "unauthorized");
  EXPECT_NE(late.body.find("expired"), std::string::npos);
}

/// Every route that needs a key: a key for one deployment reaches that one, sees it alone in lists, and
/// nothing else.
TEST_F(KeysTest, AKeyForOneDeploymentReachesNothingElse) {
  deployments_.listed = {"alpha", "digits", "team-a", "zebra"};
  for (const endpoints::RouteRow& row : endpoints::all_routes()) {
    if (row.scope == endpoints::Scope::kPublic) continue;
    const bool is_of_one = !endpoints::deployment_parameter(row).empty();
    for (const std::string name : {"digits", "other", "digits2", "Digits"}) {
      std::string target(row.path);
      for (size_t open = 0; (open = target.find('{')) != std::string::npos;)
        target.replace(open, target.find('}') - open + 1,
                       target.compare(open, 9, "{version}") == 0 ? "1" : name);
      const Answer answer = send(std::string(row.method), target, as("clerk"));
      const bool is_granted = row.scope == endpoints::Scope::kInfer || row.scope == endpoints::Scope::kRead;
      const bool may = is_granted && ((is_of_one && name == "digits") || endpoints::lists_deployments(row));
      EXPECT_EQ(answer.status == 403, !may) << row.method << " " << target << ": " << answer.body;
    }
  }
}

TEST_F(KeysTest, ListsShowWhatAKeyMaySee) {
  deployments_.listed = {"alpha", "digits", "hidden", "team-a", "team-b", "zebra"};
  const auto names = [](const Json& items) {
    std::vector<std::string> found;
    for (const Json& item : items) found.push_back(item.at("name"));
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(get("/v1/deployments", as("clerk")).json().at("items")),
            (Names{"digits", "team-a", "team-b"}));
  const Answer first = get("/v1/deployments?limit=1", as("clerk"));
  EXPECT_EQ(names(first.json().at("items")), Names{"digits"});
  EXPECT_EQ(first.json().at("next_cursor"), "digits") << "a cursor must not tell a hidden name";
  const Answer second = get("/v1/deployments?limit=2&cursor=digits", as("clerk"));
  EXPECT_EQ(names(second.json().at("items")), (Names{"team-a", "team-b"}));
  EXPECT_TRUE(second.json().at("next_cursor").is_null());
  const Answer index = send("POST", "/v2/repository/index", as("clerk"));
  EXPECT_EQ(index.body.find("hidden"), std::string::npos) << index.body;
  EXPECT_EQ(get("/v2/models/stats", as("clerk")).status, 200);
  EXPECT_EQ(names(get("/v1/deployments", as("reader")).json().at("items")).size(), 6U);
}

TEST_F(KeysTest, TheAuditLogIsFiltered) {
  const Answer page =
      get("/v1/audit?caller=boss&method=POST&status=202&since=2026-01-01T00:00:00Z&limit=1", as("boss"));
  EXPECT_EQ(page.json().at("items")[0].at("client"), "192.0.2.7");
  EXPECT_NE(page.header("Link").find("cursor=5"), std::string::npos);
  EXPECT_EQ(audit_.query.caller, "boss");
  EXPECT_EQ(audit_.query.method, "POST");
  EXPECT_EQ(audit_.query.status, 202);
  EXPECT_EQ(audit_.query.since->ms, *http::parse_timestamp("2026-01-01T00:00:00Z"));
  get("/v1/audit?caller=", as("boss"));
  EXPECT_EQ(audit_.query.caller, "") << "requests without a valid key";
  for (const char* wrong : {"?status=9", "?since=yesterday", "?who=x"})
    expect_problem(get(std::string("/v1/audit") + wrong, as("boss")), 400, "invalid_request");
}

TEST_F(KeysTest, RequestsTellWhoAsksAndFromWhere) {
  std::vector<std::string> seen;
  options_.trusted_proxies = http::AddressSet({"127.0.0.1"});
  options_.on_response = [&](const http::Request& request, const http::Response&, const std::string&) {
    seen.push_back(request.caller + " " + request.client + (request.is_admin ? " admin" : ""));
  };
  rebuild();
  const auto from = [&](const std::string& peer, const std::string& token) {
    http::Request request;
    request.method = "GET";
    request.target = "/v1/info";
    request.peer = peer;
    request.headers.add("Host", "localhost");
    request.headers.add("X-Forwarded-For", "192.0.2.1, 198.51.100.7");
    request.headers.add("Authorization", "Bearer " + token);
    request.body = std::make_shared<http::BytesBody>("");
    api_->handle(request);
  };
  from("127.0.0.1:9", "reader");
  from("203.0.113.5:9", "boss");
  from("127.0.0.1:9", "nobody");
  EXPECT_EQ(seen,
            (std::vector<std::string>{"reader 198.51.100.7", "boss 203.0.113.5 admin", " 198.51.100.7"}));
}

TEST(Scopes, HaveAGrammar) {
  for (const char* good : {"infer", "read", "write", "admin", "infer:digits", "read:a.b_c-1", "infer:team-*"})
    EXPECT_EQ(http::scope_problem(good), "") << good;
  for (const char* bad : {"", "Infer", "infer:", "infer:*", "infer:-a", "infer:a*b", "infer:a/b", "write:x",
                          "admin:x", "infer:a:b", "infer :a", "read,write"})
    EXPECT_NE(http::scope_problem(bad), "") << bad;
  EXPECT_TRUE(http::grants({"admin"}, "infer"));
  EXPECT_FALSE(http::grants({"infer:a"}, "infer"));
  EXPECT_TRUE(http::matches_name({"b", "team-*"}, "team-x"));
  EXPECT_FALSE(http::matches_name({"team"}, "team-x"));
}

TEST(ClientAddress, IsTheFirstThatNoTrustedProxyHas) {
  const http::AddressSet trusted({"10.0.0.0/8", "2001:db8::/33", "192.0.2.7"});
  const auto by = [&](http::ForwardedField field, const std::string& value,
                      const std::string& peer = "10.1.1.1:80") {
    http::Headers headers;
    headers.add(field == http::ForwardedField::kForwarded ? "Forwarded" : "X-Forwarded-For", value);
    return http::client_address(headers, peer, trusted, field);
  };
  const auto list = [&](const std::string& value) { return by(http::ForwardedField::kXForwardedFor, value); };
  EXPECT_EQ(list("198.51.100.1"), "198.51.100.1");
  EXPECT_EQ(list("203.0.113.9, 198.51.100.1, 10.2.2.2"), "198.51.100.1")
      << "what is before it, the client wrote itself";
  EXPECT_EQ(list("198.51.100.1, 192.0.2.7"), "198.51.100.1");
  EXPECT_EQ(list("10.9.9.9, 10.2.2.2"), "10.9.9.9") << "all are trusted: the first one asks";
  EXPECT_EQ(list("198.51.100.1, rubbish, 10.2.2.2"), "10.2.2.2");
  EXPECT_EQ(list("unknown"), "10.1.1.1");
  EXPECT_EQ(list("[2001:db8:8000::1]:4711"), "2001:db8:8000::1");
  EXPECT_EQ(list("2001:db8::5, 198.51.100.1:80"), "198.51.100.1");
  EXPECT_EQ(list("::ffff:10.3.3.3"), "10.3.3.3");
  EXPECT_EQ(by(http::ForwardedField::kXForwardedFor, "198.51.100.1", "203.0.113.4:1"), "203.0.113.4")
      << "nobody's word counts who is not trusted";
  const auto forwarded = [&](const std::string& value) {
    return by(http::ForwardedField::kForwarded, value);
  };
  EXPECT_EQ(forwarded("for=198.51.100.1;proto=https, For=\"[2001:db8::7]:8080\";by=10.0.0.1"),
            "198.51.100.1");
  EXPECT_EQ(forwarded("for=\"198.51.100.1:99, for=203.0.113.1\""), "10.1.1.1")
      << "a quoted comma splits nothing";
  EXPECT_EQ(forwarded("proto=https"), "10.1.1.1");
  EXPECT_EQ(forwarded("for=_hidden"), "10.1.1.1");
  http::Headers both;
  both.add("Forwarded", "for=203.0.113.9");
  both.add("X-Forwarded-For", "198.51.100.2");
  both.add("X-Forwarded-For", "198.51.100.1");
  EXPECT_EQ(http::client_address(both, "[2001:db8::1]:5", trusted, http::ForwardedField::kXForwardedFor),
            "198.51.100.1");
  for (const char* wrong : {"10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/", "10.0.0.0/-1", "::/129", ""})
    expect_error(ErrorCode::kUsage, "", [&] { (void)http::AddressSet({wrong}); });
  expect_error(ErrorCode::kUsage, "", [&] { (void)http::forwarded_field("via"); });
}

http::Request request_to(const std::string& host) {
  http::Request request;
  request.headers.add("Host", host);
  return request;
}

TEST(Hosts, OfADomainAndOfOperators) {
  const http::AccessRules rules{{"mill.example", "*.svc.cluster.local"}, {}};
  for (const char* good : {"tensormill.lab.svc.cluster.local:8080", "A.SVC.Cluster.Local", "mill.example"})
    EXPECT_NO_THROW(http::check_host(request_to(good), rules)) << good;
  for (const char* bad :
       {"svc.cluster.local", ".svc.cluster.local.evil", "xsvc.cluster.local", "evil", "10.0.0.1", ""})
    expect_error(ErrorCode::kMisdirected, "", [&] { http::check_host(request_to(bad), rules); });
  for (const char* good : {"10.0.0.1:9090", "[2001:db8::1]:9090", "[::1]", "localhost", "mill.example"})
    EXPECT_NO_THROW(http::check_operator_host(request_to(good), rules)) << good;
  for (const char* bad : {"evil.example", "", "2001:db8::1", "10.0.0.1.evil.example"})
    expect_error(ErrorCode::kMisdirected, "", [&] { http::check_operator_host(request_to(bad), rules); });
  for (const char* bad : {"*", "*.", "a.*.b", "http://x", "a:80", "**.x"})
    expect_error(ErrorCode::kUsage, "", [&] { http::check_allowed_hosts({bad}); });
  http::check_allowed_hosts({"a", "*.b.c", "10.0.0.1", "[::1]"});
}

TEST(Timestamps, AreReadAsTheyAreWritten) {
  EXPECT_EQ(http::parse_timestamp("1970-01-01T00:00:01Z"), 1000);
  EXPECT_EQ(http::parse_timestamp("1970-01-01T00:00:00.0079Z"), 7);
  EXPECT_EQ(http::parse_timestamp("1970-01-01T02:00:00+02:00"), 0);
  EXPECT_EQ(http::format_timestamp(*http::parse_timestamp("2024-02-29T23:59:59.007Z")),
            "2024-02-29T23:59:59.007Z");
  for (const char* wrong :
       {"", "2024-02-30T00:00:00Z", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01T25:00:00Z",
        "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00Zx", "2024-1-1T00:00:00Z", "x"})
    EXPECT_FALSE(http::parse_timestamp(wrong)) << wrong;
}

}  // namespace
}  // namespace tensormill::testing_api
