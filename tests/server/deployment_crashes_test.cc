// Which load is blamed for a crash of its process: of one that is alone, and of several that share a catalog.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "server/services/deployments/deployment_rows.h"
#include "tests/server/store.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::deployment_crashes_test {
namespace {

using services::DeploymentState;

const std::string kTwice = "load: the process crashed 2 times while it was loaded";

/// A process on a store.
class Process {
public:
  Process(Store& store, const std::string& replica, const std::string& build = "one",
          std::chrono::milliseconds wait = std::chrono::minutes(1))
      : open_(store), mark_(store.root + "/loading.crash" + replica) {
    if (!replica.empty()) {
      storage::ReplicaRow row;
      row.id = row.name = replica;
      open_.catalog.begin_replica(row, int64_t{3'600'000});
    }
    service.emplace(
        open_.blobs, open_.catalog, host,
        DeploymentOptions{.ready_wait = wait, .crash_mark = &mark_, .build = build, .replica = replica});
    service->adopt();
  }
  /// "" where it is not failed.
  std::string failure(const std::string& name) {
    for (const auto& one : service->get(name).versions) {
      if (one.state == DeploymentState::kFailed) return one.reason;
    }
    return "";
  }
  /// What the row of `name` says of the load of a PUT.
  DesiredVersion loading(const std::string& name) {
    return desired_from_text(open_.catalog.find_deployment(name)->desired).loading.value();
  }

private:
  OpenStore open_;
  CrashMark mark_;

public:
  FakeHost host;
  std::optional<DeploymentServiceImpl> service;
};

using Action = std::function<void(Process&)>;
const Action kRestore = [](Process& process) { process.service->restore(); };
Action put(const std::string& name, const std::string& version = "1") {
  return [=](Process& process) { process.service->put(name, digits_spec(version), {}); };
}

/// A process that ends by `signal` in its load number `fatal`.
void die_in(Store& store, const std::string& replica, int fatal, int signal, const Action& action,
            const std::string& build = "one") {
  Process process(store, replica, build);
  process.host.on_load = [&] {
    if (process.host.loads == fatal) ::raise(signal);
  };
  action(process);
}

/// One that ends when the loads of "d" and "e" are both under way.
void die_in_both(Store& store, const std::string& replica, int signal) {
  std::promise<void> open;
  std::atomic<int> begun{0};
  Process process(store, replica, "one", std::chrono::milliseconds(0));
  process.host.on_load = [&, never = open.get_future().share()] {
    if (++begun == 2) ::raise(signal);
    never.wait();
  };
  put("d")(process);
  put("e")(process);
}

/// By whether the process is a replica.
class Crashes : public testing::TestWithParam<std::string> {
protected:
  void die(int fatal, int signal, const Action& action, const std::string& build = "one") {
    EXPECT_EXIT(die_in(store_, GetParam(), fatal, signal, action, build), testing::KilledBySignal(signal),
                "");
  }
  void die_in_two(int signal) {
    EXPECT_EXIT(die_in_both(store_, GetParam(), signal), testing::KilledBySignal(signal), "");
  }
  std::unique_ptr<Process> restored(const std::string& build = "one") {
    auto process = std::make_unique<Process>(store_, GetParam(), build);
    process->service->restore();
    return process;
  }
  void expect_blamed(const std::string& blamed, const std::string& other) {
    const auto process = restored();
    EXPECT_EQ(process->failure(blamed), kTwice);
    EXPECT_EQ(process->failure(other), "");
  }
  Store store_;
};
INSTANTIATE_TEST_SUITE_P(Stores, Crashes, testing::Values("", "r"),
                         [](const auto& info) { return info.param.empty() ? "Alone" : "Replica"; });

TEST_P(Crashes, OfTwoLoadsAtOnceNeitherIsBlamed) {
  die_in_two(SIGSEGV);
  // One after the other; the second is alone when the process ends.
  die(2, SIGSEGV, kRestore);
  EXPECT_EQ(restored()->failure("e"), "") << "it was seen once";
  die(2, SIGSEGV, kRestore);
  die(2, SIGSEGV, kRestore);
  expect_blamed("e", "d");
}

TEST_P(Crashes, ALoadThatWasUnderWayInAnEarlierProcessDoesNotHideOneThatIsAlone) {
  die_in_two(SIGKILL);
  die(1, SIGSEGV, kRestore);
  die(1, SIGSEGV, kRestore);
  expect_blamed("d", "e");
}

TEST_P(Crashes, OneIsCountedOnceHoweverOftenTheNextProcessesEnd) {
  die(1, SIGSEGV, put("d"));
  die(1, SIGKILL, kRestore);
  die(1, SIGKILL, kRestore);
  EXPECT_EQ(restored()->failure("d"), "");
}

TEST_P(Crashes, ASuccessForgets) {
  die(1, SIGSEGV, put("d"));
  EXPECT_EQ(restored()->failure("d"), "");
  die(1, SIGSEGV, kRestore);
  EXPECT_EQ(restored()->failure("d"), "");
}

TEST_P(Crashes, AnotherProgramTriesWhatThisOneGaveUp) {
  die(1, SIGSEGV, put("d"));
  die(1, SIGSEGV, kRestore);
  EXPECT_EQ(restored()->failure("d"), kTwice);
  EXPECT_EQ(restored()->failure("d"), kTwice) << "it is remembered";
  const auto next = restored("two");
  EXPECT_EQ(next->failure("d"), "");
  EXPECT_EQ(next->service->get("d").default_version, "1") << "as the PUT asked for";
}

TEST_P(Crashes, AnotherProgramCountsFromTheBeginning) {
  die(1, SIGSEGV, put("d"));
  die(1, SIGSEGV, kRestore, "two");
  EXPECT_EQ(restored("two")->failure("d"), "");
}

class ReplicaCrashes : public testing::Test {
protected:
  void die(const std::string& replica, int fatal, int signal, const Action& action) {
    EXPECT_EXIT(die_in(store_, replica, fatal, signal, action), testing::KilledBySignal(signal), "");
  }
  std::unique_ptr<Process> restored(const std::string& replica) {
    auto process = std::make_unique<Process>(store_, replica);
    process->service->restore();
    return process;
  }
  void lose(const std::string& replica) {
    OpenStore open(store_);
    open.catalog.end_replica(replica);
  }
  Store store_;
};

TEST_F(ReplicaCrashes, LoadsOfAnotherReplicaDoNotCount) {
  die("b", 1, SIGKILL, put("e"));
  die("a", 1, SIGSEGV, put("d"));
  die("a", 1, SIGSEGV, kRestore);
  Process a(store_, "a");
  a.service->restore();
  EXPECT_EQ(a.failure("d"), kTwice);
  EXPECT_EQ(a.loading("e").crashed_loads, 0) << "b has it still";
}

TEST_F(ReplicaCrashes, ALoadThatAnotherReplicaHasTakenUpIsCountedInTheRowOfAll) {
  die("a", 1, SIGSEGV, put("d"));
  lose("a");
  die("b", 1, SIGKILL, kRestore);
  for (int start = 0; start < 2; ++start) {
    Process a(store_, "a");
    a.service->restore();
    EXPECT_EQ(a.loading("d").crashed_loads, 1);
  }
}

TEST_F(ReplicaCrashes, OneOfTwoLoadsThatAnotherReplicaHasTakenUpStillCounts) {
  EXPECT_EXIT(die_in_both(store_, "a", SIGSEGV), testing::KilledBySignal(SIGSEGV), "");
  lose("a");
  // It takes up the first alone before it is killed.
  die("b", 1, SIGKILL, kRestore);
  die("a", 1, SIGKILL, kRestore);
  Process a(store_, "a");
  EXPECT_EQ(a.loading("d").crashed_loads, 0);
  EXPECT_EQ(a.loading("e").crashed_loads, 0);
}

TEST_F(ReplicaCrashes, WhatCrashesOneServesInAnotherAndAnotherPackageInItsPlaceIsTried) {
  {
    Process a(store_, "a");
    a.service->put("d", digits_spec(), {});
  }
  die("b", 1, SIGSEGV, kRestore);
  die("b", 1, SIGSEGV, kRestore);
  {
    OpenStore open(store_);
    storage::ObservedRow row = open.catalog.observed_by("b").at(0);
    Json state = parse_json(row.state);
    EXPECT_EQ(state.at("versions").at("1").at("crashed_loads"), 1);
    state["versions"]["1"]["package"] = Digest::of("another").text();
    row.state = canonical_json(state);
    open.catalog.put_observed(std::vector{row});
  }
  EXPECT_EQ(restored("b")->failure("d"), "");
  die("b", 1, SIGSEGV, kRestore);
  die("b", 1, SIGSEGV, kRestore);
  EXPECT_EQ(restored("b")->failure("d"), kTwice);
  EXPECT_EQ(restored("a")->failure("d"), "");
}

}  // namespace
}  // namespace tensormill::server::deployment_crashes_test
