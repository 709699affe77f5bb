// Deployments: loading beside what serves, failures, and what the next process makes of it.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "runtime/base/error.h"
#include "server/services/deployments/metered.h"
#include "tests/outcome.h"
#include "tests/server/store.h"

namespace tensormill::server {
namespace {

using services::DeploymentState;

services::DeploymentSpec spec_of(const std::string& version = "1", int keep = 1) {
  services::DeploymentSpec spec = digits_spec(version);
  spec.keep_versions = keep;
  return spec;
}

/// The state of a version that is shown.
DeploymentState state_of(DeploymentServiceImpl& service, const std::string& version) {
  for (const auto& one : service.get("d").versions) {
    if (one.version == version) return one.state;
  }
  throw InternalError("no version " + version);
}

std::string mark_path(const Store& store) { return store.root + "/loading.crash"; }

/// A door that loads wait at.
class Gate {
public:
  void open() { opened_.set_value(); }
  void wait() { future_.wait(); }

private:
  std::promise<void> opened_;
  std::shared_future<void> future_{opened_.get_future()};
};

class Deployments : public testing::Test {
protected:
  Deployments() : open_(std::in_place, store_) {}
  DeploymentServiceImpl& service(std::chrono::milliseconds wait = std::chrono::minutes(1)) {
    mark_ = std::make_unique<CrashMark>(mark_path(store_));
    service_.emplace(
        open_->blobs, open_->catalog, host_,
        DeploymentOptions{.ready_wait = wait, .max_loads = 2, .crash_mark = mark_.get(), .build = build_});
    return *service_;
  }
  void close() {
    service_.reset();
    mark_.reset();
    open_.reset();
  }
  /// The next process on this store.
  DeploymentServiceImpl& restarted() {
    close();
    open_.emplace(store_);
    service();
    service_->adopt();
    service_->restore();
    return *service_;
  }
  std::string answering_version(const std::string& version = "") {
    return result_of<services::RunResult>(
               [&](const auto& done) { service_->infer("d", version, {}, {}, {}, done); })
        .version;
  }

  Store store_;
  std::optional<OpenStore> open_;
  FakeHost host_;
  std::string build_ = "one";
  std::unique_ptr<CrashMark> mark_;
  std::optional<DeploymentServiceImpl> service_;
};

TEST_F(Deployments, APutWaitsUntilItServes) {
  DeploymentServiceImpl& deployments = service();
  const services::PutResult first = deployments.put("d", spec_of(), {});
  EXPECT_TRUE(first.created && first.ready);
  EXPECT_EQ(first.deployment.default_version, "1");
  EXPECT_EQ(first.deployment.inputs.at(0).name, "image");
  const services::PutResult same = deployments.put("d", spec_of(), {});
  EXPECT_TRUE(same.ready && !same.created);
  EXPECT_EQ(host_.loads, 1) << "the same again loads nothing";
  EXPECT_EQ(answering_version(), "1");
}

/// A PNG's beginning, as far as sizes are read from it; there are no pixels.
std::string png_of(uint32_t width, uint32_t height) {
  std::string file("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16);
  for (const uint32_t side : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(side >> shift & 0xff);
  return file + std::string("\x08\x02\0\0\0", 5);
}

TEST_F(Deployments, APictureIsDecodedOnlyForARequestThatIsTakenInMemoryThatIsThere) {
  DeploymentServiceImpl& deployments = service();
  deployments.put("d", spec_of(), {});
  services::CallContext context;
  const auto classify = [&](const std::string& file) {
    result_of<services::ClassifyResult>(
        [&](const auto& done) { deployments.classify("d", file, 5, context, done); });
  };
  EXPECT_ERROR(classify(png_of(7000, 7000)), ErrorCode::kInvalidImage);
  EXPECT_ERROR(classify(png_of(7100, 7100)), ErrorCode::kInvalidImage);
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", uint64_t{100} << 20);
  context.memory = std::make_shared<MemoryShare>(budget);
  EXPECT_ERROR(classify(png_of(7000, 7000)), ErrorCode::kTooLarge);
  EXPECT_ERROR(classify(png_of(3000, 3000)), ErrorCode::kInvalidImage);
  MemoryShare others(budget);
  others.take(uint64_t{90} << 20);
  EXPECT_ERROR(classify(png_of(3000, 3000)), ErrorCode::kUnavailable);
  EXPECT_EQ(budget->used(), uint64_t{90} << 20) << "given back when it failed";
  host_.on_admit = [] { throw Error(ErrorCode::kUnavailable, "the queue is full"); };
  EXPECT_ERROR(classify("no picture at all"), ErrorCode::kUnavailable);
}

TEST_F(Deployments, FilesOfPicturesAreTakenAsOneToClassifyIs) {
  DeploymentServiceImpl& deployments = service();
  deployments.put("d", spec_of(), {});
  services::CallContext context;
  const auto infer = [&](const std::vector<std::string>& files) {
    services::PictureFiles pictures{"image", {files.begin(), files.end()}, nullptr};
    result_of<services::RunResult>(
        [&](const auto& done) { deployments.infer_pictures("d", "", pictures, {}, context, done); });
  };
  EXPECT_FALSE(deployments.takes_pictures("d", "") || deployments.takes_pictures("none", ""));
  EXPECT_ERROR(infer({png_of(28, 28)}), ErrorCode::kInvalidTensor);
  services::DeploymentSpec encoded = spec_of("2");
  encoded.preprocess.emplace().encoded = true;
  EXPECT_TRUE(deployments.put("d", encoded, {}).deployment.versions.back().takes_pictures);
  EXPECT_TRUE(deployments.takes_pictures("d", ""));
  EXPECT_FALSE(deployments.is_quick("d")) << "decoding takes its time";
  EXPECT_ERROR(infer({png_of(28, 28)}), ErrorCode::kInvalidImage);
  EXPECT_ERROR(infer({}), ErrorCode::kInvalidTensor);
  EXPECT_ERROR(infer({png_of(28, 28), png_of(28, 28)}), ErrorCode::kInvalidTensor);
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", uint64_t{100} << 20);
  context.memory = std::make_shared<MemoryShare>(budget);
  EXPECT_ERROR(infer({png_of(7000, 7000)}), ErrorCode::kTooLarge);
  EXPECT_EQ(budget->used(), 0u);
  host_.on_admit = [] { throw Error(ErrorCode::kUnavailable, "the queue is full"); };
  EXPECT_ERROR(infer({"no picture at all"}), ErrorCode::kUnavailable);
  encoded.version = "3";
  encoded.sequence.emplace();
  EXPECT_ERROR(deployments.put("d", encoded, {}), ErrorCode::kInvalidArgument);
}

TEST_F(Deployments, TheQueueIsAskedBeforeThereAreInputs) {
  DeploymentServiceImpl& deployments = service();
  EXPECT_ERROR(deployments.admit("d", ""), ErrorCode::kNotFound);
  deployments.put("d", spec_of(), {});
  EXPECT_NE(deployments.admit("d", ""), nullptr);
  EXPECT_ERROR(deployments.admit("d", "9"), ErrorCode::kNotFound);
  host_.on_admit = [] { throw Error(ErrorCode::kUnavailable, "the queue is full"); };
  metrics::Registry registry;
  MeteredDeployments metered(deployments, registry);
  EXPECT_ERROR(metered.admit("d", "1"), ErrorCode::kUnavailable);
  const std::string refused = "infer_requests_total{model=\"d\",version=\"\",outcome=\"unavailable\"} 1";
  EXPECT_NE(registry.text().find(refused), std::string::npos) << registry.text();
}

TEST_F(Deployments, ALongLoadIsAnsweredBeforeItsEndAndHoldsNobodyUp) {
  Gate gate;
  DeploymentServiceImpl& deployments = service(std::chrono::milliseconds(1));
  host_.on_load = [&] { gate.wait(); };
  const services::PutResult put = deployments.put("d", spec_of(), {});
  EXPECT_TRUE(put.created && !put.ready);
  EXPECT_EQ(state_of(deployments, "1"), DeploymentState::kLoading);
  EXPECT_EQ(deployments.list({}).items.size(), 1U);
  EXPECT_ERROR(answering_version(), ErrorCode::kUnavailable);
  EXPECT_ERROR(deployments.put("d", spec_of("2"), {}), ErrorCode::kConflict);
  EXPECT_FALSE(deployments.put("d", spec_of(), {}).ready) << "the same joins the load";
  EXPECT_FALSE(deployments.put("e", spec_of(), {}).ready);
  EXPECT_ERROR(deployments.put("f", spec_of(), {}), ErrorCode::kUnavailable);  // two load
  gate.open();
  while (state_of(deployments, "1") == DeploymentState::kLoading) std::this_thread::yield();
  EXPECT_EQ(answering_version(), "1");
  while (host_.loads < 2) std::this_thread::yield();  // the load of e may begin later
  EXPECT_EQ(host_.loads, 2);
}

TEST_F(Deployments, AFailureIsToldAndLeavesWhatServes) {
  DeploymentServiceImpl& deployments = service();
  deployments.put("d", spec_of("1"), {});
  host_.on_load = [] { throw Error(ErrorCode::kCpuFeatureMissing, "load: +avx9"); };
  EXPECT_ERROR(deployments.put("d", spec_of("2"), {}), ErrorCode::kCpuFeatureMissing);
  EXPECT_ERROR(deployments.put("new", spec_of(), {}), ErrorCode::kCpuFeatureMissing);
  EXPECT_ERROR(deployments.get("new"), ErrorCode::kNotFound);
  EXPECT_EQ(deployments.get("d").versions.size(), 1U);
  EXPECT_EQ(answering_version(), "1");
  host_.on_load = [] {};
  EXPECT_EQ(restarted().get("d").versions.size(), 1U);
  EXPECT_EQ(answering_version(), "1");
}

TEST_F(Deployments, AWarmUpThatRunsOutOfTimeIsThePackagesFault) {
  host_.on_load = [] { throw Error(ErrorCode::kDeadlineExceeded, "warm-up: too slow"); };
  EXPECT_ERROR(service().put("d", spec_of(), {}), ErrorCode::kInvalidPackage);
}

TEST_F(Deployments, AFailureAfterTheAnswerIsKeptWithItsReason) {
  Gate gate;
  DeploymentServiceImpl& deployments = service(std::chrono::milliseconds(1));
  deployments.put("d", spec_of("1"), {});
  while (deployments.get("d").default_version.empty()) std::this_thread::yield();
  host_.on_load = [&] {
    gate.wait();
    throw Error(ErrorCode::kMemoryBudget, "bind: too large");
  };
  EXPECT_FALSE(deployments.put("d", spec_of("2", 2), {}).ready);
  EXPECT_EQ(answering_version(), "1");
  gate.open();
  while (state_of(deployments, "2") == DeploymentState::kLoading) std::this_thread::yield();
  const services::Deployment after = deployments.get("d");
  EXPECT_EQ(after.versions.at(1).state, DeploymentState::kFailed);
  EXPECT_EQ(after.versions.at(1).reason, "bind: too large");
  EXPECT_EQ(after.default_version, "1");
  EXPECT_ERROR(answering_version("2"), ErrorCode::kUnavailable);
  const int loads = host_.loads;
  host_.on_load = [] {};
  EXPECT_EQ(state_of(restarted(), "2"), DeploymentState::kFailed);
  EXPECT_EQ(host_.loads, loads + 1) << "what failed is not tried again by itself";
}

TEST_F(Deployments, TheDefaultMovesAndOlderVersionsGo) {
  DeploymentServiceImpl& deployments = service();
  deployments.put("d", spec_of("3", 2), {});
  deployments.put("d", spec_of("5", 2), {});
  EXPECT_EQ(answering_version(), "5");
  EXPECT_EQ(answering_version("3"), "3");
  EXPECT_ERROR(deployments.remove("d", "5", {}), ErrorCode::kInUse);
  deployments.put("d", spec_of("4", 2), {});
  EXPECT_EQ(answering_version(), "4");
  EXPECT_ERROR(answering_version("3"), ErrorCode::kNotFound);
  EXPECT_EQ(answering_version("5"), "5");
  restarted();
  EXPECT_EQ(answering_version(), "4");
  service_->remove("d", "5", {});
  service_->remove("d", "4", {});
  EXPECT_ERROR(service_->get("d"), ErrorCode::kNotFound);
  EXPECT_TRUE(open_->catalog.list_deployments().empty());
}

TEST_F(Deployments, OneThatIsRemovedWhileItLoadsStaysRemoved) {
  Gate entered, gate;
  DeploymentServiceImpl& deployments = service();
  host_.on_load = [&] {
    entered.open();
    gate.wait();
  };
  auto put = std::async(std::launch::async, [&] { deployments.put("d", spec_of(), {}); });
  entered.wait();
  deployments.remove("d", std::nullopt, {});
  gate.open();
  EXPECT_ERROR(put.get(), ErrorCode::kConflict);
  EXPECT_ERROR(deployments.get("d"), ErrorCode::kNotFound);
  EXPECT_TRUE(open_->catalog.list_deployments().empty());
}

TEST_F(Deployments, WhatCannotBeIsRefusedBeforeALoad) {
  DeploymentServiceImpl& deployments = service();
  services::DeploymentSpec spec = spec_of();
  spec.package = Digest::of("nothing").text();
  EXPECT_ERROR(deployments.put("d", spec, {}), ErrorCode::kInvalidArgument);
  spec = spec_of();
  spec.isolation = "process";
  EXPECT_ERROR(deployments.put("d", spec, {}), ErrorCode::kNotSupported);
  EXPECT_EQ(host_.loads, 0);
  spec = spec_of();
  spec.max_batch = 2;
  EXPECT_ERROR(deployments.put("d", spec, {}), ErrorCode::kInvalidArgument);
}

TEST_F(Deployments, OneThatIsUnloadedStaysKnownAndComesBack) {
  DeploymentServiceImpl& deployments = service();
  deployments.put("d", spec_of("1", 2), {});
  deployments.put("d", spec_of("2", 2), {});
  deployments.unload("d");
  EXPECT_EQ(state_of(deployments, "1"), DeploymentState::kUnloaded);
  EXPECT_EQ(state_of(deployments, "2"), DeploymentState::kUnloaded);
  EXPECT_ERROR(answering_version(), ErrorCode::kUnavailable);
  EXPECT_ERROR(deployments.statistics("d", "2"), ErrorCode::kUnavailable);
  const int loads = host_.loads;
  EXPECT_EQ(state_of(restarted(), "2"), DeploymentState::kUnloaded);
  EXPECT_EQ(host_.loads, loads) << "it stays out of memory over a restart";
  service_->load("d");
  EXPECT_EQ(answering_version(), "2");
  EXPECT_EQ(answering_version("1"), "1");
  EXPECT_EQ(service_->statistics("d", "").size(), 2U);
  service_->load("d");
  EXPECT_EQ(host_.loads, loads + 2) << "what is loaded is not loaded again";
  EXPECT_ERROR(service_->load("e"), ErrorCode::kNotFound);
  EXPECT_ERROR(service_->unload("e"), ErrorCode::kNotFound);
}

TEST_F(Deployments, ALoadThatFailsSaysWhyAndMayBeTriedAgain) {
  service().put("d", spec_of(), {});
  service_->unload("d");
  host_.on_load = [] { throw Error(ErrorCode::kMemoryBudget, "bind: too large"); };
  EXPECT_ERROR(service_->load("d"), ErrorCode::kInvalidPackage);
  EXPECT_EQ(service_->get("d").versions.at(0).reason, "bind: too large");
  host_.on_load = [] {};
  service_->load("d");
  EXPECT_EQ(answering_version(), "1");
}

TEST_F(Deployments, ADefaultThatDoesNotComeBackIsReplaced) {
  service().put("d", spec_of("1", 3), {});
  service_->put("d", spec_of("2", 3), {});
  service_->put("d", spec_of("3", 3), {});
  int load = 0;
  host_.on_load = [&] {
    if (++load == 3) throw Error(ErrorCode::kMemoryBudget, "bind: too large");
  };
  const services::Deployment after = restarted().get("d");
  EXPECT_EQ(after.default_version, "2");
  EXPECT_EQ(after.versions.at(2).state, DeploymentState::kFailed);
  EXPECT_EQ(after.versions.at(1).reason, "the default in place of version 3, which failed: bind: too large");
  EXPECT_EQ(answering_version(), "2");
  host_.on_load = [] {};
  EXPECT_EQ(restarted().get("d").default_version, "2") << "as it was left";
}

/// A process that is ended by `signal` in its `fatal`-th load: `action` on a fresh service.
template <typename Action>
void die_in(Store& store, int fatal, int signal, const Action& action, const std::string& replica = "") {
  OpenStore open(store);
  FakeHost host;
  host.on_load = [&] {
    if (host.loads == fatal) ::raise(signal);
  };
  CrashMark mark(mark_path(store));
  DeploymentServiceImpl deployments(open.blobs, open.catalog, host,
                                    {.crash_mark = &mark, .build = "one", .replica = replica});
  deployments.adopt();
  action(deployments);
}

const auto kPut = [](DeploymentServiceImpl& service) { service.put("d", spec_of("2"), {}); };
const auto kRestore = [](DeploymentServiceImpl& service) { service.restore(); };
const auto kFollow = [](DeploymentServiceImpl& service) { service.follow(); };

TEST_F(Deployments, OneThatCrashedTheProcessTwiceIsFailedAndNotTriedAgain) {
  service().put("d", spec_of("1"), {});
  close();
  EXPECT_EXIT(die_in(store_, 1, SIGSEGV, kPut), testing::KilledBySignal(SIGSEGV), "");
  // The good version is loaded first, and its crash is forgotten once it serves.
  EXPECT_EXIT(die_in(store_, 2, SIGABRT, kRestore), testing::KilledBySignal(SIGABRT), "");
  host_.loads = 0;
  DeploymentServiceImpl& deployments = restarted();
  const services::Deployment after = deployments.get("d");
  EXPECT_EQ(host_.loads, 1);
  EXPECT_EQ(after.versions.at(1).state, DeploymentState::kFailed) << after.versions.at(1).reason;
  EXPECT_EQ(after.versions.at(1).reason, "load: the process crashed 2 times while it was loaded");
  EXPECT_EQ(answering_version(), "1");
  EXPECT_TRUE(deployments.put("d", spec_of("2"), {}).ready) << "a new PUT may try again";
}

/// Ends in the second of two loads that are under way at once.
void die_in_two_loads(Store& store) {
  OpenStore open(store);
  FakeHost host;
  Gate never;
  std::atomic<int> begun{0};
  host.on_load = [&] {
    if (++begun == 2) ::raise(SIGSEGV);
    never.wait();
  };
  CrashMark mark(mark_path(store));
  DeploymentServiceImpl deployments(
      open.blobs, open.catalog, host,
      {.ready_wait = std::chrono::milliseconds(0), .crash_mark = &mark, .build = "one"});
  deployments.put("d", spec_of(), {});
  deployments.put("e", spec_of(), {});
}

TEST_F(Deployments, OfTwoThatWereLoadedAtOnceNeitherIsBlamedUnseen) {
  close();
  EXPECT_EXIT(die_in_two_loads(store_), testing::KilledBySignal(SIGSEGV), "");
  // One after the other: the first is good, and the second crashes the process.
  EXPECT_EXIT(die_in(store_, 2, SIGSEGV, kRestore), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(restarted().get("e").versions.at(0).state, DeploymentState::kReady) << "it was seen once";
  close();
  for (int death = 0; death < 2; ++death) {
    EXPECT_EXIT(die_in(store_, 2, SIGSEGV, kRestore), testing::KilledBySignal(SIGSEGV), "");
  }
  DeploymentServiceImpl& deployments = restarted();
  EXPECT_EQ(deployments.get("e").versions.at(0).state, DeploymentState::kFailed);
  EXPECT_EQ(deployments.get("d").versions.at(0).state, DeploymentState::kReady);
}

TEST_F(Deployments, AReplicaCountsTheLoadsThatCrashedIt) {
  close();
  EXPECT_EXIT(die_in(store_, 1, SIGSEGV, kPut, "r"), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(die_in(store_, 1, SIGSEGV, kFollow, "r"), testing::KilledBySignal(SIGSEGV), "");
  die_in(
      store_, 1, SIGSEGV,
      [](DeploymentServiceImpl& service) {
        service.follow();
        EXPECT_EQ(service.get("d").versions.at(0).reason,
                  "load: the process crashed 2 times while it was loaded");
      },
      "r");
}

TEST_F(Deployments, OneThatServedAndCrashesTheProcessAtItsStartIsFailedToo) {
  service().put("d", spec_of(), {});
  close();
  for (int death = 0; death < 2; ++death) {
    EXPECT_EXIT(die_in(store_, 1, SIGSEGV, kRestore), testing::KilledBySignal(SIGSEGV), "");
  }
  host_.loads = 0;
  EXPECT_EQ(state_of(restarted(), "1"), DeploymentState::kFailed);
  EXPECT_EQ(host_.loads, 0);
  EXPECT_ERROR(answering_version(), ErrorCode::kUnavailable);
  // What follows is remembered, not counted again; another program may do better.
  EXPECT_EQ(state_of(restarted(), "1"), DeploymentState::kFailed);
  build_ = "two";
  EXPECT_EQ(state_of(restarted(), "1"), DeploymentState::kReady);
}

TEST_F(Deployments, OneThatIsSlowIsLoadedHoweverOftenTheProcessIsKilledMeanwhile) {
  service().put("d", spec_of("1"), {});
  close();
  for (const auto& [signal, fatal] : {std::pair(SIGKILL, 1), std::pair(SIGKILL, 1), std::pair(SIGKILL, 1)}) {
    EXPECT_EXIT(die_in(store_, fatal, signal, kRestore), testing::KilledBySignal(signal), "");
  }
  EXPECT_EXIT(die_in(store_, 2, SIGKILL,
                     [](auto& service) {
                       service.restore();
                       kPut(service);
                     }),
              testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(die_in(store_, 2, SIGKILL, kRestore), testing::KilledBySignal(SIGKILL), "");
  host_.loads = 0;
  restarted();
  EXPECT_EQ(host_.loads, 2);
  EXPECT_EQ(answering_version(), "2");
}

TEST_F(Deployments, ASuccessForgetsTheCrashBeforeIt) {
  service().put("d", spec_of("1"), {});
  close();
  EXPECT_EXIT(die_in(store_, 1, SIGSEGV, kRestore), testing::KilledBySignal(SIGSEGV), "");
  restarted();
  close();
  EXPECT_EXIT(die_in(store_, 1, SIGSEGV, kRestore), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(state_of(restarted(), "1"), DeploymentState::kReady);
}

TEST_F(Deployments, AStopEndsLoadsAndTheNextProcessDoesThem) {
  service().put("d", spec_of("1"), {});
  service_->put("e", spec_of("1"), {});
  host_.on_load = [&] {
    service_->stop_loading();
    throw Error(ErrorCode::kCancelled, "warm-up: the server stops");
  };
  host_.loads = 0;
  EXPECT_EQ(state_of(restarted(), "1"), DeploymentState::kLoading);
  EXPECT_EQ(host_.loads, 1) << "the other one is not begun";
  host_.on_load = [] {};
  EXPECT_EQ(state_of(restarted(), "1"), DeploymentState::kReady);
}

}  // namespace
}  // namespace tensormill::server
