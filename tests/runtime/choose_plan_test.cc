#include "runtime/package/choose_plan.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "runtime/base/json.h"
#include "runtime/exec/graph_executor.h"
#include "tests/expect_error.h"
#include "tests/runtime/rows_package.h"

namespace tensormill::package {
namespace {

TEST(ChoosePlan, TakesTheOneThatHasTheInputsExtents) {
  const PlanSet set = plan_set();
  const auto taking = [&](const std::vector<int64_t>& dims) { return plans_taking(set, dims); };
  EXPECT_EQ(taking({5, 5}), (std::vector<const GenericPlan*>{&*set.generic}));
  EXPECT_EQ(taking({5, 1}), (std::vector<const GenericPlan*>{&set.special[0]}));
  EXPECT_EQ(taking({1, 5}), (std::vector<const GenericPlan*>{&set.special[1]}));
  EXPECT_EQ(taking({1, 1}).size(), 3U);
  EXPECT_EQ(taking({1, 1}).front(), &*set.generic);
  EXPECT_FALSE(has_plan(set, {5, 4}));
}

TEST(ChoosePlan, KeepsTheDimsThatAreNamed) {
  const PlanSet set = plan_set();
  EXPECT_EQ(settled_dims(set, {5, 1}, {5, std::nullopt}), (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(settled_dims(set, {5, 4}, {5, std::nullopt}), (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(settled_dims(set, {5, 4}, {std::nullopt, 4}), (std::vector<int64_t>{5, 5}));
}

TEST(ChoosePlan, InputsComeInAnyOrder) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor = executor_of(plan_set());
  const std::vector<std::pair<int64_t, int64_t>> shapes = {{7, 1}, {1, 5}, {4, 4}, {5, 1}, {1, 1},
                                                           {6, 6}, {1, 6}, {6, 1}, {2, 2}};
  for (const bool starts_with_x : {true, false}) {
    for (const auto& [n, m] : shapes) {
      if (starts_with_x) set_rows(executor, "x", n, 2);
      set_rows(executor, "y", m, 30);
      if (!starts_with_x) set_rows(executor, "x", n, 2);
      executor.run(pool);
      const Tensor z = executor.copy_output(0);
      EXPECT_EQ(z.shape(), (Shape{std::max(n, m), 8})) << n << " " << m;
      for (const float value : z.values<float>()) EXPECT_EQ(value, n == m ? 2.0f : 32.0f);
    }
  }
  set_rows(executor, "x", 5, 2);
  set_rows(executor, "y", 4, 30);
  expect_error(ErrorCode::kInvalidTensor, "follows from them as 5", [&] { executor.run(pool); });
}

TEST(ChoosePlan, ARefusalIsOfWhatIsSetNow) {
  constexpr int64_t kRows = 10000;
  PlanSet set = plan_set();
  // A third input, which keeps its shape.
  const auto add_input = [](ExecPlan& plan) {
    plan.buffers.push_back({"w", BufferKind::kInput, DType::kFloat32, {8}, 32, -1, 0, 0});
    plan.inputs.push_back(
        {"w", DType::kFloat32, {Dim(int64_t{8})}, static_cast<int32_t>(plan.buffers.size()) - 1});
  };
  set.input_shapes.push_back({Dim(int64_t{8})});
  add_input(set.generic->plan);
  for (GenericPlan& special : set.special) add_input(special.plan);
  parallel::ThreadPool pool(1);
  // Enough for x and z of so many rows, not for y as well.
  exec::GraphExecutor executor = executor_of(set, kRows * 32 * 5 / 2);
  const std::vector<float> w(8, 1.0f);
  executor.set_input("w", {DType::kFloat32, {8}, w.data()});
  set_rows(executor, "y", kRows, 30);
  set_rows(executor, "x", kRows, 2);
  expect_error(ErrorCode::kMemoryBudget, "bytes", [&] { executor.run(pool); });
  // Neither what y was before nor that it was refused is left.
  set_rows(executor, "y", 1, 30);
  executor.run(pool);
  EXPECT_EQ(executor.copy_output(0).shape(), (Shape{kRows, 8}));
  EXPECT_EQ(executor.copy_output(0).values<float>()[0], 32.0f);
}

/// Bytes that the process may still map; at its end as many as before.
class MemoryLimit {
public:
  explicit MemoryLimit(uint64_t bytes) {
    ::getrlimit(RLIMIT_AS, &before_);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    ::setrlimit(RLIMIT_AS, &now);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

private:
  rlimit before_{};
};

TEST(ChoosePlan, WhatWasRefusedForMemoryIsTriedAgainByARun) {
  constexpr int64_t kRows = int64_t{1} << 20;
  constexpr uint64_t kBytes = kRows * 32;
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor = executor_of(plan_set());
  set_rows(executor, "x", 3, 2);
  set_rows(executor, "y", kRows, 30);
  const Tensor x = Tensor::from<float>({kRows, 8}, std::vector<float>(kRows * 8, 2));
  {
    // Enough for a copy of x, not for both inputs and the output.
    const MemoryLimit limit(2 * kBytes);
    executor.set_input("x", {x.dtype(), x.shape(), x.data()});
    expect_error(ErrorCode::kMemoryBudget, "arena", [&] { executor.run(pool); });
  }
  executor.run(pool);
  EXPECT_EQ(executor.copy_output(0).shape(), (Shape{kRows, 8}));
  EXPECT_EQ(executor.copy_output(0).values<float>()[0], 2.0f);
}

TEST(ChoosePlan, SetsOfPlansAreTextsAndBack) {
  const PlanSet set = plan_set();
  const std::string text = plan_set_to_json(set);
  EXPECT_EQ(plan_set_to_json(plan_set_from_json(text)), text);
  PlanSet alone = set;
  alone.variants = {{{3, 3}, set.generic->plan}};
  alone.generic.reset();
  expect_error(ErrorCode::kInvalidPackage, "there is no generic plan", [&] { plan_set_to_json(alone); });
  PlanSet hole = set;
  hole.special[1].step_holes[0].owner = 4;
  expect_error(ErrorCode::kInvalidPackage, "a hole names nothing", [&] { plan_set_to_json(hole); });
}

TEST(ChoosePlan, ASetOfAnotherVersionIsRefused) {
  const std::string text = plan_set_to_json(plan_set()), key = "\"format_version\":";
  const size_t at = text.find(key + "8,\"free_dims\"");
  ASSERT_NE(at, std::string::npos);
  for (const auto& [version, said] : {std::pair("3", "compile the model again"),
                                      {"7", "compile the model again"},
                                      {"9", "newer than this program"}}) {
    std::string other = text;
    other.replace(at, key.size() + 1, key + version);
    expect_error(ErrorCode::kInvalidPackage, said, [&] { plan_set_from_json(other); });
  }
}

TEST(ChoosePlan, AGuardLeavesExtentsOutAndSaysWhy) {
  PlanSet set = plan_set();
  const auto extent = [&](const char* text) { return Extent::parse(text).bound_to(set.free_dims); };
  set.generic->guards = {{extent("N % 2"), extent("0"), "==", "a \"node\""},
                         {extent("N*M"), extent("7"), ">=", ""}};
  set.generic->derived.push_back({{}});
  set.generic->derived.back().formula = extent("(M+N)//2");
  set.generic->buffer_holes[2].value = {0, {{1, {{2, 1, 0, 1}}}}};
  const std::string text = plan_set_to_json(set);
  EXPECT_EQ(parse_json(text)["format_version"], kPlanSetFormatVersion);
  const PlanSet back = plan_set_from_json(text);
  EXPECT_EQ(plan_set_to_json(back), text);
  EXPECT_EQ(plans_taking(back, {6, 6}).size(), 1);
  EXPECT_TRUE(plans_taking(back, {5, 5}).empty());
  EXPECT_TRUE(plans_taking(back, {2, 2}).empty()) << "4 is less than 7";
  EXPECT_EQ(instantiate(*back.generic, std::vector<int64_t>{6, 6}).outputs[0].shape[0], Dim(int64_t{6}));
  expect_error(ErrorCode::kInvalidTensor, "node \"a \"node\"\": N % 2 (1) has to be == 0", [&] {
    instantiate(*back.generic, std::vector<int64_t>{5, 5}, back.free_dims);
  });
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"\">=\"", "\"=>\""}, {"N*M", "N*K"}, {"N*M", "N*"}}) {
    std::string broken = text;
    broken.replace(broken.find(from), from.size(), to);
    expect_error(ErrorCode::kInvalidPackage, "/guards/1/", [&] { plan_set_from_json(broken); });
  }
}

/// What the reader refuses is not written.
TEST(ChoosePlan, AFormulaThatIsTooLargeIsNotWritten) {
  const int64_t most = int64_t{1} << 40;
  const auto expect_refused = [](const DimFormula& formula) {
    PlanSet set = plan_set();
    set.special[0].step_holes[0].value = formula;
    expect_error(ErrorCode::kInvalidPackage, "a formula is too large", [&] { plan_set_to_json(set); });
  };
  expect_refused({most + 1, {}});
  expect_refused({0, {{-most - 1, {{0, 1, 0, 1}}}}});
  expect_refused({0, {{1, {{0, 1, most + 1, 1}}}}});
  expect_refused({0, std::vector<DimProduct>(65, {1, {{0, 1, 0, 1}}})});
  expect_refused({0, {{1, std::vector<DimTerm>(129, {0, 1, 0, 1})}}});
  PlanSet derived = plan_set();
  derived.generic->derived = {DerivedExtent{{most + 1, {}}}};
  expect_error(ErrorCode::kInvalidPackage, "a formula is too large", [&] { plan_set_to_json(derived); });
  PlanSet set = plan_set();
  set.special[0].step_holes[0].value = {most, std::vector<DimProduct>(64, {most, {{0, most, -most, most}}})};
  const std::string text = plan_set_to_json(set);
  EXPECT_EQ(plan_set_to_json(plan_set_from_json(text)), text);
}

TEST(ChoosePlan, AnOutputThatSeveralPlansMakeHasNoName) {
  std::vector<TensorInfo> inputs, outputs;
  describe_ports(plan_set(), inputs, outputs);
  EXPECT_EQ(to_string(inputs.at(1).shape), "[M,8]");
  EXPECT_EQ(to_string(outputs.at(0).shape), "[-1,8]");
}

}  // namespace
}  // namespace tensormill::package
