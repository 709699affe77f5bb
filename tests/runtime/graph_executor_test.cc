#include "runtime/exec/graph_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/runtime/test_package.h"

namespace tensormill::exec {
namespace {

using package::gather_archive;
using package::load_archive;
using package::relu_add_archive;

std::vector<float> ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), static_cast<float>(-count / 2));
  return values;
}

void expect_relu_add(const TensorView& y, const std::vector<float>& x) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float expected = std::max(x[i], 0.0f) + static_cast<float>(10 * (i % 8));
    ASSERT_EQ(static_cast<const float*>(y.data)[i], expected) << i;
  }
}

TEST(GraphExecutor, RunsKernelsOverTheArena) {
  parallel::ThreadPool pool(2);
  GraphExecutor executor(load_archive(relu_add_archive().bytes()));
  const std::vector<float> x = ramp(32);
  executor.set_input("x", {DType::kFloat32, {4, 8}, x.data()});
  std::vector<StepTime> profile;
  executor.run(pool, {.profile = &profile});
  expect_relu_add(executor.output("y"), x);
  EXPECT_EQ(profile.size(), 2u);
  // Inputs keep their values: a second run gives the same.
  executor.run(pool);
  expect_relu_add(executor.output("output_0"), x);
  EXPECT_EQ(executor.copy_output(0).shape(), (Shape{4, 8}));
}

TEST(GraphExecutor, ReadsAnInputThatIsLentWhereItLies) {
  parallel::ThreadPool pool(1);
  GraphExecutor executor(load_archive(relu_add_archive().bytes()));
  const std::vector<float> own = ramp(32);
  executor.set_input("x", {DType::kFloat32, {4, 8}, own.data()});
  std::vector<float> other(32, 3.0f);
  Tensor lent = Tensor::from<float>({4, 8}, other);
  executor.lend_input(0, lent.data());
  executor.run(pool);
  expect_relu_add(executor.output("y"), other);
  other[5] = lent.values<float>()[5] = 70.0f;
  executor.run(pool);
  expect_relu_add(executor.output("y"), other);
  executor.lend_input(0, nullptr);
  executor.run(pool);
  expect_relu_add(executor.output("y"), own);
}

TEST(GraphExecutor, BuffersAreAlignedAndPadded) {
  const auto loaded = load_archive(relu_add_archive(3).bytes());
  GraphExecutor executor(loaded);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(executor.output(0).data) % 64, 0u);
  const auto bound = loaded->bind(loaded->first_dims());
  const package::MemoryPlan& memory = bound->memory;
  for (size_t i = 0; i < loaded->plan().buffers.size(); ++i) {
    if (memory.offsets[i] < 0) continue;
    EXPECT_EQ(memory.offsets[i] % 64, 0);
    EXPECT_LE(memory.offsets[i] + loaded->plan().buffers[i].bytes + 64, memory.arena_bytes);
  }
}

TEST(GraphExecutor, NamesWhatIsWrongWithAnInput) {
  parallel::ThreadPool pool(1);
  GraphExecutor executor(load_archive(relu_add_archive().bytes()));
  const std::vector<float> x = ramp(32);
  expect_error(ErrorCode::kInvalidTensor, "input \"x\" is not set", [&] { executor.run(pool); });
  expect_error(ErrorCode::kInvalidTensor, "no input \"z\"; it has \"x\"", [&] {
    executor.set_input("z", {DType::kFloat32, {4, 8}, x.data()});
  });
  expect_error(ErrorCode::kInvalidTensor, "float32 [8,4], expected float32 [4,8]", [&] {
    executor.set_input("x", {DType::kFloat32, {8, 4}, x.data()});
  });
  expect_error(ErrorCode::kInvalidTensor, "int32 [4,8]", [&] {
    executor.set_input("input_0", {DType::kInt32, {4, 8}, x.data()});
  });
  expect_error(ErrorCode::kInvalidTensor, "input_1", [&] {
    executor.set_input("input_1", {DType::kFloat32, {4, 8}, x.data()});
  });
}

TEST(GraphExecutor, ParallelLaunchGivesTheSameForEveryThreadCount) {
  const int64_t count = 1000;
  std::vector<int64_t> indices(static_cast<size_t>(count));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i * 7 % 5);
  for (int threads : {1, 2, 3, 4, -3}) {
    auto archive = gather_archive(count);
    if (threads < 0) archive.plan.steps[0].sharing = package::Sharing::kAll;
    threads = std::abs(threads);
    const auto loaded = load_archive(archive.bytes());
    parallel::ThreadPool pool(threads);
    GraphExecutor executor(loaded, {.max_threads = threads});
    executor.set_input(0, {DType::kInt64, {count}, indices.data()});
    for (int round = 0; round < 50; ++round) executor.run(pool, {.threads = threads});
    const auto* out = static_cast<const float*>(executor.output(0).data);
    for (size_t i = 0; i < indices.size() * 8; ++i) {
      ASSERT_EQ(out[i], static_cast<float>(100 * indices[i / 8]) + static_cast<float>(i % 8)) << threads;
    }
  }
}

TEST(GraphExecutor, IndexOutOfRangeNamesTheNodeAndTheFirstIndex) {
  const int64_t count = 500;
  parallel::ThreadPool pool(3);
  std::vector<int64_t> indices(static_cast<size_t>(count), 0);
  for (size_t i = 100; i < indices.size(); ++i) indices[i] = i % 2 == 0 ? -1 : INT64_MAX;
  for (const package::Sharing sharing : {package::Sharing::kLaunches, package::Sharing::kAll}) {
    auto archive = gather_archive(count);
    archive.plan.steps[0].sharing = sharing;
    GraphExecutor executor(load_archive(archive.bytes()), {.max_threads = 3});
    executor.set_input(0, {DType::kInt64, {count}, indices.data()});
    for (int round = 0; round < 20; ++round) {
      expect_error(ErrorCode::kTensorData,
                   "node \"emb/Gather\": index -1, from the front, is outside its axis",
                   [&] { executor.run(pool, {.threads = 3}); });
    }
  }
}

TEST(GraphExecutor, WorkersGoThroughStepsSideBySide) {
  parallel::ThreadPool pool(3);
  auto archive = relu_add_archive();
  for (package::Step& step : archive.plan.steps) step.sharing = package::Sharing::kOne;
  GraphExecutor executor(load_archive(archive.bytes()), {.max_threads = 3});
  const std::vector<float> x = ramp(32);
  executor.set_input("x", {DType::kFloat32, {4, 8}, x.data()});
  for (int round = 0; round < 200; ++round) {
    std::vector<StepTime> profile;
    executor.run(pool, {.threads = 3, .profile = &profile});
    expect_relu_add(executor.output("y"), x);
    ASSERT_EQ(profile.size(), 2u);
  }
  expect_error(ErrorCode::kDeadlineExceeded, "deadline",
               [&] { executor.run(pool, {.threads = 3, .deadline = std::chrono::steady_clock::now()}); });
  parallel::CancelToken cancel;
  cancel.cancel();
  expect_error(ErrorCode::kCancelled, "cancelled",
               [&] { executor.run(pool, {.threads = 3, .cancel = &cancel}); });
}

TEST(GraphExecutor, BudgetIsCheckedBeforeAllocation) {
  const auto loaded = load_archive(relu_add_archive(1 << 20).bytes());
  expect_error(ErrorCode::kMemoryBudget, "are allowed",
               [&] { GraphExecutor executor(loaded, {.max_threads = 1, .memory_budget = 1 << 20}); });
}

TEST(GraphExecutor, NoMoreMemoryIsAllowedThanTheMachineHas) {
  const int64_t rows = memory::machine_memory() / 64 + 1;  // of two buffers
  ASSERT_GT(rows, 0);
  const auto loaded = load_archive(relu_add_archive(rows).bytes());
  expect_error(ErrorCode::kMemoryBudget, "are allowed", [&] { GraphExecutor executor(loaded); });
}

TEST(GraphExecutor, DeadlineAndCancelStopARun) {
  parallel::ThreadPool pool(1);
  GraphExecutor executor(load_archive(relu_add_archive().bytes()));
  executor.input_bytes(0);
  expect_error(ErrorCode::kDeadlineExceeded, "deadline",
               [&] { executor.run(pool, {.deadline = std::chrono::steady_clock::now()}); });
  parallel::CancelToken cancel;
  cancel.cancel();
  expect_error(ErrorCode::kCancelled, "cancelled", [&] { executor.run(pool, {.cancel = &cancel}); });
}

TEST(GraphExecutor, ExecutorsShareAPackageAndThePool) {
  parallel::ThreadPool pool(2);
  const auto loaded = load_archive(relu_add_archive(64).bytes());
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&, t] {
      GraphExecutor executor(loaded, {.max_threads = 2});
      std::vector<float> x(64 * 8, static_cast<float>(t));
      executor.set_input(0, {DType::kFloat32, {64, 8}, x.data()});
      for (int round = 0; round < 50; ++round) {
        executor.run(pool, {.threads = 2});
        good[t] += static_cast<const float*>(executor.output(0).data)[3] == static_cast<float>(t) + 30.0f;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(good, testing::Each(50));
}

TEST(GraphExecutor, UnknownHostStepIsNamed) {
  auto archive = relu_add_archive();
  archive.plan.steps[1].kind = package::StepKind::kHost;
  archive.plan.steps[1].function = "no_such_op";
  const auto loaded = load_archive(archive.bytes());
  expect_error(ErrorCode::kNotSupported, "no_such_op", [&] { GraphExecutor executor(loaded); });
}

}  // namespace
}  // namespace tensormill::exec
