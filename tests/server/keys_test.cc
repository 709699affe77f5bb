// API keys in a file, and the numbers for operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "server/metrics/registry.h"
#include "server/services/keys/key_file.h"
#include "server/services/keys/key_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
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
  const std::string key = add_key(path_, "ci", {"infer:digits", "read"});
  EXPECT_EQ(key.size(), 67U);
  EXPECT_THAT(read_file(path_), Not(HasSubstr(key.substr(3))));
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  KeyFile keys(path_);
  EXPECT_EQ(keys.rows().size(), 1U);
  EXPECT_EQ(keys.find(Digest::of(key))->name, "ci");
  EXPECT_THAT(keys.find(Digest::of(key))->scopes, ElementsAre("infer:digits", "read"));
  EXPECT_FALSE(keys.find(Digest::of(key + "0")));
  EXPECT_FALSE(keys.find(Digest::of("")));
  EXPECT_NE(add_key(path_, "other", {"admin"}), key);
}

TEST_F(Keys, AChangeIsNoticedAtOnce) {
  const std::string first = add_key(path_, "first", {"read"});
  KeyFile keys(path_);
  const std::string second = add_key(path_, "second", {"write"});
  EXPECT_EQ(keys.find(Digest::of(second))->name, "second");
  revoke_key(path_, "first");
  EXPECT_FALSE(keys.find(Digest::of(first)));
  EXPECT_EQ(keys.find(Digest::of(second))->name, "second");
}

/// As Kubernetes changes a mounted secret: the folder's link turns to another folder.
TEST_F(Keys, AFolderThatIsSwappedIsNoticed) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_.path() + "/one");
  fs::create_directory(folder_.path() + "/two");
  const std::string first = add_key(folder_.path() + "/one/keys", "first", {"read"});
  const std::string second = add_key(folder_.path() + "/two/keys", "second", {"read"});
  fs::create_directory_symlink("one", folder_.path() + "/data");
  KeyFile keys(folder_.path() + "/data/keys");
  EXPECT_TRUE(keys.find(Digest::of(first)));
  fs::create_directory_symlink("two", folder_.path() + "/data.new");
  fs::rename(folder_.path() + "/data.new", folder_.path() + "/data");
  EXPECT_FALSE(keys.find(Digest::of(first)));
  EXPECT_TRUE(keys.find(Digest::of(second)));
}

TEST_F(Keys, AFileKeepsTheModeThatItWasGiven) {
  namespace fs = std::filesystem;
  add_key(path_, "first", {"read"});
  const fs::perms shared = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  fs::permissions(path_, shared);
  add_key(path_, "second", {"read"});
  EXPECT_EQ(fs::status(path_).permissions(), shared);
  revoke_key(path_, "first");
  EXPECT_EQ(fs::status(path_).permissions(), shared);
}

TEST_F(Keys, ChangesAtOnceAreNotLost) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([this, i] { add_key(path_, "key" + std::to_string(i), {"read"}); });
  threads.clear();
  EXPECT_EQ(read_keys(path_).size(), 8U);
}

TEST_F(Keys, AFileThatCannotBeUnderstoodLetsNobodyIn) {
  const std::string key = add_key(path_, "ci", {"admin"});
  KeyFile keys(path_);
  const std::string sound = read_file(path_);
  write_file(path_, sound + "half a line\n");
  EXPECT_FALSE(keys.find(Digest::of(key)));
  write_file(path_, sound);
  EXPECT_TRUE(keys.find(Digest::of(key)));
  std::filesystem::remove(path_);
  EXPECT_FALSE(keys.find(Digest::of(key)));
}

TEST_F(Keys, EachChangeOfTheFileIsTold) {
  const std::string key = add_key(path_, "ci", {"admin"});
  KeyFile keys(path_);
  std::vector<std::string> told;
  keys.on_change([&](const Error* error) { told.push_back(error == nullptr ? "ok" : error->message()); });
  const auto ask = [&] { return keys.find(Digest::of(key)).has_value(); };
  EXPECT_TRUE(ask());
  EXPECT_THAT(told, ElementsAre()) << "nothing has changed";
  const std::string sound = read_file(path_);
  write_file(path_, sound + "half a line\n");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(ask());
  EXPECT_THAT(told, ElementsAre(HasSubstr(path_ + ":3")));
  std::filesystem::remove(path_);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(ask());
  EXPECT_THAT(told, ElementsAre(HasSubstr(":3"), HasSubstr(path_)));
  write_file(path_, sound);
  EXPECT_TRUE(ask());
  EXPECT_THAT(told, ElementsAre(HasSubstr(":3"), HasSubstr(path_), "ok"));
}

/// Who may not read the file is given it by a change of its mode, with which its text stays as old as it was.
TEST_F(Keys, AChangeOfModeIsNoticed) {
  const std::string key = add_key(path_, "ci", {"admin"});
  KeyFile keys(path_);
  int told = 0;
  keys.on_change([&](const Error*) { ++told; });
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  EXPECT_TRUE(keys.find(Digest::of(key)));
  EXPECT_EQ(told, 1);
}

TEST_F(Keys, WrongOnesAreRefused) {
  EXPECT_ERROR(KeyFile{path_}, ErrorCode::kNotFound);
  EXPECT_ERROR(add_key(path_, "a b", {"read"}), ErrorCode::kUsage);
  EXPECT_ERROR(add_key(path_, "local", {"read"}), ErrorCode::kUsage);
  EXPECT_ERROR(add_key(path_, "a", {"root"}), ErrorCode::kUsage);
  EXPECT_ERROR(add_key(path_, "a", {"infer:"}), ErrorCode::kUsage);
  EXPECT_ERROR(add_key(path_, "a", {}), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(path_));
  add_key(path_, "a", {"read"});
  EXPECT_ERROR(add_key(path_, "a", {"read"}), ErrorCode::kNameTaken);
  EXPECT_ERROR(revoke_key(path_, "b"), ErrorCode::kNotFound);
  const std::string row = "a read " + Digest::of("k").text() + " now\n";
  for (const std::string& line : {std::string("x read sha256:12 now\n"), std::string("x root sha256:0 now\n"),
                                  std::string("a read\n"), "b read " + Digest::of("k").text() + " now soon\n",
                                  "b read " + Digest::of("k").text() + " now 2030-01-01T00:00:00Z more\n"}) {
    write_file(path_, line);
    EXPECT_ERROR(read_keys(path_), ErrorCode::kUsage);
  }
  write_file(path_, row + "# a comment\n\nb read " + Digest::of("l").text() + " now 2030-01-01T00:00:00Z\n");
  EXPECT_EQ(read_keys(path_).size(), 2U);
  EXPECT_TRUE(read_keys(path_)[1].expires);
  write_file(path_, row + row);
  EXPECT_ERROR(read_keys(path_), ErrorCode::kUsage);
}

class StoreKeys : public Keys {
protected:
  StoreKeys() { boss_ = add_key(path_, "boss", {"admin"}); }
  KeyStore& keys() {
    if (!keys_) keys_.emplace(path_, *catalog_, [this] { return now_; });
    return *keys_;
  }
  void restart() {
    keys_.reset();
    catalog_.reset();
    catalog_.emplace(env_, "/catalog.db");
  }

  int64_t now_ = 1'000'000;
  storage::MemoryEnv env_;
  std::optional<storage::SqliteCatalog> catalog_{std::in_place, env_, "/catalog.db"};
  std::optional<KeyStore> keys_;
  std::string boss_;
};

TEST_F(StoreKeys, TheFileAndTheCatalogBothLetIn) {
  const services::CreatedKey made = keys().create({"ci", {"infer:digits"}, {}});
  EXPECT_EQ(keys().find(boss_).name, "boss");
  EXPECT_EQ(keys().find(made.key).name, "ci");
  EXPECT_THAT(keys().find(made.key).scopes, ElementsAre("infer:digits"));
  EXPECT_EQ(keys().find("tm_x").name, "");
  restart();
  EXPECT_EQ(keys().find(made.key).name, "ci") << "it is durable";
  const auto all = keys().list({});
  ASSERT_EQ(all.items.size(), 2U);
  EXPECT_TRUE(all.items[0].is_of_file);
  EXPECT_FALSE(all.items[1].is_of_file);
  for (const storage::ApiKeyRow& row : catalog_->list_keys()) EXPECT_EQ(row.hash, Digest::of(made.key));
  std::filesystem::remove(path_);
  EXPECT_EQ(keys().find(boss_).name, "");
  EXPECT_EQ(keys().find(made.key).name, "ci") << "a lost file takes its own keys along, no others";
}

TEST_F(StoreKeys, ARevokedOneIsRefusedAtOnceAndForGood) {
  const std::string key = keys().create({"ci", {"read"}, {}}).key;
  keys().revoke("ci");
  EXPECT_EQ(keys().find(key).name, "");
  restart();
  EXPECT_EQ(keys().find(key).name, "");
  EXPECT_ERROR(keys().revoke("ci"), ErrorCode::kNotFound);
  EXPECT_ERROR(keys().revoke("boss"), ErrorCode::kConflict);
  EXPECT_EQ(keys().find(boss_).name, "boss");
}

TEST_F(StoreKeys, NamesAreTakenInBothPlaces) {
  EXPECT_ERROR(keys().create({"boss", {"read"}, {}}), ErrorCode::kNameTaken);
  keys().create({"ci", {"read"}, {}});
  EXPECT_ERROR(keys().create({"ci", {"read"}, {}}), ErrorCode::kNameTaken);
}

TEST_F(StoreKeys, KeysEnd) {
  EXPECT_ERROR(keys().create({"ci", {"read"}, services::Timestamp{now_}}), ErrorCode::kInvalidArgument);
  const std::string key = keys().create({"ci", {"read"}, services::Timestamp{now_ + 10}}).key;
  const std::string filed = add_key(path_, "filed", {"read"}, services::Timestamp{now_ + 20});
  now_ += 9;
  EXPECT_FALSE(keys().find(key).is_expired);
  now_ += 1;
  EXPECT_TRUE(keys().find(key).is_expired);
  EXPECT_FALSE(keys().find(filed).is_expired);
  now_ += 10;
  EXPECT_TRUE(keys().find(filed).is_expired);
}

TEST_F(StoreKeys, ListsHavePages) {
  for (const char* name : {"a", "c", "d"}) keys().create({name, {"read"}, {}});
  services::PageQuery page{2, ""};
  std::vector<std::string> names;
  do {
    const auto found = keys().list(page);
    for (const services::KeyInfo& key : found.items) names.push_back(key.name);
    page.cursor = found.next_cursor;
  } while (!page.cursor.empty());
  EXPECT_THAT(names, ElementsAre("a", "boss", "c", "d"));
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
