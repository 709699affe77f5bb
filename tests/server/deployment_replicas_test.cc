// Deployments that several processes serve: each follows what a request to any of them has changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "tests/outcome.h"
#include "tests/server/store.h"

namespace tensormill::server {
namespace {

using services::DeploymentState;

constexpr int64_t kLease = 3'600'000;

/// One of several processes, with the catalog that all of them have.
class Process {
public:
  Process(OpenStore& store, const std::string& name, std::chrono::milliseconds wait = std::chrono::minutes(1))
      : store_(store), name_(name) {
    begin();
    service.emplace(store.blobs, store.catalog, host,
                    DeploymentOptions{.ready_wait = wait, .build = "b", .replica = name});
    service->adopt();
    service->restore();
  }
  void begin() {
    storage::ReplicaRow row;
    row.id = row.name = name_;
    store_.catalog.begin_replica(row, kLease);
  }
  /// As when it was killed and its lease is over.
  void lose() { store_.catalog.end_replica(name_); }
  services::PutResult put(const std::string& version) { return service->put("d", digits_spec(version), {}); }
  /// The version that answers.
  std::string answers() {
    return result_of<services::RunResult>(
               [&](const auto& done) { service->infer("d", "", {}, {}, {}, done); })
        .version;
  }
  DeploymentState state_of(const std::string& version) {
    for (const auto& one : service->get("d").versions) {
      if (one.version == version) return one.state;
    }
    throw InternalError("no version " + version);
  }

  FakeHost host;
  std::optional<DeploymentServiceImpl> service;

private:
  OpenStore& store_;
  const std::string name_;
};

/// A PUT by way of `process`; meanwhile `other` follows, and both are told of changes, as processes are.
services::PutResult put_with(Process& process, Process& other, const std::string& version) {
  auto done = std::async(std::launch::async, [&] { return process.put(version); });
  while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    other.service->follow();
    process.service->changed_elsewhere();
  }
  return done.get();
}

class DeploymentReplicas : public testing::Test {
protected:
  DeploymentReplicas() : store_(files_) {}
  Store files_;
  OpenStore store_;
};

TEST_F(DeploymentReplicas, APutIsReadyWhenAllWhoLiveHaveIt) {
  Process a(store_, "a"), b(store_, "b");
  services::PutResult put = put_with(a, b, "1");
  EXPECT_TRUE(put.ready);
  EXPECT_TRUE(put.created);
  ASSERT_EQ(put.deployment.replicas.size(), 2U);
  for (const services::ReplicaState& one : put.deployment.replicas)
    EXPECT_EQ(one.state, DeploymentState::kReady);
  EXPECT_EQ(a.answers(), "1");
  EXPECT_EQ(b.answers(), "1");
  put = put_with(b, a, "2");
  EXPECT_FALSE(put.created);
  EXPECT_EQ(a.answers(), "2");
  Process c(store_, "c");
  EXPECT_EQ(c.answers(), "2");
  // One that is lost is not waited for.
  b.lose();
  put = put_with(c, a, "3");
  EXPECT_EQ(put.deployment.replicas.size(), 2U);
  a.service->remove("d", std::nullopt, {});
  c.service->follow();
  EXPECT_FALSE(c.service->has("d"));
}

TEST_F(DeploymentReplicas, WhatServesGoesOnUntilTheNextVersionIsReadyHere) {
  Process a(store_, "a"), b(store_, "b");
  put_with(a, b, "1");
  b.lose();
  a.put("2");
  std::promise<void> open, begun;
  b.host.on_load = [&, gate = open.get_future().share()] {
    begun.set_value();
    gate.wait();
  };
  auto following = std::async(std::launch::async, [&] { b.service->follow(); });
  begun.get_future().wait();
  EXPECT_EQ(b.answers(), "1");
  EXPECT_EQ(b.state_of("2"), DeploymentState::kLoading);
  open.set_value();
  following.get();
  EXPECT_EQ(b.answers(), "2");
}

TEST_F(DeploymentReplicas, WhatCannotBeLoadedInOneIsServedByTheOthers) {
  Process a(store_, "a"), b(store_, "b");
  put_with(a, b, "1");
  b.host.on_load = [] { throw Error(ErrorCode::kInvalidPackage, "not on this machine"); };
  const services::PutResult put = put_with(a, b, "2");
  ASSERT_EQ(put.deployment.replicas.size(), 2U);
  EXPECT_EQ(put.deployment.replicas[0].state, DeploymentState::kReady);
  EXPECT_EQ(put.deployment.replicas[1].state, DeploymentState::kFailed);
  EXPECT_THAT(put.deployment.replicas[1].reason, testing::HasSubstr("not on this machine"));
  EXPECT_EQ(a.answers(), "2");
  EXPECT_EQ(b.answers(), "1") << "what it had";
  // The row says what shall serve, whoever cannot.
  const std::string desired = store_.catalog.find_deployment("d")->desired;
  EXPECT_THAT(desired, testing::Not(testing::HasSubstr("not on this machine")));
}

TEST_F(DeploymentReplicas, WhatANeededStoreKeepsFromLoadingIsTriedAgain) {
  Process a(store_, "a"), b(store_, "b");
  b.lose();
  a.put("1");
  b.host.on_load = [] { throw Error(ErrorCode::kUnavailable, "S3 is away"); };
  b.service->follow();
  EXPECT_EQ(b.state_of("1"), DeploymentState::kLoading);
  b.host.on_load = [] {};
  b.service->follow();
  EXPECT_EQ(b.answers(), "1");
}

TEST_F(DeploymentReplicas, ALoadOfALostOneIsTakenUpAndEndsOnce) {
  Process a(store_, "a", std::chrono::milliseconds(0)), b(store_, "b");
  std::promise<void> open;
  a.host.on_load = [gate = open.get_future().share()] { gate.wait(); };
  EXPECT_FALSE(a.put("1").ready);
  b.service->follow();
  EXPECT_EQ(b.host.loads, 0) << "the one that lives loads it first";
  a.lose();
  b.service->follow();
  EXPECT_EQ(b.answers(), "1");
  // It was only held up, and finds that it has been done.
  open.set_value();
  a.begin();
  while (a.state_of("1") != DeploymentState::kReady) a.service->follow();
  EXPECT_EQ(a.answers(), "1");
}

TEST_F(DeploymentReplicas, OneAtATimeChangesADeployment) {
  Process a(store_, "a"), b(store_, "b");
  std::promise<void> open, begun;
  a.host.on_load = [&, gate = open.get_future().share()] {
    begun.set_value();
    gate.wait();
  };
  auto first = std::async(std::launch::async, [&] { return a.put("1"); });
  begun.get_future().wait();
  EXPECT_ERROR(b.put("2"), ErrorCode::kConflict);
  auto same = std::async(std::launch::async, [&] { return b.put("1"); });
  open.set_value();
  // It finds the load of a, or what came of it.
  while (same.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    for (Process* process : {&a, &b}) {
      process->service->follow();
      process->service->changed_elsewhere();
    }
  }
  EXPECT_TRUE(same.get().ready);
  EXPECT_TRUE(first.get().ready);
  EXPECT_EQ(b.answers(), "1");
}

TEST_F(DeploymentReplicas, WhatIsTakenOutOfMemoryIsSoEverywhere) {
  Process a(store_, "a"), b(store_, "b");
  put_with(a, b, "1");
  b.service->unload("d");
  a.service->follow();
  EXPECT_EQ(a.state_of("1"), DeploymentState::kUnloaded);
  a.service->load("d");
  EXPECT_EQ(a.answers(), "1");
  b.service->follow();
  EXPECT_EQ(b.answers(), "1");
}

}  // namespace
}  // namespace tensormill::server
