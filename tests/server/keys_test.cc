// API keys in a file, and the numbers for operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "server/metrics/registry.h"
#include "server/services/key_file.h"
#include "tests/storage/support.h"

namespace tensormill::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Keys : public testing::Test {
protected:
  storage::TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/keys";
};

TEST_F(Keys, AreShownOnceAndKeptHashed) {
  const std::string key = add_key(path_, "ci", {"infer", "read"});
  EXPECT_EQ(key.size(), 67U);
  EXPECT_THAT(read_file(path_), Not(HasSubstr(key.substr(3))));
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  KeyFile keys(path_);
  EXPECT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys.find(key).name, "ci");
  EXPECT_THAT(keys.find(key).scopes, ElementsAre("infer", "read"));
  EXPECT_EQ(keys.find(key + "0").name, "");
  EXPECT_EQ(keys.find("").name, "");
  EXPECT_NE(add_key(path_, "other", {"admin"}), key);
}

TEST_F(Keys, AChangeIsNoticedAtOnce) {
  const std::string first = add_key(path_, "first", {"read"});
  KeyFile keys(path_);
  const std::string second = add_key(path_, "second", {"write"});
  EXPECT_EQ(keys.find(second).name, "second");
  revoke_key(path_, "first");
  EXPECT_EQ(keys.find(first).name, "");
  EXPECT_EQ(keys.find(second).name, "second");
}

TEST_F(Keys, AFileThatCannotBeUnderstoodLetsNobodyIn) {
  const std::string key = add_key(path_, "ci", {"admin"});
  KeyFile keys(path_);
  const std::string sound = read_file(path_);
  write_file(path_, sound + "half a line\n");
  EXPECT_EQ(keys.find(key).name, "");
  write_file(path_, sound);
  EXPECT_EQ(keys.find(key).name, "ci");
  std::filesystem::remove(path_);
  EXPECT_EQ(keys.find(key).name, "");
}

TEST_F(Keys, WrongOnesAreRefused) {
  EXPECT_ERROR(KeyFile{path_}, ErrorCode::kNotFound);
  EXPECT_ERROR(add_key(path_, "a b", {"read"}), ErrorCode::kUsage);
  EXPECT_ERROR(add_key(path_, "a", {"root"}), ErrorCode::kUsage);
  EXPECT_ERROR(add_key(path_, "a", {}), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(path_));
  add_key(path_, "a", {"read"});
  EXPECT_ERROR(add_key(path_, "a", {"read"}), ErrorCode::kNameTaken);
  EXPECT_ERROR(revoke_key(path_, "b"), ErrorCode::kNotFound);
  for (const char* line : {"x read sha256:12 now\n", "x root sha256:0 now\n", "a read\n"}) {
    write_file(path_, line);
    EXPECT_ERROR(read_keys(path_), ErrorCode::kUsage);
  }
  const std::string row = "a read " + Digest::of("k").text() + " now\n";
  write_file(path_, row + "# a comment\n\n");
  EXPECT_EQ(read_keys(path_).size(), 1U);
  write_file(path_, row + row);
  EXPECT_ERROR(read_keys(path_), ErrorCode::kUsage);
}

TEST(Metrics, AreTextThatPrometheusReads) {
  metrics::Registry registry;
  registry.count("http_requests_total", {{"route", "/"}, {"method", "GET"}, {"code", "200"}});
  registry.count("http_requests_total", {{"route", "/"}, {"method", "GET"}, {"code", "200"}}, 2);
  registry.set("store_bytes", {}, 12.5);
  registry.set("build_info", {{"version", "a\"b\\c\nd"}}, 1);
  for (const double seconds : {0.0001, 0.0002, 3.0, 1000.0}) {
    registry.observe("infer_compute_seconds", {{"model", "m"}}, seconds);
  }
  const std::string text = registry.text();
  EXPECT_THAT(text, HasSubstr("# TYPE http_requests_total counter\n"
                              "http_requests_total{route=\"/\",method=\"GET\",code=\"200\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE store_bytes gauge\nstore_bytes 12.5\n"));
  EXPECT_THAT(text, HasSubstr("build_info{version=\"a\\\"b\\\\c\\nd\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("infer_compute_seconds_bucket{model=\"m\",le=\"1e-04\"} 1\n"
                              "infer_compute_seconds_bucket{model=\"m\",le=\"0.00025\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("infer_compute_seconds_bucket{model=\"m\",le=\"60\"} 3\n"
                              "infer_compute_seconds_bucket{model=\"m\",le=\"+Inf\"} 4\n"
                              "infer_compute_seconds_sum{model=\"m\"} 1003.0003\n"
                              "infer_compute_seconds_count{model=\"m\"} 4\n"));
}

TEST(Metrics, GaugesThatAreLookedUpAreSetAnew) {
  metrics::Registry registry;
  std::string state = "loading";
  registry.on_collect([&](metrics::Registry& target) {
    target.clear("deployment_state");
    target.set("deployment_state", {{"state", state}}, 1);
  });
  EXPECT_THAT(registry.text(), HasSubstr("deployment_state{state=\"loading\"} 1\n"));
  state = "ready";
  EXPECT_THAT(registry.text(), HasSubstr("deployment_state{state=\"ready\"} 1\n"));
  EXPECT_THAT(registry.text(), Not(HasSubstr("loading")));
}

TEST(Metrics, SeriesOfWhatIsGoneAreForgotten) {
  metrics::Registry registry;
  for (const char* model : {"a", "ab"}) {
    for (const char* version : {"", "1", "12"}) {
      registry.count("infer_requests_total", {{"model", model}, {"version", version}, {"outcome", "ok"}});
      registry.observe("infer_batch_size", {{"model", model}, {"version", version}}, 1);
    }
    registry.add("infer_queue_depth", {{"model", model}}, 1);
  }
  const std::string of_ab = "infer_requests_total{model=\"ab\",version=\"1\",outcome=\"ok\"} 1\n";
  registry.forget({{"model", "a"}}, {{{"model", "a"}, {"version", ""}}, {{"model", "a"}, {"version", "12"}}});
  std::string text = registry.text();
  EXPECT_THAT(text, Not(HasSubstr("model=\"a\",version=\"1\"")));
  EXPECT_THAT(text, HasSubstr("infer_batch_size_count{model=\"a\",version=\"12\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(of_ab));
  registry.forget({{"model", "a"}});
  text = registry.text();
  EXPECT_THAT(text, Not(HasSubstr("model=\"a\",")));
  EXPECT_THAT(text, HasSubstr("infer_queue_depth{model=\"a\"} 1\n")) << "a request is still in work";
  EXPECT_THAT(text, HasSubstr(of_ab));
  registry.add("infer_queue_depth", {{"model", "a"}}, -1);
  registry.forget({{"model", "a"}});
  EXPECT_THAT(registry.text(), Not(HasSubstr("model=\"a\"")));
}

TEST(Metrics, UnknownFamiliesAndWrongKindsAreBugs) {
  metrics::Registry registry;
  EXPECT_THROW(registry.count("no_such_total", {}), InternalError);
  EXPECT_THROW(registry.count("store_bytes", {}), InternalError);
  EXPECT_THROW(registry.set("http_requests_total", {}, 1), InternalError);
  EXPECT_THROW(registry.observe("store_bytes", {}, 1), InternalError);
}

}  // namespace
}  // namespace tensormill::server
