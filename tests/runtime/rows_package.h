/// A package of two inputs with free rows, made by hand for the runtime's tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/exec/graph_executor.h"
#include "tests/runtime/test_package.h"

namespace tensormill::package {

inline const DimFormula kN{0, {{1, {{0, 1, 0, 1}}}}};
inline const DimFormula kM{0, {{1, {{1, 1, 0, 1}}}}};
inline constexpr int32_t kX = 0, kY = 1, kZ = 2;

/// x [n,8] and y [m,8]; z of as many rows as the larger one has.
inline ExecPlan rows_plan(int64_t n, int64_t m, Step step) {
  ExecPlan plan;
  const auto add = [&](const char* name, BufferKind kind, int64_t rows) {
    const Shape shape{rows, 8};
    plan.buffers.push_back({name, kind, DType::kFloat32, shape, num_bytes(shape, DType::kFloat32), -1, 0, 0});
    return Port{name, DType::kFloat32, DimShape(shape.begin(), shape.end()),
                static_cast<int32_t>(plan.buffers.size()) - 1};
  };
  plan.inputs = {add("x", BufferKind::kInput, n), add("y", BufferKind::kInput, m)};
  plan.outputs = {add("z", BufferKind::kOutput, std::max(n, m))};
  plan.steps = {std::move(step)};
  plan.params_bytes = 64;
  return plan;
}

inline Step add_step(const char* function, std::vector<int32_t> args, std::vector<int64_t> dims) {
  Step step;
  step.name = "add_0";
  step.kind = StepKind::kKernel;
  step.function = function;
  step.outputs = {static_cast<int32_t>(args.size()) - 1};
  step.args = std::move(args);
  step.dims = std::move(dims);
  step.origins = {"add"};
  return step;
}

/// z = relu(x) where there are as many rows of both; the sum where one of them has a single row.
inline PlanSet plan_set() {
  PlanSet set;
  set.free_dims = {"N", "M"};
  set.input_shapes = {{std::string("N"), int64_t{8}}, {std::string("M"), int64_t{8}}};
  const DimFormula elements{0, {{8, {{0, 1, 0, 1}}}}};
  set.generic = GenericPlan{{3, 3},
                            {1, 1},
                            {0, 0},
                            rows_plan(3, 3, add_step("k_relu", {kX, kZ}, {24})),
                            {},
                            {{kX, 0, kN}, {kY, 0, kN}, {kZ, 0, kN}},
                            {{0, 0, elements}},
                            {}};
  set.special = {GenericPlan{{3, 1},
                             {1, 1},
                             {0, 1},
                             rows_plan(3, 1, add_step("k_add", {kX, kY, kZ}, {3, 8})),
                             {},
                             {{kX, 0, kN}, {kZ, 0, kN}},
                             {{0, 0, kN}},
                             {}},
                 GenericPlan{{1, 3},
                             {1, 1},
                             {1, 0},
                             rows_plan(1, 3, add_step("k_add", {kY, kX, kZ}, {3, 8})),
                             {},
                             {{kY, 0, kM}, {kZ, 0, kM}},
                             {{0, 0, kM}},
                             {}}};
  return set;
}

/// `model`: of a set that holds one, its bytes.
inline Archive rows_archive(const PlanSet& set, const std::string& model = "") {
  Archive archive;
  archive.params = model;
  archive.params.resize((model.size() + 63) / 64 * 64 + 64, '\0');
  archive.plans = set;
  archive.plan = set.generic->plan;
  return archive;
}

inline exec::GraphExecutor executor_of(const PlanSet& set,
                                       int64_t memory = exec::ExecutorOptions().memory_budget) {
  return exec::GraphExecutor(load_archive(rows_archive(set).bytes()), {.memory_budget = memory});
}

inline void set_rows(exec::GraphExecutor& executor, const char* name, int64_t rows, float value) {
  const Tensor tensor =
      Tensor::from<float>({rows, 8}, std::vector<float>(static_cast<size_t>(rows) * 8, value));
  executor.set_input(name, {tensor.dtype(), tensor.shape(), tensor.data()});
}

}  // namespace tensormill::package
