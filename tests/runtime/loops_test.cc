#include "runtime/package/loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runtime/exec/graph_executor.h"
#include "runtime/package/plan_memory.h"
#include "tests/expect_error.h"
#include "tests/runtime/loop_packages.h"
#include "tests/runtime/test_package.h"

namespace tensormill::package::loops::loops_test {
namespace {

ExecPlan counting_plan() {
  Archive archive = counting_archive();
  archive.plan.params_bytes = static_cast<int64_t>(archive.params.size());
  return archive.plan;
}

TEST(Loops, RunTheirBodyAsOftenAsDataSays) {
  for (const int threads : {1, 2}) {
    parallel::ThreadPool pool(threads);
    exec::GraphExecutor executor(load_archive(counting_archive().bytes()), {.max_threads = threads});
    const std::vector<float> x = {-3, -2, -1, 0, 1, 2, 3, 4};
    for (const int64_t m : {int64_t{3}, int64_t{0}, int64_t{4}, int64_t{-1}, int64_t{1}}) {
      set(executor, m, x);
      std::vector<exec::StepTime> profile;
      executor.run(pool, {.threads = threads, .profile = &profile});
      const int64_t trips = std::max<int64_t>(m, 0);
      EXPECT_EQ(profile.size(), trips == 0 ? 2u : 5u);
      const Tensor y = executor.copy_output(0), all = executor.copy_output(1),
                   count = executor.copy_output(2);
      EXPECT_EQ(count.values<int64_t>()[0], trips);
      for (size_t i = 0; i < 8; ++i) {
        const float w = static_cast<float>(i + 1);
        EXPECT_EQ(y.values<float>()[i], x[i] + static_cast<float>(trips) * w);
        for (size_t row = 0; row < 4; ++row)
          EXPECT_EQ(all.values<float>()[row * 8 + i],
                    static_cast<int64_t>(row) < trips ? std::max(x[i], 0.0f) + w : 0.0f);
      }
    }
  }
}

TEST(Loops, RefuseMoreIterationsThanThereArePlacesFor) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(counting_archive().bytes()));
  set(executor, 5, std::vector<float>(8, 1.0f));
  expect_error(ErrorCode::kTensorData, "more than 4 iterations", [&] { executor.run(pool); });
}

TEST(FreeDims, RefuseShapesThatAPlanNamesAndDoesNotHave) {
  Archive archive = counting_archive();
  archive.plan.params_bytes = static_cast<int64_t>(archive.params.size());
  PlanSet plans;
  plans.free_dims = {"D"};
  for (const Port& port : archive.plan.inputs) plans.input_shapes.push_back(port.shape);
  plans.input_shapes[1].front() = "D";
  plans.variants = {{{1}, archive.plan}};
  plans.generic = GenericPlan{{1}, {1}, {1}, archive.plan, {}, {}, {}, {}};
  archive.plans = std::move(plans);
  exec::GraphExecutor executor(load_archive(archive.bytes()));
  const std::vector<float> x(24, 1.0f);
  expect_error(ErrorCode::kInvalidTensor, "expected float32 [1,8]", [&] {
    executor.set_input("x", {DType::kFloat32, {3, 8}, x.data()});
  });
}

TEST(Loops, ReadTheirInputWhereItIsLent) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(counting_archive().bytes()));
  set(executor, 2, std::vector<float>(8, 1.0f));
  const std::vector<float> other(8, 5.0f);
  Tensor lent = Tensor::from<float>({1, 8}, other);
  executor.lend_input(1, lent.data());
  executor.run(pool);
  EXPECT_EQ(executor.copy_output(0).values<float>()[0], 5.0f + 2.0f);
}

/// No step between both ends: a and b change places.
Archive exchanging_archive(bool bounded) {
  Archive archive;
  for (const char* name : {"m", "a", "b", "i", "p", "q", "y", "z", "trips"}) {
    const bool input = archive.plan.buffers.size()<3, output = archive.plan.buffers.size()> 5;
    const DType dtype = std::string(name) == "i" || std::string(name) == "m" || std::string(name) == "trips"
                            ? DType::kInt64
                            : DType::kFloat32;
    archive.plan.buffers.push_back(buffer(name,
                                          input    ? BufferKind::kInput
                                          : output ? BufferKind::kOutput
                                                   : BufferKind::kTemp,
                                          dtype, {1}));
    const auto id = static_cast<int32_t>(archive.plan.buffers.size()) - 1;
    if (input) archive.plan.inputs.push_back({name, dtype, {Dim(int64_t{1})}, id});
    if (output) archive.plan.outputs.push_back({name, dtype, {Dim(int64_t{1})}, id});
  }
  archive.plan.buffers[3].shape = {};
  archive.plan.steps = {
      bounded ? loop_step("loop_begin", {0, 1, 2, 3, 4, 5}, 3,
                          R"({"carried":2,"condition":0,"loop":7,"max_trips":1})")
              : loop_step("loop_begin", {1, 2, 3, 4, 5}, 3,
                          R"({"carried":2,"condition":0,"loop":7,"max_trips":0})"),
      loop_step("loop_end", {3, 5, 4, 6, 7, 8}, 3, R"({"carried":2,"condition":0,"loop":7})")};
  archive.params.assign(64, '\0');
  return archive;
}

void set_pair(exec::GraphExecutor& executor, int64_t m) {
  const float a = 1, b = 2;
  executor.set_input("m", {DType::kInt64, {1}, &m});
  executor.set_input("a", {DType::kFloat32, {1}, &a});
  executor.set_input("b", {DType::kFloat32, {1}, &b});
}

TEST(Loops, HandOnWhatIsHandedOnCrosswise) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(exchanging_archive(true).bytes()));
  for (const int64_t m : {0, 1, 2, 7}) {
    set_pair(executor, m);
    executor.run(pool);
    EXPECT_EQ(executor.copy_output(0).values<float>()[0], m % 2 == 0 ? 1.0f : 2.0f) << m;
    EXPECT_EQ(executor.copy_output(1).values<float>()[0], m % 2 == 0 ? 2.0f : 1.0f) << m;
    EXPECT_EQ(executor.copy_output(2).values<int64_t>()[0], m);
  }
}

TEST(Loops, WithoutEndStopWhenTheRunIsCancelledOrLate) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(exchanging_archive(false).bytes()));
  set_pair(executor, 0);
  expect_error(ErrorCode::kDeadlineExceeded, "before step",
               [&] { executor.run(pool, {.deadline = std::chrono::steady_clock::now()}); });
  parallel::CancelToken cancel;
  std::jthread other([&] { cancel.cancel(); });
  expect_error(ErrorCode::kCancelled, "loop_", [&] { executor.run(pool, {.cancel = &cancel}); });
}

struct Wrong {
  const char* what;
  std::function<void(ExecPlan&)> change;
  const char* message;
};

TEST(Loops, EachRuleIsEnforcedAndNamed) {
  const auto attributes = [](size_t step, const char* text) {
    return [step, text](ExecPlan& plan) { plan.steps[step].attributes = text; };
  };
  const Wrong cases[] = {
      {"text", attributes(1, "{"), "/steps/1/attributes"},
      {"list", attributes(1, "[]"), "no object"},
      {"missing", attributes(1, R"({"carried":1,"condition":0,"max_trips":1})"), "loop"},
      {"unknown", attributes(4, R"({"carried":1,"condition":0,"loop":0,"max_trips":1})"), "max_trips"},
      {"other number", attributes(4, R"({"carried":1,"condition":0,"loop":1})"), "did not begin here"},
      {"fewer values", attributes(4, R"({"carried":0,"condition":0,"loop":0})"), "for the loop's 1"},
      {"too many values", attributes(1, R"({"carried":9,"condition":0,"loop":0,"max_trips":1})"), "too few"},
      {"condition", attributes(1, R"({"carried":1,"condition":1,"loop":0,"max_trips":0})"),
       "no one element of bool"},
      {"next condition", attributes(4, R"({"carried":1,"condition":1,"loop":0})"), "too many results"},
      {"no end", [](ExecPlan& p) { p.steps.pop_back(); }, "without an end"},
      {"two ends", [](ExecPlan& p) { p.steps.push_back(p.steps[4]), p.steps[5].name = "again"; },
       "did not begin"},
      {"no begin", [](ExecPlan& p) { p.steps.erase(p.steps.begin() + 1); }, "did not begin"},
      {"end first", [](ExecPlan& p) { std::swap(p.steps[1], p.steps[4]); }, "did not begin"},
      {"type of M", [](ExecPlan& p) { p.steps[1].args[0] = kX; }, "no one element of int64"},
      {"initial value", [](ExecPlan& p) { p.steps[1].args[1] = kW; }, "have other types"},
      {"next value", [](ExecPlan& p) { p.steps[4].args[1] = kW; }, "have other types"},
      {"iteration", [](ExecPlan& p) { p.steps[4].args[0] = kM; }, "number of the iteration"},
      {"part", [](ExecPlan& p) { p.steps[4].args[2] = kW; }, "no row"},
      {"part's bytes", [](ExecPlan& p) { p.buffers[kOther].bytes = 64; }, "no row"},
      {"extents of parts",
       [](ExecPlan& p) {
         p.buffers[kAll].shape = {4, 2, 4};
         p.outputs[1].shape = {Dim(int64_t{4}), Dim(int64_t{2}), Dim(int64_t{4})};
       },
       "no row"},
      {"no buffer", [](ExecPlan& p) { p.steps[1].args[1] = 99; }, "/steps/1/args/1"},
      {"results",
       [](ExecPlan& p) {
         p.steps[4].outputs = {4, 3, 5};
       },
       "behind its operands"},
      {"read behind",
       [](ExecPlan& p) {
         p.outputs[0] = {"y", DType::kFloat32, {Dim(int64_t{1}), Dim(int64_t{8})}, kOther};
       },
       "may have no iteration"},
  };
  validate_plan(counting_plan());
  for (const Wrong& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    ExecPlan plan = counting_plan();
    wrong.change(plan);
    expect_error(ErrorCode::kInvalidPackage, wrong.message, [&] { validate_plan(plan); });
  }
}

TEST(Loops, AreNotDeeperThanTheLimit) {
  for (const size_t depth : {kMaxLoopDepth, kMaxLoopDepth + 1}) {
    ExecPlan plan;
    plan.params_bytes = 64;
    for (size_t i = 0; i < 2 * depth; ++i)
      plan.buffers.push_back(buffer("", BufferKind::kTemp, DType::kInt64, i < depth ? Shape{} : Shape{1}));
    for (size_t i = 0; i < 2 * depth; ++i) {
      const bool begins = i < depth;
      const size_t loop = begins ? i : 2 * depth - 1 - i;
      const std::string attributes = R"({"carried":0,"condition":0,"loop":)" + std::to_string(loop) +
                                     (begins ? R"(,"max_trips":0})" : "}");
      const auto id = static_cast<int32_t>(loop), count = static_cast<int32_t>(depth + loop);
      plan.steps.push_back(loop_step(begins ? "loop_begin" : "loop_end",
                                     begins ? std::vector{id} : std::vector{id, count}, 1,
                                     attributes.c_str()));
    }
    if (depth == kMaxLoopDepth) {
      validate_plan(plan);
      EXPECT_EQ(loops_of(plan)[2].outer, 1);
      EXPECT_FALSE(has_loops_decided_by_data(plan));
    } else {
      expect_error(ErrorCode::kInvalidPackage, "inside each other", [&] { validate_plan(plan); });
    }
  }
}

TEST(Loops, KeepWhatIterationsRead) {
  const ExecPlan plan = counting_plan();
  EXPECT_TRUE(has_loops_decided_by_data(plan));
  const MemoryPlan memory = plan_memory(plan);
  const auto overlap = [&](int32_t a, int32_t b) {
    const int64_t from_a = memory.offsets[static_cast<size_t>(a)],
                  from_b = memory.offsets[static_cast<size_t>(b)];
    const int64_t to_a = from_a + plan.buffers[static_cast<size_t>(a)].bytes;
    const int64_t to_b = from_b + plan.buffers[static_cast<size_t>(b)].bytes;
    return from_a < to_b && from_b < to_a;
  };
  for (const int32_t kept : {kX, kPositive, kIteration, kAll}) {
    for (const int32_t other : {kSum, kOther}) EXPECT_FALSE(overlap(kept, other)) << kept << " " << other;
  }
  EXPECT_FALSE(overlap(kCarried, kOther));
  EXPECT_FALSE(overlap(kAll, kPositive));
}

TEST(Loops, HandOnInPlaceWhatNothingReadsAfter) {
  const auto offsets = [](const ExecPlan& plan) { return plan_memory(plan).offsets; };
  const std::vector<int64_t> kept = offsets(counting_plan());
  EXPECT_EQ(kept[kSum], kept[kCarried]);
  // The step may not write where it reads.
  ExecPlan plan = counting_plan();
  plan.steps[2].in_place.clear();
  EXPECT_NE(offsets(plan)[kSum], offsets(plan)[kCarried]);
  // Another step reads what was handed on after it, or before.
  plan = counting_plan();
  plan.steps[3].args[0] = kCarried;
  plan.steps[3].in_place.clear();
  EXPECT_NE(offsets(plan)[kSum], offsets(plan)[kCarried]);
  std::swap(plan.steps[2], plan.steps[3]);
  EXPECT_EQ(offsets(plan)[kSum], offsets(plan)[kCarried]);
  // What is handed on crosswise is read at the loop's end.
  Archive crosswise = exchanging_archive(true);
  crosswise.plan.params_bytes = static_cast<int64_t>(crosswise.params.size());
  const std::vector<int64_t> apart = offsets(crosswise.plan);
  EXPECT_NE(apart[4], apart[5]);
}

}  // namespace
}  // namespace tensormill::package::loops::loops_test
