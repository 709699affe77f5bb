// Where and when versions are loaded: on demand, by labels, and who answers for what is not here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "tests/outcome.h"
#include "tests/server/store.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::placement_test {
namespace {

using services::DeploymentState;
using std::chrono::steady_clock;

constexpr int kIdle = 60;

services::DeploymentSpec on_demand(const std::string& version = "1") {
  services::DeploymentSpec spec = digits_spec(version);
  spec.placement.mode = "demand";
  spec.placement.idle_s = kIdle;
  return spec;
}

services::DeploymentSpec with_label(const std::string& label) {
  services::DeploymentSpec spec = digits_spec();
  spec.placement.mode = "labels";
  spec.placement.labels = {label};
  return spec;
}

DeploymentState state_of(DeploymentServiceImpl& service, const std::string& name = "d") {
  return service.get(name).versions.at(0).state;
}

std::string answer_of(DeploymentServiceImpl& service, const std::string& name = "d") {
  service.admit(name, "");
  return result_of<services::RunResult>([&](const auto& done) { service.infer(name, "", {}, {}, {}, done); })
      .version;
}

class OnDemand : public testing::Test {
protected:
  OnDemand() : open_(std::in_place, store_) { start(); }
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
  void idle() { service_->rest_idle(steady_clock::now() + std::chrono::seconds(kIdle)); }

  Store store_;
  FakeHost host_;
  std::optional<OpenStore> open_;
  std::optional<DeploymentServiceImpl> service_;
};

TEST_F(OnDemand, WhatIsIdleGoesAndTheNextRequestBringsItBack) {
  EXPECT_TRUE(service_->put("d", on_demand(), {}).ready);
  EXPECT_EQ(host_.loads, 1) << "a PUT shows that it can be loaded";
  service_->rest_idle(steady_clock::now());
  EXPECT_EQ(state_of(*service_), DeploymentState::kReady) << "not idle yet";
  idle();
  EXPECT_EQ(state_of(*service_), DeploymentState::kUnloaded);
  const services::Deployment shown = service_->get("d");
  EXPECT_EQ(shown.default_version, "1");
  EXPECT_EQ(shown.inputs.at(0).name, "image") << "as it was when it was loaded";
  EXPECT_EQ(answer_of(*service_), "1");
  EXPECT_EQ(host_.loads, 2);
  EXPECT_EQ(answer_of(*service_), "1");
  EXPECT_EQ(host_.loads, 2);
  EXPECT_EQ(state_of(*service_), DeploymentState::kReady);
}

TEST_F(OnDemand, AStartLoadsNothing) {
  service_->put("d", on_demand(), {});
  restart();
  EXPECT_EQ(host_.loads, 1);
  EXPECT_EQ(state_of(*service_), DeploymentState::kUnloaded);
  EXPECT_EQ(answer_of(*service_), "1");
  EXPECT_EQ(host_.loads, 2);
}

TEST_F(OnDemand, WhatSomebodyUnloadedStaysOut) {
  service_->put("d", on_demand(), {});
  service_->unload("d");
  EXPECT_ERROR(answer_of(*service_), ErrorCode::kUnavailable);
  restart();
  EXPECT_ERROR(answer_of(*service_), ErrorCode::kUnavailable);
  EXPECT_EQ(host_.loads, 1);
  service_->load("d");
  EXPECT_EQ(answer_of(*service_), "1");
}

TEST_F(OnDemand, ARequestHearsWhyItCannotBeLoadedAndTheNextOneTriesAgain) {
  service_->put("d", on_demand(), {});
  idle();
  host_.on_load = [] { throw Error(ErrorCode::kIo, "the disk is away"); };
  EXPECT_ERROR(answer_of(*service_), ErrorCode::kUnavailable);
  EXPECT_THAT(service_->get("d").versions.at(0).reason, testing::HasSubstr("the disk is away"));
  host_.on_load = [] {};
  EXPECT_EQ(answer_of(*service_), "1");
}

TEST_F(OnDemand, MemoryIsTakenFromWhatWasUsedLeastLately) {
  for (const std::string name : {"a", "b", "c"}) service_->put(name, on_demand(), {});
  answer_of(*service_, "a");
  service_->rest_idle(steady_clock::now());
  int refusals = 1;
  host_.on_load = [&] {
    if (refusals-- > 0) throw Error(ErrorCode::kMemoryBudget, "no room");
  };
  EXPECT_TRUE(service_->put("d", on_demand(), {}).ready);
  EXPECT_EQ(state_of(*service_, "a"), DeploymentState::kReady);
  EXPECT_EQ(state_of(*service_, "b"), DeploymentState::kUnloaded);
  EXPECT_EQ(state_of(*service_, "c"), DeploymentState::kReady);
  // What is not on demand takes room, and gives none.
  services::DeploymentSpec always = on_demand();
  always.placement = {};
  refusals = 1;
  EXPECT_TRUE(service_->put("e", always, {}).ready);
  refusals = 100;
  EXPECT_ERROR(service_->put("f", always, {}), ErrorCode::kMemoryBudget);
  for (const std::string name : {"a", "b", "c", "d"})
    EXPECT_EQ(state_of(*service_, name), DeploymentState::kUnloaded) << name;
  EXPECT_EQ(state_of(*service_, "e"), DeploymentState::kReady);
}

TEST_F(OnDemand, ManyWhoWaitForOneLoadAreOneLoad) {
  service_->put("d", on_demand(), {});
  idle();
  std::promise<void> begun, open;
  host_.on_load = [&, gate = open.get_future().share()] {
    begun.set_value();
    gate.wait();
  };
  auto first = std::async(std::launch::async, [&] { return answer_of(*service_); });
  begun.get_future().wait();
  auto second = std::async(std::launch::async, [&] { return answer_of(*service_); });
  open.set_value();
  EXPECT_EQ(first.get(), "1");
  EXPECT_EQ(second.get(), "1");
  EXPECT_EQ(host_.loads, 2);
}

TEST_F(OnDemand, AServerAloneHasItsOwnLabelsOnly) {
  EXPECT_ERROR(service_->put("d", with_label("zone=a"), {}), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(service_->has("d"));
}

/// One of several processes.
class Process {
public:
  Process(OpenStore& store, const std::string& name, std::vector<std::string> labels) {
    storage::ReplicaRow row;
    row.id = row.name = name;
    row.address = "https://" + name;
    store.catalog.begin_replica(row, 3'600'000);
    service.emplace(store.blobs, store.catalog, host,
                    DeploymentOptions{.build = "b", .replica = name, .labels = std::move(labels)});
    service->adopt();
  }
  FakeHost host;
  std::optional<DeploymentServiceImpl> service;
};

class Placement : public testing::Test {
protected:
  Placement() : store_(files_) {}
  services::PutResult put_with(Process& process, Process& other, const services::DeploymentSpec& spec) {
    auto done = std::async(std::launch::async, [&] { return process.service->put("d", spec, {}); });
    while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      other.service->follow();
      process.service->follow();
      process.service->changed_elsewhere();
    }
    return done.get();
  }
  Store files_;
  OpenStore store_;
};

TEST_F(Placement, SequencesAreAnsweredByOneOfThoseThatHaveThem) {
  std::optional<Process> a(std::in_place, store_, "a", std::vector<std::string>());
  Process b(store_, "b", {}), c(store_, "c", {"zone=c"});
  for (Process* one : {&*a, &b, &c}) one->service->follow();
  services::DeploymentSpec spec = digits_spec();
  spec.sequence.emplace();
  auto done = std::async(std::launch::async, [&] { return b.service->put("d", spec, {}); });
  while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    for (Process* one : {&*a, &b, &c}) one->service->follow();
    b.service->changed_elsewhere();
  }
  EXPECT_TRUE(done.get().ready);
  EXPECT_TRUE(a->service->elsewhere("d", "").empty()) << "the first by name";
  EXPECT_EQ(b.service->elsewhere("d", ""), std::vector<std::string>{"https://a"});
  EXPECT_EQ(c.service->elsewhere("d", "1"), std::vector<std::string>{"https://a"});
  EXPECT_ERROR(answer_of(*b.service), ErrorCode::kInvalidArgument);  // which sequence
}

TEST_F(Placement, WhatIsNotKnownYetIsNotMissing) {
  Process a(store_, "a", {});
  EXPECT_ERROR(a.service->get("d"), ErrorCode::kUnavailable);
  EXPECT_ERROR(a.service->admit("d", ""), ErrorCode::kUnavailable);
  EXPECT_ERROR(a.service->list({}), ErrorCode::kUnavailable);
  a.service->follow();
  EXPECT_TRUE(a.service->list({}).items.empty());
  EXPECT_ERROR(a.service->get("d"), ErrorCode::kNotFound);
}

TEST_F(Placement, ByLabelsItIsLoadedWhereTheyAreAndOthersSayWhereThatIs) {
  Process a(store_, "a", {"zone=a"}), b(store_, "b", {"zone=b", "disk=fast"});
  a.service->follow();
  b.service->follow();
  const services::PutResult put = put_with(a, b, with_label("zone=b"));
  EXPECT_TRUE(put.ready);
  EXPECT_EQ(a.host.loads, 0);
  EXPECT_EQ(b.host.loads, 1);
  ASSERT_EQ(put.deployment.replicas.size(), 2U);
  EXPECT_EQ(put.deployment.replicas[0].state, DeploymentState::kUnloaded);
  EXPECT_THAT(put.deployment.replicas[0].reason, testing::HasSubstr("by labels"));
  EXPECT_EQ(put.deployment.replicas[1].state, DeploymentState::kReady);
  EXPECT_ERROR(answer_of(*a.service), ErrorCode::kUnavailable);
  EXPECT_EQ(answer_of(*b.service), "1");
  EXPECT_EQ(a.service->elsewhere("d", ""), std::vector<std::string>{"https://b"});
  EXPECT_EQ(a.service->elsewhere("d", "1"), std::vector<std::string>{"https://b"});
  EXPECT_TRUE(a.service->elsewhere("d", "2").empty());
  EXPECT_TRUE(a.service->elsewhere("other", "").empty());
  EXPECT_TRUE(b.service->elsewhere("d", "").empty()) << "it answers itself";
  // The row says that it shall serve.
  EXPECT_THAT(store_.catalog.find_deployment("d")->desired,
              testing::Not(testing::HasSubstr("\"unloaded\":true")));
}

TEST_F(Placement, OfManyThatRestEachIsToldOnceAndAnotherRunHasNothingToTell) {
  constexpr size_t kMany = 1'001;  // more than are told at once
  {
    Process a(store_, "a", {}), b(store_, "b", {"zone=b"});
    a.service->follow();
    b.service->follow();
    put_with(a, b, with_label("zone=b"));
  }
  storage::DeploymentRow row = *store_.catalog.find_deployment("d");
  for (size_t i = 1; i < kMany; ++i) {
    row.name = "d" + std::to_string(i);
    store_.catalog.put_deployment(row);
  }
  Process a(store_, "a", {});
  a.service->follow();
  EXPECT_EQ(a.host.loads, 0);
  const std::vector<storage::ObservedRow> told = store_.catalog.observed_by("a");
  EXPECT_EQ(told.size(), kMany);
  for (const storage::ObservedRow& one : told)
    EXPECT_THAT(one.state, testing::HasSubstr("placed on other replicas")) << one.deployment;
  Process next(store_, "a", {});
  const auto written = [&] { return storage::read_all(files_.env, files_.root + "/catalog.db-wal"); };
  const std::string before = written();
  ASSERT_FALSE(before.empty());
  next.service->follow();
  EXPECT_EQ(next.service->get("d7").versions.at(0).state, DeploymentState::kUnloaded);
  EXPECT_TRUE(written() == before);
}

TEST_F(Placement, OnDemandEachLoadsWhenItIsAsked) {
  Process a(store_, "a", {}), b(store_, "b", {});
  a.service->follow();
  b.service->follow();
  EXPECT_TRUE(put_with(a, b, on_demand()).ready);
  EXPECT_EQ(b.host.loads, 0);
  EXPECT_TRUE(b.service->elsewhere("d", "").empty());
  EXPECT_EQ(answer_of(*b.service), "1");
  EXPECT_EQ(b.host.loads, 1);
  a.service->rest_idle(steady_clock::now() + std::chrono::seconds(kIdle));
  EXPECT_EQ(state_of(*a.service), DeploymentState::kUnloaded);
  b.service->follow();
  EXPECT_EQ(state_of(*b.service), DeploymentState::kReady);
}

}  // namespace
}  // namespace tensormill::server::placement_test
