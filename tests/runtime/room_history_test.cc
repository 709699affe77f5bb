/// Runs begin with the rooms at which those of late ended.
#include "runtime/package/room_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/exec/graph_executor.h"
#include "runtime/package/room_checks.h"
#include "tests/expect_error.h"
#include "tests/runtime/loop_packages.h"

namespace tensormill::package::loops::room_history_test {
namespace {

using testing::ElementsAre;

using Dims = std::vector<int64_t>;

/// Of a plan of which the rooms' product decides about a part.
std::optional<int64_t> bytes_of(const Dims& dims) {
  int64_t bytes = 100;
  for (const int64_t dim : dims) bytes *= dim;
  return 10'000 + bytes;
}

constexpr int64_t kNoLimit = INT64_MAX;

TEST(RoomHistory, IsOfTheSameFirstDims) {
  RoomHistory history;
  EXPECT_EQ(history.best({4}, bytes_of, kNoLimit), Dims{4});
  history.note({4}, {9}, 900);
  EXPECT_EQ(history.best({4}, bytes_of, kNoLimit), Dims{9});
  EXPECT_EQ(history.best({5}, bytes_of, kNoLimit), Dims{5});
  // Those that no run was of for long are forgotten.
  for (size_t i = 0; i < RoomHistory::kMostEntries; ++i)
    history.note({100 + static_cast<int64_t>(i)}, {1000}, 1);
  EXPECT_EQ(history.best({4}, bytes_of, kNoLimit), Dims{4});
  EXPECT_EQ(history.best({100}, bytes_of, kNoLimit), Dims{1000});
}

TEST(RoomHistory, WeighsWhatLargeRoomCostsAllAgainstWhatARestartDoes) {
  RoomHistory history;
  const auto note = [&](int64_t room) { history.note({4}, {room}, *bytes_of({room})); };
  const auto best = [&] { return history.best({4}, bytes_of, kNoLimit).front(); };
  note(1000);
  EXPECT_EQ(best(), 1000);
  // Two runs of 4 and one again with 1000, or two of 1000.
  note(4);
  EXPECT_EQ(best(), 4);
  // One of 1000 again is less than all of 1000; all of 80 is less than three of them again.
  for (const int64_t room : {80, 72, 80}) note(room);
  EXPECT_EQ(best(), 80);
  RoomHistory close;
  for (const int64_t room : {72, 72, 72, 80}) close.note({4}, {room}, *bytes_of({room}));
  EXPECT_EQ(close.best({4}, bytes_of, kNoLimit), Dims{80});
  for (size_t i = 0; i < RoomHistory::kRuns; ++i) close.note({4}, {4}, *bytes_of({4}));
  EXPECT_EQ(close.best({4}, bytes_of, kNoLimit), Dims{4});
}

TEST(RoomHistory, HoldsRunsOfSeveralRoomsWhereThatIsNotMuch) {
  RoomHistory history;
  history.note({4, 4}, {10, 9}, *bytes_of({10, 9}));
  history.note({4, 4}, {9, 10}, *bytes_of({9, 10}));
  EXPECT_EQ(history.best({4, 4}, bytes_of, kNoLimit), (Dims{10, 10}));
  EXPECT_EQ(history.best({4, 4}, bytes_of, 19'999), (Dims{10, 9}));
  EXPECT_EQ(history.best({4, 4}, bytes_of, 18'999), (Dims{4, 4}));
  RoomHistory apart;
  apart.note({4, 4}, {4, 9000}, *bytes_of({4, 9000}));
  apart.note({4, 4}, {9000, 4}, *bytes_of({9000, 4}));
  EXPECT_EQ(apart.best({4, 4}, bytes_of, kNoLimit), (Dims{4, 4}));
}

TEST(RoomChecks, AreTheStepsThatGrowAndTheEndsOfLoopsThatStack) {
  Archive archive = roomy_archive();
  ExecPlan plan = archive.plan;
  const auto checks = room_checks_of(plan);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].step, 4u);
  EXPECT_EQ(checks[0].extent, 4);
  EXPECT_EQ(checks[0].rooms, 1u);
  const auto take_first = [&](const char* attributes) {
    Step step = loop_step("take_first", {kAll, kM, kAll, kTrips}, 2, attributes);
    plan.steps.push_back(step);
  };
  take_first(R"({"axis":2,"grows":6})");
  take_first(R"({"axis":2,"grows":6})");
  for (const char* none : {R"({"axis":2})", R"({"axis":2,"grows":0})", R"({"axis":3,"grows":1})", "[1]", "x"})
    take_first(none);
  std::vector<std::string> names;
  for (const RoomCheck& check : room_checks_of(plan)) {
    names.push_back(check.name);
    EXPECT_EQ(check.rooms, check.step == 4 ? 1u : 6u);
    EXPECT_EQ(check.extent, check.step == 4 ? 4 : 8);
  }
  EXPECT_THAT(names, ElementsAre("loop the loop 0", "axis 2 the loop 0", "axis 2 the loop 1"));
}

class KnownRoom : public testing::Test {
protected:
  /// How much room a run of m iterations ends with.
  int64_t room_of(exec::GraphExecutor& executor, int64_t m) {
    set(executor, m, x_);
    executor.run(pool_);
    const Tensor y = executor.copy_output(0);
    EXPECT_EQ(executor.copy_output(2).values<int64_t>()[0], m);
    for (size_t i = 0; i < 8; ++i)
      EXPECT_EQ(y.values<float>()[i], x_[i] + static_cast<float>(m) * static_cast<float>(i + 1));
    return executor.dims().back();
  }

  const std::vector<float> x_ = {-3, -2, -1, 0, 1, 2, 3, 4};
  parallel::ThreadPool pool_{1};
};

TEST_F(KnownRoom, IsThatOfTheRunBeforeOfAnyExecutor) {
  const auto package = load_archive(roomy_archive().bytes());
  exec::GraphExecutor one(package), other(package);
  EXPECT_EQ(room_of(one, 1000), 1024);
  EXPECT_EQ(room_of(one, 1001), 1024);
  // A run that was made again with more of it would have ended with 960.
  EXPECT_EQ(room_of(other, 900), 1024);
  exec::GraphExecutor of_another(load_archive(roomy_archive().bytes()));
  EXPECT_EQ(room_of(of_another, 900), 960);
}

TEST_F(KnownRoom, ShrinksToWhatRunsOfLateNeeded) {
  exec::GraphExecutor executor(load_archive(roomy_archive().bytes()));
  EXPECT_EQ(room_of(executor, 10'000), 10'240);
  EXPECT_EQ(room_of(executor, 3), 10'240);
  EXPECT_EQ(room_of(executor, 3), 4);
  EXPECT_EQ(room_of(executor, 9), 9);
  // What needs less than the others is no reason to begin with less.
  for (int i = 0; i < 8; ++i) EXPECT_GE(room_of(executor, 70), 72);
  EXPECT_EQ(room_of(executor, 60), 72);
  EXPECT_EQ(room_of(executor, 70), 72);
}

TEST_F(KnownRoom, IsOfTheSameExtentsOfInputs) {
  // x has N rows, of which each is its own.
  Archive archive = roomy_archive();
  PlanSet& plans = *archive.plans;
  plans.free_dims = {"N", "loop_room"};
  plans.input_shapes[1].front() = "N";
  plans.variants.clear();
  GenericPlan& generic = *plans.generic;
  generic.dims = {1, 16};
  generic.multiples = generic.minimums = {1, 1};
  const DimFormula rows{0, {{1, {{0, 1, 0, 1}}}}}, room{0, {{1, {{1, 1, 0, 1}}}}},
      elements{0, {{8, {{0, 1, 0, 1}}}}};
  generic.buffer_holes = {{kX, 0, rows},   {kCarried, 0, rows}, {kSum, 0, rows},      {kFinal, 0, rows},
                          {kAll, 0, room}, {kAll, 1, rows},     {kPositive, 0, rows}, {kOther, 0, rows}};
  generic.step_holes = {{0, 0, elements}, {2, 0, rows}, {3, 0, rows}};
  archive.plan = generic.plan;
  const auto package = load_archive(archive.bytes());
  exec::GraphExecutor executor(package, {.memory_budget = int64_t{1} << 20});
  const auto room_of_rows = [&](int64_t n, int64_t m) {
    const std::vector<float> x(static_cast<size_t>(n) * 8, 1.0f);
    executor.set_input("m", {DType::kInt64, {1}, &m});
    executor.set_input("x", {DType::kFloat32, {n, 8}, x.data()});
    executor.run(pool_);
    EXPECT_EQ(executor.dims().front(), n);
    EXPECT_EQ(executor.copy_output(0).values<float>()[7], 1.0f + 8.0f * static_cast<float>(m));
    return executor.dims().back();
  };
  EXPECT_EQ(room_of_rows(1, 20'000), 20'480);
  // As much room for so many rows is past the budget.
  EXPECT_EQ(room_of_rows(100, 3), 64);
  EXPECT_EQ(room_of_rows(1, 19'000), 20'480);
  EXPECT_EQ(room_of_rows(100, 80), 80);
  EXPECT_EQ(room_of_rows(100, 70), 80);
}

TEST_F(KnownRoom, IsWithinTheBudgetOfTheExecutor) {
  const auto package = load_archive(roomy_archive().bytes());
  exec::GraphExecutor large(package), small(package, {.memory_budget = 100 * 1024});
  EXPECT_EQ(room_of(large, 1 << 20), 1 << 20);
  EXPECT_EQ(room_of(small, 3), 4);
  set(small, 1 << 20, x_);
  expect_error(ErrorCode::kMemoryBudget, "more than", [&] { small.run(pool_); });
  EXPECT_EQ(room_of(small, 1000), 1024);
}

TEST_F(KnownRoom, IsNotThatOfRunsThatFail) {
  const auto package = load_archive(roomy_archive().bytes());
  exec::GraphExecutor executor(package);
  EXPECT_EQ(room_of(executor, 70), 72);
  parallel::CancelToken cancel;
  cancel.cancel();
  set(executor, 1000, x_);
  expect_error(ErrorCode::kCancelled, "cancelled", [&] { executor.run(pool_, {.cancel = &cancel}); });
  expect_error(ErrorCode::kDeadlineExceeded, "deadline",
               [&] { executor.run(pool_, {.deadline = std::chrono::steady_clock::now()}); });
  exec::GraphExecutor other(package);
  EXPECT_EQ(room_of(other, 65), 72);
  EXPECT_EQ(room_of(executor, 1000), 1024);
}

TEST_F(KnownRoom, IsKeptWhereIterationsGoOn) {
  constexpr int64_t kMost = 1000;
  const auto package = load_archive(flagged_archive(kMost).bytes());
  const auto room_of_trips = [&](int64_t trips) {
    exec::GraphExecutor executor(package);
    executor.set_input("x", {DType::kFloat32, {1, 8}, x_.data()});
    Tensor flags(DType::kBool, {kMost, 1});
    for (int64_t i = 0; i < kMost; ++i) flags.set_element_int(i, i + 1 < trips ? 1 : 0);
    executor.set_input("flags", {flags.dtype(), flags.shape(), flags.data()});
    executor.run(pool_);
    EXPECT_EQ(executor.copy_output(2).values<int64_t>()[0], trips);
    EXPECT_EQ(executor.copy_output(0).values<float>()[0], x_[0] + static_cast<float>(trips));
    return executor.dims().back();
  };
  EXPECT_EQ(room_of_trips(200), 256);
  EXPECT_EQ(room_of_trips(70), 256);
  EXPECT_EQ(room_of_trips(70), 72);
}

TEST_F(KnownRoom, IsSharedByThreads) {
  const auto package = load_archive(roomy_archive().bytes());
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      exec::GraphExecutor executor(package);
      parallel::ThreadPool pool(1);
      for (int64_t i = 0; i < 40; ++i) {
        const int64_t m = i * (t + 1) * 7 % 150;
        set(executor, m, x_);
        executor.run(pool);
        EXPECT_EQ(executor.copy_output(0).values<float>()[7], x_[7] + 8.0f * static_cast<float>(m));
        EXPECT_EQ(executor.copy_output(2).values<int64_t>()[0], m);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tensormill::package::loops::room_history_test
