/// Branches of plans: which steps run, what guards refuse, and which plans have none.
#include "runtime/package/branches.h"

#include <gtest/gtest.h>

#include "runtime/base/other_graph.h"
#include "tests/expect_error.h"
#include "tests/runtime/loop_packages.h"
#include "tests/runtime/test_package.h"

namespace tensormill::package::loops::branches_test {
namespace {

constexpr int32_t kCondition = 0, kRow = 1, kWeights = 2, kYes = 3, kNo = 4, kResult = 5;

Step kernel(const char* name, const char* function, std::vector<int32_t> args, std::vector<int64_t> dims) {
  Step step;
  step.name = name;
  step.function = function;
  step.outputs = {static_cast<int32_t>(args.size()) - 1};
  step.args = std::move(args);
  step.dims = std::move(dims);
  return step;
}

Step branch(size_t at, bool when, size_t steps) {
  Branch begun;
  begun.step = at;
  begun.when = when;
  begun.steps = steps;
  begun.condition = kCondition;
  return branch_step(begun);
}

/// condition ? relu(x) : x + w.
Archive choosing_archive() {
  Archive archive;
  const Shape row{1, 8};
  archive.plan.buffers = {buffer("condition", BufferKind::kInput, DType::kBool, {1}),
                          buffer("x", BufferKind::kInput, DType::kFloat32, row),
                          buffer("w", BufferKind::kConstant, DType::kFloat32, {8}),
                          buffer("yes", BufferKind::kTemp, DType::kFloat32, row),
                          buffer("no", BufferKind::kTemp, DType::kFloat32, row),
                          buffer("y", BufferKind::kOutput, DType::kFloat32, row)};
  const auto port = [&](int32_t id) {
    const Buffer& own = archive.plan.buffers[static_cast<size_t>(id)];
    return Port{own.name, own.dtype, DimShape(own.shape.begin(), own.shape.end()), id};
  };
  archive.plan.inputs = {port(kCondition), port(kRow)};
  archive.plan.outputs = {port(kResult)};
  Step choose;
  choose.kind = StepKind::kHost;
  choose.name = choose.function = "choose";
  choose.args = {kCondition, kYes, kNo, kResult};
  choose.outputs = {3};
  choose.attributes = "{}";
  archive.plan.steps = {branch(0, true, 1), kernel("relu", "k_relu", {kRow, kYes}, {8}), branch(2, false, 1),
                        kernel("sum", "k_add", {kRow, kWeights, kNo}, {1, 8}), choose};
  archive.params.assign(32 + 64, '\0');
  for (int i = 0; i < 8; ++i) {
    const auto value = static_cast<float>(i + 1);
    std::memcpy(archive.params.data() + i * 4, &value, 4);
  }
  return archive;
}

constexpr std::array<float, 8> kValues = {-3, -2, -1, 0, 1, 2, 3, 4};

void give(exec::GraphExecutor& executor, bool condition) {
  executor.set_input("condition", {DType::kBool, {1}, &condition});
  executor.set_input("x", {DType::kFloat32, {1, 8}, kValues.data()});
}

TEST(Branches, RunTheStepsThatTheConditionSays) {
  for (const int threads : {1, 2}) {
    parallel::ThreadPool pool(threads);
    exec::GraphExecutor executor(load_archive(choosing_archive().bytes()), {.max_threads = threads});
    for (const bool condition : {true, false, true}) {
      give(executor, condition);
      std::vector<exec::StepTime> profile;
      executor.run(pool, {.threads = threads, .profile = &profile});
      std::vector<size_t> steps;
      for (const exec::StepTime& time : profile) steps.push_back(time.step);
      EXPECT_EQ(steps, (std::vector<size_t>{condition ? size_t{1} : size_t{3}, 4}));
      const Tensor y = executor.copy_output(0);
      for (size_t i = 0; i < 8; ++i) {
        const float sum = kValues[i] + static_cast<float>(i + 1);
        EXPECT_EQ(y.values<float>()[i], condition ? std::max(kValues[i], 0.0f) : sum);
      }
    }
  }
}

/// The same, a row of N elements, of which each branch takes some: relu up to 8 of them, the sum 8.
Archive guarded_archive(bool is_demanded) {
  Archive archive = choosing_archive();
  archive.plan.params_bytes = static_cast<int64_t>(archive.params.size());
  const std::vector<std::string> names = {"N"};
  const auto guard = [&](const char* left, const char* relation) {
    PlanGuard own{Extent::parse(left).bound_to(names), Extent(8), relation, "the node"};
    return BranchGuard{own, is_demanded};
  };
  for (const size_t at : {size_t{0}, size_t{2}}) {
    Branch begun = branches_of(archive.plan)[at / 2];
    begun.dims = names;
    begun.guards = {at == 0 ? guard("N", "<=") : guard("N", "==")};
    archive.plan.steps[at].attributes = branch_step(begun).attributes;
  }
  PlanSet plans;
  plans.free_dims = names;
  for (const Port& port : archive.plan.inputs) plans.input_shapes.push_back(port.shape);
  plans.input_shapes[1].back() = "N";
  const DimFormula n{0, {{1, {{0, 1, 0, 1}}}}};
  plans.generic = GenericPlan{
      {8}, {1}, {1}, archive.plan, {}, {{kRow, 1, n}, {kYes, 1, n}, {kResult, 1, n}}, {{1, 0, n}}, {}};
  archive.plans = std::move(plans);
  return archive;
}

void give_row(exec::GraphExecutor& executor, bool condition, int64_t extent) {
  executor.set_input("condition", {DType::kBool, {1}, &condition});
  const std::vector<float> x(static_cast<size_t>(extent), -1.0f);
  executor.set_input("x", {DType::kFloat32, {1, extent}, x.data()});
}

TEST(Branches, RefuseExtentsWhereTheyAreTaken) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(guarded_archive(true).bytes()));
  give_row(executor, true, 5);
  executor.run(pool);
  EXPECT_EQ(executor.copy_output(0).shape(), (Shape{1, 5}));
  give_row(executor, false, 5);
  expect_error(ErrorCode::kInvalidTensor, "node \"the node\": N (5) has to be == 8",
               [&] { executor.run(pool); });
  give_row(executor, false, 8);
  executor.run(pool);
  EXPECT_EQ(executor.copy_output(0).values<float>()[7], 7.0f);
  give_row(executor, true, 11);
  expect_error(ErrorCode::kInvalidTensor, "N (11) has to be <= 8", [&] { executor.run(pool); });
}

TEST(Branches, OfWhichAnotherPlanMayBeIsNotTheModelsFault) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(guarded_archive(false).bytes()));
  give_row(executor, false, 5);
  EXPECT_THROW(executor.run(pool), OtherGraph);
}

TEST(Branches, ThatAreNoneAreRefused) {
  struct Case {
    const char* attributes;
    const char* message;
  };
  const Case cases[] = {
      {"", "/steps/0/attributes"},
      {"[]", "no object"},
      {R"({"steps":1})", "when"},
      {R"({"steps":5,"when":1})", "there are not so many behind it"},
      {R"({"steps":-1,"when":1})", "steps"},
      {R"({"steps":1,"when":2})", "when"},
      {R"({"steps":1,"when":1,"what":0})", "what"},
      {R"({"dims":["N"],"guards":[{"demanded":1,"left":"M","node":"","relation":"==","right":"1"}],"steps":1,"when":1})",
       "M"},
      {R"({"dims":["N"],"guards":[{"demanded":1,"left":"N","node":"","relation":"=","right":"1"}],"steps":1,"when":1})",
       "no relation"},
  };
  for (const Case& wrong : cases) {
    Archive archive = choosing_archive();
    archive.plan.params_bytes = static_cast<int64_t>(archive.params.size());
    archive.plan.steps[0].attributes = wrong.attributes;
    expect_error(ErrorCode::kInvalidPackage, wrong.message, [&] { validate_plan(archive.plan); });
  }
  Archive archive = choosing_archive();
  archive.plan.params_bytes = static_cast<int64_t>(archive.params.size());
  archive.plan.steps[0].args = {kRow};
  expect_error(ErrorCode::kInvalidPackage, "the condition is no one bool",
               [&] { validate_plan(archive.plan); });
  archive = counting_archive();
  archive.plan.params_bytes = static_cast<int64_t>(archive.params.size());
  archive.plan.buffers.push_back(buffer("c", BufferKind::kInput, DType::kBool, {1}));
  const auto condition = static_cast<int32_t>(archive.plan.buffers.size()) - 1;
  archive.plan.inputs.push_back({"c", DType::kBool, {Dim(int64_t{1})}, condition});
  Branch cut;
  cut.steps = 2;
  cut.condition = condition;
  archive.plan.steps.insert(archive.plan.steps.begin(), branch_step(cut));
  expect_error(ErrorCode::kInvalidPackage, "inside of a loop alone", [&] { validate_plan(archive.plan); });
}

}  // namespace
}  // namespace tensormill::package::loops::branches_test
