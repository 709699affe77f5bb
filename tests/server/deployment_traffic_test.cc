// Which version of a deployment answers: weights, their change, and the way back.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "server/services/deployments/traffic_split.h"
#include "tests/outcome.h"
#include "tests/server/store.h"

namespace tensormill::server {
namespace {

using services::DeploymentState;
using services::VersionWeights;
using Counts = std::map<std::string, int>;

TEST(TrafficSplit, EachVersionHasItsPartOfAnySuccessiveRequests) {
  for (const VersionWeights& weights :
       {VersionWeights{{1, 1}}, VersionWeights{{1, 1}, {2, 1}}, VersionWeights{{1, 9}, {2, 1}},
        VersionWeights{{1, 0}, {2, 7}}, VersionWeights{{3, 50}, {7, 30}, {10, 20}},
        VersionWeights{{1, 1000}, {2, 999}, {3, 1}}}) {
    const int sum = std::accumulate(weights.begin(), weights.end(), 0,
                                    [](int all, const auto& one) { return all + one.second; });
    for (const uint64_t start : {uint64_t{0}, uint64_t{1}, uint64_t{12345}, ~uint64_t{0} / 2}) {
      VersionWeights had;
      for (const auto& [version, weight] : weights) had[version] = 0;
      for (int i = 0; i < sum; ++i) ++had[version_at(weights, start + static_cast<uint64_t>(i))];
      EXPECT_EQ(had, weights) << start;
    }
  }
  // They alternate: no three successive requests are of one.
  int longest = 0, row = 0;
  for (uint64_t turn = 0; turn < 100; ++turn) {
    row = version_at({{1, 50}, {2, 50}}, turn) == 2 ? row + 1 : 0;
    longest = std::max(longest, row);
  }
  EXPECT_LE(longest, 2);
}

class DeploymentTraffic : public testing::Test {
protected:
  DeploymentTraffic() : open_(std::in_place, store_) { start(); }
  void start() {
    service_.emplace(open_->blobs, open_->catalog, host_, DeploymentOptions{.build = "b"});
    service_->adopt();
    service_->restore();
  }
  void restart() {
    service_.reset();
    open_.reset();
    open_.emplace(store_);
    start();
  }
  static services::DeploymentSpec spec_of(int version, int keep, const VersionWeights& weights = {}) {
    services::DeploymentSpec spec = digits_spec(std::to_string(version));
    spec.keep_versions = keep;
    spec.weights = weights;
    return spec;
  }
  services::Deployment put(int version, int keep, const VersionWeights& weights = {}) {
    return service_->put("d", spec_of(version, keep, weights), {}).deployment;
  }
  /// The versions that answer so many requests.
  Counts answers(int requests) {
    Counts counts;
    for (int i = 0; i < requests; ++i) {
      service_->admit("d", "");
      ++counts[result_of<services::RunResult>([&](const auto& done) {
                 service_->infer("d", "", {}, {}, {}, done);
               }).version];
    }
    return counts;
  }

  Store store_;
  FakeHost host_;
  std::optional<OpenStore> open_;
  std::optional<DeploymentServiceImpl> service_;
};

TEST_F(DeploymentTraffic, RequestsAreSpreadByWeights) {
  put(1, 1);
  const services::Deployment both = put(2, 2, {{1, 3}, {2, 1}});
  EXPECT_EQ(both.default_version, "1") << "which has most";
  EXPECT_EQ(both.weights, (VersionWeights{{1, 3}, {2, 1}}));
  EXPECT_EQ(answers(8), (Counts{{"1", 6}, {"2", 2}}));
  EXPECT_EQ(service_->set_weights("d", {{1, 1}, {2, 4}}, {}).deployment.default_version, "2");
  EXPECT_EQ(answers(5), (Counts{{"1", 1}, {"2", 4}}));
  // A named version is that one, and counts for nothing.
  EXPECT_EQ(result_of<services::RunResult>([&](const auto& done) {
              service_->infer("d", "1", {}, {}, {}, done);
            }).version,
            "1");
  EXPECT_EQ(answers(5), (Counts{{"1", 1}, {"2", 4}}));
  restart();
  EXPECT_EQ(answers(5), (Counts{{"1", 1}, {"2", 4}})) << "durable";
  const services::Deployment one = service_->set_weights("d", {{1, 0}, {2, 5}}, {}).deployment;
  EXPECT_TRUE(one.weights.empty());
  EXPECT_EQ(one.default_version, "2");
  EXPECT_EQ(answers(3), (Counts{{"2", 3}}));
  EXPECT_EQ(one.previous_version, "1") << "the last that had all";
}

TEST_F(DeploymentTraffic, APutWithoutWeightsHasAllAndLoadsNothingThatIsThere) {
  put(1, 2);
  put(2, 2, {{1, 1}, {2, 1}});
  const int loads = host_.loads;
  const services::Deployment all = put(2, 2);
  EXPECT_TRUE(all.weights.empty());
  EXPECT_EQ(all.default_version, "2");
  EXPECT_EQ(put(1, 2).default_version, "1");
  EXPECT_EQ(host_.loads, loads);
  EXPECT_EQ(answers(2), (Counts{{"1", 2}}));
}

TEST_F(DeploymentTraffic, WhatIsKeptIsWhatServes) {
  put(1, 3);
  put(2, 3);
  put(3, 3, {{1, 9}, {3, 1}});
  // Two are kept: the oldest has a part, so the one without goes.
  const services::Deployment kept = put(4, 2, {{1, 9}, {4, 1}});
  ASSERT_EQ(kept.versions.size(), 2U);
  EXPECT_EQ(kept.versions[0].version, "1");
  EXPECT_EQ(kept.versions[1].version, "4");
}

TEST_F(DeploymentTraffic, OneCallGoesBack) {
  EXPECT_ERROR(service_->rollback("d", {}), ErrorCode::kNotFound);
  EXPECT_EQ(put(1, 1).previous_version, "");
  EXPECT_ERROR(service_->rollback("d", {}), ErrorCode::kConflict);
  EXPECT_EQ(put(2, 1).previous_version, "1");
  restart();
  // The version before is gone, and is loaded again.
  const services::PutResult back = service_->rollback("d", {});
  EXPECT_TRUE(back.ready);
  EXPECT_EQ(back.deployment.default_version, "1");
  EXPECT_EQ(back.deployment.previous_version, "2");
  EXPECT_EQ(answers(1), (Counts{{"1", 1}}));
  EXPECT_EQ(service_->rollback("d", {}).deployment.default_version, "2");
  // From a trial, all go back to who had all; the trial is not what was before.
  put(3, 2, {{2, 1}, {3, 9}});
  const int loads = host_.loads;
  const services::Deployment after = service_->rollback("d", {}).deployment;
  EXPECT_EQ(after.default_version, "2");
  EXPECT_TRUE(after.weights.empty());
  EXPECT_EQ(host_.loads, loads) << "it was there";
  EXPECT_EQ(answers(2), (Counts{{"2", 2}}));
  EXPECT_NE(after.previous_version, "3");
}

services::CallContext with_key(const std::string& key) {
  services::CallContext context;
  context.submitter = "alice";
  context.idempotency_key = key;
  return context;
}

TEST_F(DeploymentTraffic, ARepeatGoesBackOnce) {
  put(1, 2);
  put(2, 2);
  // Versions that are loaded, and below one that is to be loaded.
  EXPECT_EQ(service_->rollback("d", with_key("k")).deployment.default_version, "1");
  restart();
  const services::PutResult again = service_->rollback("d", with_key("k"));
  EXPECT_TRUE(again.ready && !again.created);
  EXPECT_EQ(again.deployment.default_version, "1");
  EXPECT_EQ(again.deployment.previous_version, "2");
  EXPECT_EQ(service_->rollback("d", with_key("k")).deployment.default_version, "1");
  put(3, 1);
  EXPECT_EQ(service_->rollback("d", with_key("k2")).deployment.default_version, "1") << "loaded again";
  restart();
  EXPECT_EQ(service_->rollback("d", with_key("k2")).deployment.default_version, "1");
  EXPECT_EQ(service_->rollback("d", with_key("k3")).deployment.default_version, "3") << "another request";
  EXPECT_EQ(service_->rollback("d", {}).deployment.default_version, "1") << "without a key each is one";
}

TEST_F(DeploymentTraffic, WhatFailedMayBeTriedAgainWithItsKey) {
  put(1, 1);
  put(2, 1);
  host_.on_load = [] { throw Error(ErrorCode::kMemoryBudget, "load: no room"); };
  EXPECT_ERROR(service_->rollback("d", with_key("k")), ErrorCode::kMemoryBudget);
  host_.on_load = [] {};
  EXPECT_EQ(service_->rollback("d", with_key("k")).deployment.default_version, "1");
}

TEST_F(DeploymentTraffic, ARepeatAfterACrashWithinTheLoadGoesBackOnce) {
  put(1, 1);
  put(2, 1);
  std::promise<void> begun, go;
  host_.on_load = [&] {
    begun.set_value();
    go.get_future().wait();
  };
  auto first = std::async(std::launch::async, [&] { return service_->rollback("d", with_key("k")); });
  begun.get_future().wait();
  // What a process that ends here leaves.
  const std::string left = store_.folder.path() + "/left";
  std::filesystem::copy(store_.root, left, std::filesystem::copy_options::recursive);
  go.set_value();
  first.get();
  host_.on_load = [] {};
  store_.root = left;
  restart();
  EXPECT_EQ(service_->get("d").default_version, "1") << "the next process ends the load";
  EXPECT_EQ(service_->rollback("d", with_key("k")).deployment.default_version, "1");
  EXPECT_EQ(answers(1), (Counts{{"1", 1}}));
}

TEST_F(DeploymentTraffic, AFailedLoadMovesNothing) {
  put(1, 2);
  put(2, 2, {{1, 1}, {2, 1}});
  host_.on_load = [] { throw Error(ErrorCode::kCpuFeatureMissing, "load: +avx9"); };
  EXPECT_ERROR(put(3, 3), ErrorCode::kCpuFeatureMissing);
  EXPECT_EQ(answers(4), (Counts{{"1", 2}, {"2", 2}}));
}

TEST_F(DeploymentTraffic, AFullQueueIsNotEveryones) {
  put(1, 2);
  put(2, 2, {{1, 1}, {2, 1}});
  int asked = 0;
  host_.on_admit = [&] {
    if (++asked == 1) throw Error(ErrorCode::kUnavailable, "the queue is full");
  };
  EXPECT_NE(service_->admit("d", ""), nullptr);
  host_.on_admit = [] { throw Error(ErrorCode::kUnavailable, "the queue is full"); };
  EXPECT_ERROR(service_->admit("d", ""), ErrorCode::kUnavailable);
}

TEST_F(DeploymentTraffic, WhatCannotBeIsRefused) {
  EXPECT_ERROR(service_->set_weights("d", {{1, 1}}, {}), ErrorCode::kNotFound);
  EXPECT_ERROR(put(1, 1, {{2, 1}}), ErrorCode::kInvalidArgument);
  put(1, 2);
  EXPECT_ERROR(service_->set_weights("d", {{1, 1}, {2, 1}}, {}), ErrorCode::kInvalidArgument);
  EXPECT_ERROR(put(2, 1, {{1, 1}, {2, 1}}), ErrorCode::kInvalidArgument);  // one is kept
  put(2, 2, {{1, 1}, {2, 1}});
  EXPECT_ERROR(service_->remove("d", "1", {}), ErrorCode::kInUse);
  service_->unload("d");
  EXPECT_ERROR(service_->set_weights("d", {{1, 1}, {2, 3}}, {}), ErrorCode::kConflict);
  service_->load("d");
  EXPECT_EQ(answers(2), (Counts{{"1", 1}, {"2", 1}})) << "as before it was unloaded";
}

}  // namespace
}  // namespace tensormill::server
