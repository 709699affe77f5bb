// What is the same for all endpoints: request ids, routes, Host and Origin, scopes, query parameters, media
// types.
#include <gtest/gtest.h>

#include "api/endpoints/context.h"
#include "api/http/problem.h"
#include "api/http/rate_limit.h"
#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

class Dispatch : public ApiTest {};

TEST_F(Dispatch, EchoesValidRequestIdsAndMakesOthers) {
  EXPECT_EQ(get("/healthz", {"X-Request-Id: a.B_9-"}).header("X-Request-Id"), "a.B_9-");
  for (const std::string& bad :
       {std::string("a b"), std::string("a/b"), std::string(65, 'a'), std::string()}) {
    const std::string made = get("/healthz", {"X-Request-Id: " + bad}).header("X-Request-Id");
    EXPECT_NE(made, bad);
    EXPECT_TRUE(http::is_request_id(made)) << made;
  }
}

TEST_F(Dispatch, TellsUnknownPathsFromWrongMethods) {
  expect_problem(get("/v1/nothing"), 404, "not_found");
  expect_problem(get("/v1/models/"), 404, "not_found");
  expect_problem(get("/v1/models/a%2Fgraph/x/y"), 404, "not_found");
  const Answer answer = send("DELETE", "/v1/models");
  expect_problem(answer, 405, "method_not_allowed");
  EXPECT_EQ(answer.header("Allow"), "GET, HEAD, OPTIONS, POST");
}

TEST_F(Dispatch, AnswersOptions) {
  const Answer answer = send("OPTIONS", "/v1/models");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.header("Allow"), "GET, HEAD, OPTIONS, POST");
  EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(send("OPTIONS", "*").status, 204);
}

TEST_F(Dispatch, AnswersHeadAsGet) { EXPECT_EQ(send("HEAD", "/v1/info").status, 200); }

TEST_F(Dispatch, RefusesMalformedTargets) {
  for (const char* target : {"no-slash", "/v1/models?name=%", "/v1/%zz", "/v1/models?limit=%00", "/v1/%ff",
                             "/v1#x", "/v1/\xC3\xA9"}) {
    expect_problem(get(target), 400, "invalid_request");
  }
}

TEST_F(Dispatch, RefusesUnknownAndRepeatedQueryParameters) {
  expect_problem(get("/v1/models?lmit=1"), 400, "invalid_request");
  expect_problem(get("/v1/info?x"), 400, "invalid_request");
  expect_problem(get("/v1/models?limit=1&limit=2"), 400, "invalid_request");
  EXPECT_EQ(get("/v2?test_1=1&test_2=2&test_1=").status, 200) << "KServe v2 has clients' own";
}

TEST_F(Dispatch, RefusesForeignHosts) {
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "",
                           "localhost:80:80", "[::2]", "localhost:x"}) {
    expect_problem(get("/v1/info", {"Host: " + std::string(host)}), 421, "misdirected");
  }
  for (const char* host :
       {"localhost", "LOCALHOST:1", "127.0.0.1:8080", "127.8.8.8", "[::1]:8080", "localhost."}) {
    EXPECT_EQ(get("/v1/info", {"Host: " + std::string(host)}).status, 200) << host;
  }
}

TEST_F(Dispatch, AnswersConfiguredHostsAndHealthOfAnyHost) {
  options_.allowed_hosts = {"Mill.Example"};
  rebuild();
  EXPECT_EQ(get("/v1/info", {"Host: mill.example:443"}).status, 200);
  EXPECT_EQ(get("/healthz", {"Host: 10.1.2.3:8080"}).status, 200);
}

TEST_F(Dispatch, RefusesCostlyLooksFromForeignPagesWhereNobodyNeedsAKey) {
  const std::string package = "/v1/packages/" + packages_.package.id.text();
  for (const std::string& path : {std::string("/v1/models/digits/graph"), package + "/code",
                                  package + "/archive", package + "/bundle"}) {
    for (const char* field :
         {"Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"}) {
      expect_problem(get(path, {field}), 403, "forbidden");
      expect_problem(send("HEAD", path, {field}), 403, "forbidden");
    }
    for (const char* field : {"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "X-Other: 1"})
      EXPECT_NE(get(path, {field}).status, 403) << path << " " << field;
  }
  EXPECT_EQ(get("/v1/models", {"Sec-Fetch-Site: cross-site"}).status, 200) << "a page cannot read the answer";
}

TEST_F(Dispatch, RefusesChangesFromForeignPages) {
  const std::string target = "/v1/jobs/" + jobs_.job.id + "/retry";
  for (const char* field : {"Origin: http://evil.example", "Origin: null", "Origin: http://localhost:9999",
                            "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"}) {
    expect_problem(send("POST", target, {field}), 403, "forbidden");
  }
  for (const char* field :
       {"Origin: http://localhost:8080", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none"}) {
    EXPECT_EQ(send("POST", target, {field}).status, 202) << field;
  }
  expect_problem(send("POST", target, {"Origin: http://localhost:8080", "Origin: http://evil.example"}), 403,
                 "forbidden");
  EXPECT_EQ(get("/v1/info", {"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}).status, 200);
}

TEST_F(Dispatch, BoundsTheRateOfEachKey) {
  services_.keys = &keys_;
  options_.max_rate = 3;
  rebuild();
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    const Answer answer = get("/v1/info", {"Authorization: Bearer reader"});
    if (answer.status == 200) continue;
    expect_problem(answer, 429, "quota_exceeded");
    EXPECT_EQ(answer.header("Retry-After"), "1");
    ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST(RateLimits, FillEachBucketAtTheRate) {
  http::RateLimiter limiter(2);
  const auto start = http::RateLimiter::Clock::now();
  const auto taken = [&](const std::string& caller, int ms) {
    try {
      limiter.take(caller, start + std::chrono::milliseconds(ms));
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kQuotaExceeded);
      return false;
    }
  };
  EXPECT_TRUE(taken("a", 0) && taken("a", 0));
  EXPECT_FALSE(taken("a", 400));
  EXPECT_TRUE(taken("b", 400)) << "another caller has a bucket of its own";
  EXPECT_TRUE(taken("a", 500));
  EXPECT_FALSE(taken("a", 600));
  EXPECT_TRUE(taken("a", 60'000) && taken("a", 60'000)) << "full again";
  EXPECT_FALSE(taken("a", 60'000)) << "never more than one second's";
  http::RateLimiter none(0);
  for (int i = 0; i < 1000; ++i) none.take("a", start);
}

TEST_F(Dispatch, QuickInferencesMayRunWhereTheyWereRead) {
  deployments_.deployment.name = "digits";
  const auto lane = [&](const char* target, std::string_view body = "", const char* coding = "") {
    http::Request request;
    request.method = "POST";
    request.target = target;
    request.body = std::make_shared<http::BytesBody>(std::string(body));
    if (*coding != '\0') request.headers.set("Content-Encoding", coding);
    return api_->lane(request, body);
  };
  EXPECT_EQ(lane("/v2/models/digits/infer"), http::Lane::kWorker);
  deployments_.quick = true;
  EXPECT_EQ(lane("/v2/models/digits/infer"), http::Lane::kDirect);
  EXPECT_EQ(lane("/v1/deployments/digits/infer"), http::Lane::kDirect);
  for (const char* other : {"/v2/models/letters/infer", "/v1/deployments/digits/infer?repeat=1000",
                            "/v2/models/digits/versions/2/infer", "/v2/models/infer", "/v2/models//infer",
                            "/v1/deployments/digits/classify", "/v1/deployments/digits"}) {
    EXPECT_EQ(lane(other), http::Lane::kWorker) << other;
  }
  EXPECT_EQ(lane("/healthz"), http::Lane::kReserved);
  // What is long, or unfolds, is read where nobody waits for it.
  const char* const infer = "/v1/deployments/digits/infer";
  EXPECT_EQ(lane(infer, std::string(16 << 10, ' ')), http::Lane::kDirect);
  EXPECT_EQ(lane(infer, std::string((16 << 10) + 1, ' ')), http::Lane::kBulk);
  for (const char* coding : {"gzip", "zstd", "identity"})
    EXPECT_EQ(lane(infer, "{}", coding), http::Lane::kBulk);
  // Not what is as long as the inputs are.
  deployments_.largest = 40'000;
  const std::string picture((16 << 10) + 40'000, ' ');
  EXPECT_EQ(lane(infer, picture), http::Lane::kWorker);
  EXPECT_EQ(lane(infer, picture + " "), http::Lane::kBulk);
  EXPECT_EQ(lane(infer, "{}", "gzip"), http::Lane::kBulk);
  EXPECT_EQ(lane("/v1/deployments/digits/classify", picture), http::Lane::kBulk);
  const std::string kept = std::string("PK\x03\x04\x14\0\0\0\0\0", 10) + "data" +
                           std::string("PK\x01\x02\x14\0\x14\0\0\0\0\0", 12);
  EXPECT_EQ(lane(infer, kept), http::Lane::kDirect);
  for (const size_t method : {size_t{8}, size_t{24}}) {
    std::string packed = kept;
    packed[method] = 8;
    EXPECT_EQ(lane(infer, packed), http::Lane::kBulk) << method;
    EXPECT_EQ(lane(infer, packed.substr(0, method)), http::Lane::kBulk) << method;
  }
}

TEST_F(Dispatch, WhatMayTakeLongToReadGivesWayUnlessItLoads) {
  // Chunked, or not there yet: its length is all that is known.
  struct Announced : http::BytesBody {
    explicit Announced(std::optional<uint64_t> bytes) : http::BytesBody(""), announced(bytes) {}
    std::optional<uint64_t> length() const override { return announced; }
    const std::optional<uint64_t> announced;
  };
  const auto lane = [&](const char* method, const char* target, std::optional<uint64_t> length) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = std::make_shared<Announced>(length);
    return api_->lane(request, "");
  };
  for (const std::optional<uint64_t> length : {std::optional<uint64_t>(), std::optional<uint64_t>(1 << 20)}) {
    for (const char* target : {"/v1/models", "/v1/tuning-records", "/v2/models/digits/infer", "/v1/jobs",
                               "/v1/deployments/digits/classify", "/v1/packages/x/run?repeat=2"})
      EXPECT_EQ(lane("POST", target, length), http::Lane::kBulk) << target;
    EXPECT_EQ(lane("PATCH", "/v1/uploads/x", length), http::Lane::kBulk);
    EXPECT_EQ(lane("PUT", "/v1/deployments/digits", length), http::Lane::kWorker);
    EXPECT_EQ(lane("POST", "/v2/repository/models/digits/load", length), http::Lane::kWorker);
  }
  EXPECT_EQ(lane("POST", "/v1/jobs", 200), http::Lane::kWorker);
  EXPECT_EQ(lane("GET", "/v1/packages", 0), http::Lane::kWorker);
  EXPECT_EQ(lane("POST", "/v1/gc?dry_run=1", 0), http::Lane::kBulk);
}

TEST_F(Dispatch, TakesConfiguredOrigins) {
  options_.allowed_origins = {"https://console.example"};
  rebuild();
  const std::string target = "/v1/jobs/" + jobs_.job.id + "/retry";
  EXPECT_EQ(send("POST", target, {"Origin: https://console.example", "Sec-Fetch-Site: cross-site"}).status,
            202);
}

TEST_F(Dispatch, RefusesOtherMediaTypesAndEncodings) {
  const std::string body = "{\"target\":\"llvm\"}";
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""}) {
    expect_problem(send("POST", "/v1/targets/parse", {"Content-Type: " + std::string(type)}, body), 415,
                   "unsupported_media_type");
  }
  expect_problem(post_json("/v1/targets/parse", body, {"Content-Encoding: br"}), 415,
                 "unsupported_media_type");
  EXPECT_EQ(send("POST", "/v1/targets/parse", {"Content-Type: Application/JSON; charset=utf-8"}, body).status,
            200);
}

TEST_F(Dispatch, NamesTheLimitOfABody) {
  options_.max_json_bytes = 20;
  rebuild();
  const Answer answer = post_json("/v1/targets/parse", "{\"target\":\"llvm -mcpu=haswell\"}");
  expect_problem(answer, 413, "too_large");
  EXPECT_NE(answer.json().at("detail").get<std::string>().find("limits.json_bytes"), std::string::npos);
}

TEST_F(Dispatch, ChecksScopesWhenKeysAreOn) {
  services_.keys = &keys_;
  rebuild();
  const Answer anonymous = get("/v1/info");
  expect_problem(anonymous, 401, "unauthorized");
  EXPECT_EQ(anonymous.header("WWW-Authenticate"), "Bearer");
  expect_problem(get("/v1/info", {"Authorization: Bearer wrong"}), 401, "unauthorized");
  expect_problem(get("/v1/info", {"Authorization: Basic reader"}), 401, "unauthorized");
  EXPECT_EQ(get("/v1/info", {"Authorization: bearer reader"}).status, 200);
  expect_problem(send("DELETE", "/v1/models/x", {"Authorization: Bearer reader"}), 403, "forbidden");
  expect_problem(send("DELETE", "/v1/models/x", {"Authorization: Bearer boss"}), 404, "not_found");
  for (const char* open : {"/", "/docs", "/healthz", "/readyz"}) EXPECT_EQ(get(open).status, 200) << open;
}

TEST_F(Dispatch, EveryErrorCodeIsAProblem) {
  for (const ErrorCodeInfo& row : all_error_codes()) {
    models_.failure = std::make_shared<const Error>(row.code, "what went wrong");
    expect_problem(send("POST", "/v1/models?name=m", {}, "bytes"), row.http_status, std::string(row.name));
  }
}

TEST_F(Dispatch, TellsDetailsAndExtras) {
  Error error(ErrorCode::kOperatorNotImplemented, "2 nodes",
              {{"/graph/n1", "op Foo"}, {"/graph/n2", "op Bar\xFF"}});
  error.set_extra_json(
      R"({"model":{"inputs":[],"operators":{"Foo":1},"opsets":{},"outputs":[],"parameters":0}})");
  models_.failure = std::make_shared<const Error>(error);
  const Answer answer = send("POST", "/v1/models?name=m", {}, "bytes");
  expect_problem(answer, 422, "operator_not_implemented");
  EXPECT_EQ(answer.json().at("errors").size(), 2u);
  EXPECT_EQ(answer.json().at("errors")[0].at("pointer"), "/graph/n1");
  EXPECT_EQ(answer.json().at("model").at("operators").at("Foo"), 1);
}

TEST_F(Dispatch, ReportsEachResponse) {
  std::vector<std::string> seen;
  options_.on_response = [&](const http::Request& request, const http::Response& response,
                             const std::string& route) {
    seen.push_back(request.method + " " + route + " " + std::to_string(response.status));
  };
  rebuild();
  get("/v1/models/x");
  get("/nothing");
  EXPECT_EQ(seen, (std::vector<std::string>{"GET /v1/models/{model} 404", "GET  404"}));
}

TEST_F(Dispatch, ALiveResponseWithoutAPlaceIsReportedAsWhatItIs) {
  std::vector<int> seen;
  options_.on_response = [&](const http::Request&, const http::Response& response, const std::string&) {
    seen.push_back(response.status);
  };
  rebuild();
  int asked = 0;
  take_stream_ = [&] {
    if (++asked > 1) throw Error(ErrorCode::kUnavailable, "there are 1 live responses already");
  };
  const std::string events = "/v1/jobs/" + jobs_.job.id + "/events";
  EXPECT_EQ(get(events).status, 200);
  const Answer refused = get(events);
  expect_problem(refused, 503, "unavailable");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_FALSE(refused.header("X-Request-Id").empty());
  get("/v1/info");
  EXPECT_EQ(asked, 2) << "only for what is live";
  EXPECT_EQ(seen, (std::vector<int>{200, 503, 200}));
}

TEST(Dialects, InferenceProtocolHasItsOwnStatuses) {
  using http::Dialect;
  EXPECT_EQ(http::dialect_of("/v2/models/x"), Dialect::kInference);
  EXPECT_EQ(http::dialect_of("/v20"), Dialect::kNative);
  EXPECT_EQ(http::problem_status(ErrorCode::kInvalidTensor, Dialect::kInference), 400);
  EXPECT_EQ(http::problem_status(ErrorCode::kUnsupportedMediaType, Dialect::kInference), 400);
  EXPECT_EQ(http::problem_status(ErrorCode::kNotSupported, Dialect::kInference), 501);
  EXPECT_EQ(http::problem_status(ErrorCode::kNotFound, Dialect::kInference), 404);
  const http::Response response =
      http::problem_response(Error(ErrorCode::kNotFound, "gone"), "id", Dialect::kInference);
  EXPECT_EQ(parse_json(std::get<std::string>(response.body)).at("error"), "gone");
}

TEST_F(Dispatch, AllowedOriginsMayReadAndOthersAreToldNothing) {
  EXPECT_FALSE(get("/v1/info", {"Origin: https://a.example"}).headers.has("Access-Control-Allow-Origin"));
  options_.allowed_origins = {"https://a.example"};
  rebuild();
  const Answer read = get("/v1/info", {"Origin: https://a.example"});
  EXPECT_EQ(read.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_NE(read.header("Vary").find("Origin"), std::string::npos);
  EXPECT_FALSE(read.headers.has("Access-Control-Allow-Credentials"));
  const Answer other = get("/v1/info", {"Origin: https://b.example"});
  EXPECT_FALSE(other.headers.has("Access-Control-Allow-Origin"));
  EXPECT_NE(other.header("Vary").find("Origin"), std::string::npos);
  const Answer preflight = send("OPTIONS", "/v1/jobs",
                                {"Origin: https://a.example", "Access-Control-Request-Method: POST",
                                 "Access-Control-Request-Headers: content-type"});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Allow-Methods"), "GET, HEAD, OPTIONS, POST");
  EXPECT_NE(preflight.header("Access-Control-Allow-Headers").find("Content-Type"), std::string::npos);
  const Answer foreign =
      send("OPTIONS", "/v1/jobs", {"Origin: https://b.example", "Access-Control-Request-Method: POST"});
  EXPECT_FALSE(foreign.headers.has("Access-Control-Allow-Methods"));
  const Answer posted =
      post_json("/v1/targets/parse", "{\"target\":\"llvm\"}", {"Origin: https://a.example"});
  EXPECT_EQ(posted.status, 200);
  EXPECT_EQ(posted.header("Access-Control-Allow-Origin"), "https://a.example");
}

}  // namespace
}  // namespace tensormill::testing_api
