// Endpoint by endpoint: what is asked of the service and what is answered.
#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "api/endpoints/context.h"
#include "api/http/coding.h"
#include "runtime/npz/npz.h"
#include "tests/api/fakes.h"
#include "tests/api/openapi_checker.h"

namespace tensormill::testing_api {
namespace {

class Endpoints : public ApiTest {
protected:
  const std::string package_ = "/v1/packages/" + Digest::of("package").text();
};

std::string npz_bytes(const std::vector<float>& values) {
  std::vector<npz::NamedTensor> tensors;
  tensors.push_back(
      {"x", Tensor::from<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values))});
  return npz::write_npz(tensors);
}

TEST_F(Endpoints, HealthAndReadiness) {
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  system_.is_live = false;
  system_.readiness = {false, "draining"};
  EXPECT_EQ(get("/healthz").status, 503);
  const Answer answer = get("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json().at("reason"), "draining");
  EXPECT_EQ(answer.header("Retry-After"), "1");
}

TEST_F(Endpoints, InfoAndTargets) {
  EXPECT_EQ(get("/v1/info").json().at("host").at("cpu"), "haswell");
  EXPECT_EQ(get("/v1/info").json().at("limits").at("limits.model_bytes"), 100);
  EXPECT_EQ(get("/v1/targets").json().at("items")[0].at("target"), "llvm -mcpu=haswell");
  const Answer parsed = post_json("/v1/targets/parse", "{\"target\":\"llvm -mcpu=haswell\"}");
  EXPECT_EQ(parsed.status, 200);
  EXPECT_EQ(parsed.json().at("canonical"), "llvm -mcpu=haswell -num-cores=2");
  EXPECT_EQ(parsed.json().at("facts").at("vector_bits"), 256);
  expect_problem(post_json("/v1/targets/parse", "{\"target\":\"cuda\"}"), 422, "invalid_target");
  expect_problem(post_json("/v1/targets/parse", "{\"target\":"), 400, "invalid_json");
  expect_problem(post_json("/v1/targets/parse", "{\"targt\":\"llvm\"}"), 422, "invalid_argument");
}

TEST_F(Endpoints, ImportsModels) {
  const Answer created = send("POST", "/v1/models?name=m&replace=1", {"X-Request-Id: r1"}, "bytes");
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.header("Location"), "/v1/models/m");
  EXPECT_EQ(created.header("ETag"), "\"" + Digest::of("bytes").text() + "\"");
  EXPECT_EQ(models_.bytes, "bytes");
  EXPECT_EQ(models_.request_id, "r1");
  EXPECT_TRUE(models_.options.replace);
  const Json model = created.json();
  EXPECT_EQ(model.at("id"), Digest::of("bytes").text());
  EXPECT_EQ(model.at("inputs")[0].dump(), R"({"dtype":"float32","name":"data","shape":["N",3,-1]})");
  EXPECT_EQ(model.at("ops").at("Conv"), 53);
  EXPECT_EQ(model.at("created_at"), "2024-02-29T23:59:59.007Z");
  EXPECT_EQ(send("POST", "/v1/models?name=m", {"Content-Type: application/octet-stream"}, "bytes").status,
            200);
  EXPECT_EQ(
      send("POST", "/v1/models?name=m", {"Content-Type: application/x-www-form-urlencoded"}, "b").status,
      200);
}

TEST_F(Endpoints, RefusesWrongImports) {
  for (const char* name : {"", "-a", "a b", "a%2Fb", ".."}) {
    expect_problem(send("POST", "/v1/models?name=" + std::string(name), {}, "b"), 422, "invalid_argument");
  }
  expect_problem(send("POST", "/v1/models", {}, "b"), 400, "invalid_request");
  expect_problem(send("POST", "/v1/models?name=m&format=keras", {}, "b"), 422, "not_supported");
  expect_problem(send("POST", "/v1/models?name=m&replace=maybe", {}, "b"), 400, "invalid_request");
  expect_problem(send("POST", "/v1/models?name=m", {"Content-Type: multipart/form-data"}, "b"), 415,
                 "unsupported_media_type");
  options_.max_model_bytes = 3;
  rebuild();
  expect_problem(send("POST", "/v1/models?name=m", {}, "four"), 413, "too_large");
}

TEST_F(Endpoints, ReadsModelsConditionally) {
  send("POST", "/v1/models?name=m", {}, "bytes");
  const std::string id = Digest::of("bytes").text();
  EXPECT_EQ(get("/v1/models/m").header("ETag"), "\"" + id + "\"");
  EXPECT_EQ(get("/v1/models/" + id).status, 200);
  const Answer unchanged = get("/v1/models/m", {"If-None-Match: \"x\", W/\"" + id + "\""});
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.body, "");
  EXPECT_EQ(get("/v1/models/m", {"If-None-Match: \"x\""}).status, 200);
  expect_problem(send("DELETE", "/v1/models/m", {"If-Match: \"x\""}), 412, "precondition_failed");
  EXPECT_EQ(send("DELETE", "/v1/models/m", {"If-Match: \"" + id + "\""}).status, 204);
  expect_problem(get("/v1/models/m"), 404, "not_found");
}

TEST_F(Endpoints, ListsModelsByPage) {
  send("POST", "/v1/models?name=m", {}, "bytes");
  const Answer page = get("/v1/models?limit=1");
  EXPECT_EQ(page.json().at("items").size(), 1u);
  EXPECT_EQ(page.json().at("next_cursor"), "a b");
  EXPECT_EQ(page.header("Link"), "</v1/models?limit=1&cursor=a%20b>; rel=\"next\"");
  EXPECT_TRUE(get("/v1/models").json().at("next_cursor").is_null());
  for (const char* limit : {"0", "501", "x", "1x", ""}) {
    expect_problem(get("/v1/models?limit=" + std::string(limit)), 400, "invalid_request");
  }
}

TEST_F(Endpoints, ShowsGraphs) {
  send("POST", "/v1/models?name=m", {}, "bytes");
  EXPECT_EQ(get("/v1/models/m/graph").json().at("stage"), "imported");
  EXPECT_EQ(get("/v1/models/m/graph?stage=optimized").json().at("stage"), "optimized");
  expect_problem(get("/v1/models/m/graph?stage=x"), 400, "invalid_request");
}

TEST_F(Endpoints, SubmitsJobs) {
  const Answer answer =
      post_json("/v1/jobs", R"({"kind":"compile","model":"m","target":"llvm"})", {"Idempotency-Key: k1"});
  EXPECT_EQ(answer.status, 202);
  EXPECT_EQ(answer.header("Location"), "/v1/jobs/" + jobs_.job.id);
  EXPECT_EQ(answer.json().at("state"), "queued");
  EXPECT_EQ(answer.json().at("cached"), false);
  EXPECT_EQ(jobs_.options.idempotency_key, "k1");
  EXPECT_EQ(jobs_.request.opt_level, 3);
}

TEST_F(Endpoints, WaitsWhenPreferred) {
  const std::string body = R"({"kind":"compile","model":"m","target":"llvm"})";
  const Answer answer = post_json("/v1/jobs", body, {"Prefer: respond-async, wait=90"});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(jobs_.waited, std::chrono::seconds(30));
  EXPECT_EQ(answer.header("Preference-Applied"), "wait=30");
  EXPECT_EQ(answer.json().at("result").at("package"), Digest::of("package").text());
}

TEST_F(Endpoints, AnswersCachedJobsAtOnce) {
  jobs_.job.state = services::JobState::kSucceeded;
  jobs_.cached = true;
  const Answer answer = post_json("/v1/jobs", R"({"kind":"compile","model":"m","target":"llvm"})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json().at("cached"), true);
}

TEST_F(Endpoints, ShowsJobs) {
  jobs_.job.error = services::JobError{ErrorCode::kInvalidModel, "broken", {{"/node", "x"}}, ""};
  const std::string job = "/v1/jobs/" + jobs_.job.id;
  const Json json = get(job).json();
  EXPECT_EQ(json.at("error").at("code"), "invalid_model");
  EXPECT_TRUE(json.at("started_at").is_null());
  expect_problem(get("/v1/jobs/other"), 404, "not_found");
  EXPECT_EQ(get("/v1/jobs?state=failed&model=m&kind=compile").status, 200);
  EXPECT_EQ(jobs_.query.state, services::JobState::kFailed);
  EXPECT_EQ(jobs_.query.model, "m");
  expect_problem(get("/v1/jobs?state=lost"), 400, "invalid_request");
}

TEST_F(Endpoints, CancelsAndRetriesJobs) {
  const std::string job = "/v1/jobs/" + jobs_.job.id;
  EXPECT_EQ(send("POST", job + "/cancel").status, 202);
  EXPECT_EQ(send("POST", job + "/retry").status, 202);
  jobs_.job.state = services::JobState::kSucceeded;
  expect_problem(send("POST", job + "/cancel"), 409, "conflict");
}

TEST_F(Endpoints, ServesLogsByRange) {
  const std::string log = "/v1/jobs/" + jobs_.job.id + "/log";
  EXPECT_EQ(get(log).body, "0123456789");
  const Answer part = get(log, {"Range: bytes=2-4"});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.header("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(get(log, {"Range: bytes=8-"}).body, "89");
  EXPECT_EQ(get(log, {"Range: bytes=-3"}).body, "789");
  EXPECT_EQ(get(log, {"Range: bytes=5-99"}).body, "56789");
  EXPECT_EQ(get(log, {"Range: bytes=0-1,3-4"}).status, 200);
  EXPECT_EQ(get(log, {"Range: lines=0-1"}).status, 200);
  EXPECT_EQ(get(log, {"Range: bytes=4-2"}).status, 200);
  expect_problem(get(log, {"Range: bytes=10-"}), 416, "range_not_satisfiable");
  expect_problem(get(log, {"Range: bytes=-0"}), 416, "range_not_satisfiable");
}

TEST_F(Endpoints, StreamsEvents) {
  const std::string events = "/v1/jobs/" + jobs_.job.id + "/events";
  const Answer all = get(events);
  EXPECT_EQ(all.header("Content-Type"), "text/event-stream");
  EXPECT_EQ(
      all.body,
      "retry: 3000\n\nid: 1\nevent: state\ndata: {\"state\":\"running\"}\n\nid: 2\nevent: end\ndata: {}\n\n");
  EXPECT_EQ(get(events, {"Last-Event-ID: 1"}).body.find("id: 1"), std::string::npos);
  expect_problem(get(events, {"Last-Event-ID: x"}), 400, "invalid_request");
  expect_problem(get("/v1/jobs/other/events"), 404, "not_found");
}

TEST_F(Endpoints, ServesReports) {
  const std::string path = "/v1/jobs/" + jobs_.job.id + "/report";
  EXPECT_EQ(get(path).json().at("state"), "running");
  const Answer page = get(path + "?format=html");
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_NE(page.header("Content-Security-Policy").find("sandbox"), std::string::npos);
  expect_problem(get(path + "?format=pdf"), 400, "invalid_request");
  expect_problem(get("/v1/jobs/other/report"), 404, "not_found");
  post_json("/v1/jobs",
            R"({"kind":"report","models":["m"],"inputs":")" + Digest::of("inputs").text() + "\"}");
  EXPECT_EQ(jobs_.reported.models, std::vector<std::string>{"m"});
}

TEST_F(Endpoints, StreamsEventsOfAllJobs) {
  const auto frame = [&](const std::string& id) {
    return "id: " + id + "\nevent: state\ndata: {\"job\":\"" + jobs_.job.id +
           "\",\"sequence\":4,\"data\":{\"state\":\"queued\"}}\n\n";
  };
  EXPECT_EQ(get("/v1/events").body, "retry: 3000\n\n" + frame("8") + frame("9") + frame("10"));
  jobs_.events_over = std::stop_source();
  EXPECT_EQ(get("/v1/events", {"Last-Event-ID: 8"}).body, "retry: 3000\n\n" + frame("9") + frame("10"));
  expect_problem(get("/v1/events", {"Last-Event-ID: -1"}), 400, "invalid_request");
}

TEST_F(Endpoints, ServesBundles) {
  const Answer made = get(package_ + "/bundle?form=so&name=digits-net");
  EXPECT_EQ(made.body, "bundle bytes");
  EXPECT_EQ(made.header("Content-Disposition"), "attachment; filename=\"digits-net.tar\"");
  EXPECT_EQ(packages_.bundled.name, "digits-net");
  EXPECT_EQ(packages_.bundled.form, services::BundleForm::kShared);
  get(package_ + "/bundle");
  EXPECT_EQ(packages_.bundled.form, services::BundleForm::kStatic);
  for (const char* wrong : {"form=tar", "name=", "name=..", "name=a%2Fb", "name=tensormill"})
    expect_problem(get(package_ + "/bundle?" + wrong), 400, "invalid_request");
}

TEST_F(Endpoints, ServesPackages) {
  EXPECT_EQ(get("/v1/packages").json().at("items").size(), 1u);
  EXPECT_EQ(get(package_).json().at("metadata").at("format_version"), 1);
  const Answer archive = get(package_ + "/archive");
  EXPECT_EQ(archive.body, "tar bytes");
  EXPECT_EQ(archive.header("Content-Type"), "application/x-tar");
  const std::string etag = "\"" + Digest::of("archive").text() + "\"";
  EXPECT_EQ(archive.header("ETag"), etag);
  EXPECT_EQ(get(package_ + "/archive", {"If-None-Match: " + etag}).status, 304);
  EXPECT_EQ(get(package_ + "/archive", {"Range: bytes=0-2", "If-Range: " + etag}).body, "tar");
  EXPECT_EQ(get(package_ + "/archive", {"Range: bytes=0-2", "If-Range: \"old\""}).body, "tar bytes");
  EXPECT_EQ(get(package_ + "/code?stage=asm").body, "define void @f()");
  EXPECT_EQ(packages_.stage, services::CodeStage::kAsm);
  expect_problem(get(package_ + "/code?stage=c"), 400, "invalid_request");
  EXPECT_EQ(send("DELETE", package_).status, 204);
  packages_.package.deployments = {"x"};
  expect_problem(send("DELETE", package_), 409, "in_use");
  expect_problem(get("/v1/packages/sha256:0"), 404, "not_found");
}

TEST_F(Endpoints, ExportsAndImportsSignedPackages) {
  const Answer archive = get(package_ + "/archive?signed=1");
  EXPECT_EQ(archive.body, "tar bytes, signed");
  EXPECT_EQ(archive.header("ETag"), "\"" + Digest::of("archive").text() + "-signed\"");
  const std::vector<std::string> tar = {"Content-Type: application/x-tar"};
  const Answer created = send("POST", "/v1/packages", tar, archive.body);
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.header("Location"), package_);
  EXPECT_EQ(packages_.imported, "tar bytes, signed");
  EXPECT_EQ(send("POST", "/v1/packages", tar, archive.body).status, 200);
  expect_problem(send("POST", "/v1/packages", tar, "unsigned"), 403, "foreign_code");
}

TEST_F(Endpoints, RunsPackages) {
  const Answer answer = send("POST", package_ + "/run?repeat=10&number=100&profile=1",
                             {"Content-Type: application/x-npz"}, npz_bytes({1, 2}));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("Content-Type"), "application/x-npz");
  EXPECT_EQ(answer.header("Server-Timing"), "queue;dur=0.250, compute;dur=2.500");
  ASSERT_EQ(packages_.inputs.size(), 1u);
  EXPECT_EQ(packages_.inputs[0].first, "x");
  EXPECT_EQ(packages_.options.repeat, 10);
  EXPECT_FALSE(packages_.options.fill_mode.has_value());
  const auto outputs = npz::read_npz(std::as_bytes(std::span(answer.body.data(), answer.body.size())));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].tensor.element_as_double(1), -2.0);
}

TEST_F(Endpoints, RunsOnFilledInputsAndAnswersJson) {
  const Answer answer = send("POST", package_ + "/run?fill_mode=ones&seed=7", {"Accept: application/json"});
  EXPECT_EQ(answer.json().at("outputs").at("out").dump(),
            R"({"data":[1.5,-2.0],"dtype":"float32","shape":[2]})");
  EXPECT_EQ(answer.json().at("timing").at("compute_ms"), 2.5);
  EXPECT_EQ(packages_.options.fill_mode, services::FillMode::kOnes);
  EXPECT_EQ(packages_.options.seed, 7u);
  const std::string filled = package_ + "/run?fill_mode=random";
  EXPECT_EQ(send("POST", filled, {"Accept: */*"}).header("Content-Type"), "application/x-npz");
  EXPECT_EQ(packages_.options.fill_mode, services::FillMode::kRandom);
  EXPECT_EQ(
      send("POST", filled, {"Accept: application/json;q=0.5, application/x-npz"}).header("Content-Type"),
      "application/x-npz");
}

TEST_F(Endpoints, NothingIsFilledUnasked) {
  const std::string nothing = http::encode("", http::Coding::kGzip);
  for (const std::string& path : {package_ + "/run", std::string("/v1/deployments/digits/infer")}) {
    expect_problem(send("POST", path), 400, "invalid_request");
    expect_problem(send("POST", path, {"Content-Encoding: gzip"}, nothing), 400, "invalid_request");
    expect_problem(send("POST", path, {"Transfer-Encoding: chunked"}), 400, "invalid_request");
    EXPECT_EQ(send("POST", path + "?fill_mode=zeros").status, 200);
    EXPECT_EQ(send("POST", path + "?fill_mode=zeros", {"Content-Encoding: gzip"}, nothing).status, 200);
  }
}

TEST_F(Endpoints, RefusesWrongRuns) {
  expect_problem(send("POST", package_ + "/run?repeat=11&number=100"), 400, "invalid_request");
  expect_problem(send("POST", package_ + "/run?fill_mode=x"), 400, "invalid_request");
  expect_problem(send("POST", package_ + "/run", {}, "no npz at all"), 400, "invalid_npz");
  expect_problem(send("POST", package_ + "/run", {"Content-Type: text/plain"}, "x"), 415,
                 "unsupported_media_type");
}

TEST_F(Endpoints, PutsDeployments) {
  const std::string body = "{\"package\":\"" + Digest::of("package").text() + "\",\"version\":\"3\"}";
  const std::vector<std::string> json = {"Content-Type: application/json"};
  EXPECT_EQ(send("PUT", "/v1/deployments/d", json, body).status, 201);
  EXPECT_EQ(deployments_.put_spec.version, "3");
  deployments_.created = false;
  const Answer answer = send("PUT", "/v1/deployments/d", json, body);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json().at("versions").at("3").at("state"), "ready");
  EXPECT_EQ(answer.json().at("default_version"), "3");
  deployments_.ready = false;
  EXPECT_EQ(send("PUT", "/v1/deployments/d", json, body).status, 202);
  expect_problem(send("PUT", "/v1/deployments/a%20b", json, body), 422, "invalid_argument");
}

TEST_F(Endpoints, SpreadsRequestsOverVersionsAndGoesBack) {
  const std::vector<std::string> json = {"Content-Type: application/json"};
  const std::string path = "/v1/deployments/d/weights";
  const Answer answer = send("PUT", path, json, R"({"weights":{"1":9,"2":1}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json().at("weights").dump(), R"({"1":9,"2":1})");
  for (const char* wrong :
       {R"({})", R"({"weights":{}})", R"({"weights":{"1":0}})", R"({"weights":{"0":1}})",
        R"({"weights":{"x":1}})", R"({"weights":{"1":-1}})", R"({"weights":{"1":1001}})",
        R"({"weights":{"1":0.5}})", R"({"weights":[1]})", R"({"weights":{"1":1},"other":1})"})
    expect_problem(send("PUT", path, json, wrong), 422, "invalid_argument");
  EXPECT_EQ(deployments_.deployment.weights.size(), 2U) << "as it was";
  deployments_.deployment.previous_version = "1";
  deployments_.deployment.previous_package = Digest::of("package").text();
  const Answer back = send("POST", "/v1/deployments/d/rollback");
  EXPECT_EQ(back.status, 200);
  EXPECT_FALSE(back.json().contains("weights"));
  EXPECT_EQ(back.json().at("previous").at("version"), "1");
  deployments_.ready = false;
  EXPECT_EQ(send("POST", "/v1/deployments/d/rollback").status, 202);
  const std::string body = "{\"package\":\"" + Digest::of("package").text() +
                           "\",\"version\":\"3\",\"weights\":{\"3\":1,\"2\":4}}";
  send("PUT", "/v1/deployments/d", json, body);
  EXPECT_EQ(deployments_.put_spec.weights, (services::VersionWeights{{2, 4}, {3, 1}}));
}

TEST_F(Endpoints, TellsWhatAVersionWasPutWith) {
  const std::string body =
      "{\"package\":\"" + Digest::of("package").text() +
      "\",\"version\":\"3\",\"keep_versions\":2,\"labels\":[\"a\",\"b\"],"
      "\"output\":\"probabilities\",\"preprocess\":{\"resize\":28,\"color\":\"gray\",\"std\":[0.5]}}";
  const std::vector<std::string> json = {"Content-Type: application/json"};
  EXPECT_EQ(send("PUT", "/v1/deployments/d", json, body).status, 201);
  const Json told = get("/v1/deployments/d/versions/3").json();
  EXPECT_EQ(told.at("labels").dump(), R"(["a","b"])");
  EXPECT_EQ(told.at("preprocess").at("resize"), 28);
  EXPECT_FALSE(told.at("preprocess").contains("crop"));
  // It is a body of a PUT: nothing is lost on the way there and back.
  EXPECT_EQ(send("PUT", "/v1/deployments/d", json, told.dump()).status, 201);
  EXPECT_EQ(get("/v1/deployments/d/versions/3").json(), told);
  expect_problem(get("/v1/deployments/d/versions/4"), 404, "not_found");
}

TEST_F(Endpoints, TellsTheLastHour) {
  deployments_.hour.hour = {{60'000}, 3, 1, 1.5, 2.0, 4.0};
  deployments_.hour.minutes = {{{60'000}, 3, 1, 1.5, 2.0, 4.0}, {}};
  const Json hour = get("/v1/deployments/digits/traffic").json();
  EXPECT_EQ(hour.at("requests"), 3);
  EXPECT_EQ(hour.at("p95_ms"), 2.0);
  EXPECT_EQ(hour.at("minutes").size(), 2u);
  EXPECT_TRUE(hour.at("minutes")[1].at("p50_ms").is_null());
  expect_problem(get("/v1/deployments/other/traffic"), 404, "not_found");
}

TEST_F(Endpoints, ReadsAndRemovesDeployments) {
  EXPECT_EQ(get("/v1/deployments").json().at("items").size(), 1u);
  EXPECT_EQ(get("/v1/deployments/digits").json().at("name"), "digits");
  expect_problem(get("/v1/deployments/other"), 404, "not_found");
  EXPECT_EQ(send("DELETE", "/v1/deployments/digits/versions/2").status, 204);
  EXPECT_EQ(deployments_.removed_version, "2");
  EXPECT_EQ(send("DELETE", "/v1/deployments/digits").status, 204);
  EXPECT_FALSE(deployments_.removed_version.has_value());
}

TEST_F(Endpoints, Infers) {
  const Answer answer = send("POST", "/v1/deployments/digits/infer", {}, npz_bytes({3, 4, 5}));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, npz_bytes({3, 4, 5}));
  expect_problem(send("POST", "/v1/deployments/other/infer", {}, npz_bytes({1})), 404, "not_found");
}

TEST_F(Endpoints, Classifies) {
  const Answer answer =
      send("POST", "/v1/deployments/digits/classify?top=2", {"Content-Type: image/png"}, "picture");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json().at("top")[0].dump(), R"({"index":7,"label":"seven","probability":0.75})");
  EXPECT_EQ(deployments_.image, "picture");
  EXPECT_EQ(deployments_.top, 2);
  expect_problem(send("POST", "/v1/deployments/digits/classify?top=0", {}, "p"), 400, "invalid_request");
  expect_problem(send("POST", "/v1/deployments/digits/classify", {"Content-Type: application/json"}, "p"),
                 415, "unsupported_media_type");
}

TEST_F(Endpoints, PagesAreSelfContained) {
  // The names of SVG and MathML look like addresses; nothing asks for them.
  static const std::regex foreign("https?://(?!www\\.w3\\.org/(2000/svg|1998/Math/MathML|1999/xhtml))");
  for (const char* target : {"/", "/docs", "/console/console.js", "/console/viewer.js", "/console/try.js",
                             "/console/layout.js", "/console/console.css", "/console/icon.svg"}) {
    const Answer answer = get(target);
    EXPECT_EQ(answer.status, 200) << target;
    EXPECT_NE(answer.header("Content-Security-Policy"), "") << target;
    EXPECT_EQ(answer.header("Content-Security-Policy").find("unsafe"), std::string::npos) << target;
    EXPECT_FALSE(std::regex_search(answer.body, foreign)) << target;
  }
  EXPECT_EQ(get("/console/console.js").header("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(get("/console/sample.onnx").header("Content-Type"), "application/octet-stream");
  expect_problem(get("/console/other.js"), 404, "not_found");
  expect_problem(get("/console/..%2Fconsole.js"), 404, "not_found");
  const std::string docs = get("/docs").body;
  for (const ErrorCodeInfo& row : all_error_codes()) {
    EXPECT_NE(docs.find("id=\"" + std::string(row.name) + "\""), std::string::npos) << row.name;
  }
}

TEST_F(Endpoints, OpenApiHasEveryRoute) {
  const Json document = get("/openapi.json").json();
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  size_t operations = 0;
  for (const auto& [path, methods] : document.at("paths").items()) operations += methods.size();
  EXPECT_EQ(operations, endpoints::all_routes().size());
  EXPECT_EQ(document["paths"]["/v1/models"]["post"]["parameters"].size(), 5u);
  EXPECT_EQ(document.at("components").at("schemas").at("ErrorCode").at("enum").size(),
            all_error_codes().size());
}

/// Every schema below `json`.
void for_each_object(const Json& json, const std::function<void(const Json&)>& each) {
  if (json.is_object() && json.value("type", Json()) == "object") each(json);
  for (const Json& member : json) {
    if (member.is_structured()) for_each_object(member, each);
  }
}

TEST_F(Endpoints, OpenApiLeavesNothingOpen) {
  const Json document = get("/openapi.json").json();
  size_t objects = 0;
  for_each_object(document, [&](const Json& schema) {
    ++objects;
    EXPECT_TRUE(schema.contains("required")) << schema;
    EXPECT_EQ(schema.at("additionalProperties"), false) << schema;
  });
  EXPECT_GT(objects, 60u);
  const OpenApiChecker checker(document);
  const Json& spec = document.at("components").at("schemas").at("DeploymentSpec");
  EXPECT_TRUE(checker.mismatches({{"package", Digest::of("").text()}}, spec).empty());
  EXPECT_EQ(checker.mismatches({{"packag", 1}}, spec).size(), 2u);
  EXPECT_EQ(checker.mismatches({{"package", "sha256:1"}, {"instances", "2"}}, spec).size(), 2u);
  EXPECT_EQ(checker.mismatches({{"package", Digest::of("").text()}, {"output", "odds"}}, spec).size(), 1u);
}

}  // namespace
}  // namespace tensormill::testing_api
