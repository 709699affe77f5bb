// Plans that stand for a whole model.
#include "runtime/package/model_step.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "runtime/host_ops/registry.h"
#include "runtime/package/plan_set.h"
#include "tests/expect_error.h"

namespace tensormill::package {
namespace {

constexpr const char* kAttributes = R"({"open":[0,1,1,0],"reason":"nobody knows \"s\""})";

/// x f32[2,3], s i64[2] -> y f32[2,1], z f32[1].
ExecPlan model_plan(const std::string& attributes = kAttributes) {
  ExecPlan plan;
  plan.buffers = {{"x", BufferKind::kInput, DType::kFloat32, {2, 3}, 24},
                  {"s", BufferKind::kInput, DType::kInt64, {2}, 16},
                  {"y", BufferKind::kOutput, DType::kFloat32, {2, 1}, 8},
                  {"z", BufferKind::kOutput, DType::kFloat32, {1}, 4}};
  plan.inputs = {{"x", DType::kFloat32, {2, 3}, 0}, {"s", DType::kInt64, {2}, 1}};
  plan.outputs = {{"y", DType::kFloat32, {2, 1}, 2}, {"z", DType::kFloat32, {1}, 3}};
  Step step;
  step.name = "run_model_0";
  step.kind = StepKind::kHost;
  step.function = kModelStep;
  step.args = {0, 1, 2, 3};
  step.outputs = {2, 3};
  step.attributes = attributes;
  plan.steps = {step};
  plan.params_bytes = 128;
  return plan;
}

PlanSet fixed_set() {
  PlanSet set;
  set.variants = {{{}, model_plan()}};
  set.input_shapes = {{int64_t{2}, int64_t{3}}, {int64_t{2}}};
  set.model = KeptModel{{{"", 0, 4}}, "options"};
  return set;
}

TEST(ModelStep, IsAPlanOfOneHostStep) {
  EXPECT_TRUE(is_model_step(model_plan()));
  EXPECT_EQ(model_step_reason(model_plan()), "nobody knows \"s\"");
  EXPECT_EQ(open_axes(model_plan()), (std::vector<std::pair<int32_t, size_t>>{{2, 1}, {3, 0}}));
  ExecPlan other = model_plan();
  other.steps[0].function = "trim";
  EXPECT_FALSE(is_model_step(other));
  other = model_plan();
  other.steps.push_back(other.steps[0]);
  EXPECT_FALSE(is_model_step(other));
  EXPECT_FALSE(is_model_step(ExecPlan()));
}

TEST(ModelStep, WhatNoCompilerWritesIsRefused) {
  for (const char* attributes : {"[]", "{}", R"({"open":3,"reason":"r"})", R"({"open":[0],"reason":"r"})",
                                 R"({"open":[0,-1],"reason":"r"})", R"({"open":[2,0],"reason":"r"})",
                                 R"({"open":[0,2],"reason":"r"})", R"({"open":["0",0],"reason":"r"})"})
    expect_error(ErrorCode::kInvalidPackage, "does not say rightly",
                 [&] { open_axes(model_plan(attributes)); });
  for (const char* attributes : {"3", R"({"open":[]})", R"({"open":[],"reason":7})"})
    expect_error(ErrorCode::kInvalidPackage, "does not say rightly",
                 [&] { model_step_reason(model_plan(attributes)); });
}

TEST(ModelStep, APackageOfFixedShapesHoldsItsModel) {
  const std::string text = plan_set_to_json(fixed_set());
  EXPECT_EQ(parse_json(text)["format_version"], kPlanSetFormatVersion);
  const PlanSet set = plan_set_from_json(text);
  EXPECT_FALSE(set.is_dynamic());
  ASSERT_TRUE(set.model.has_value());
  EXPECT_EQ(set.model->files[0].bytes, 4);
  EXPECT_TRUE(is_model_step(set.first()));
  EXPECT_EQ(plan_set_to_json(set), text);
  // Without a model a fixed package is its plan alone.
  Json json = parse_json(text);
  json.erase("model");
  expect_error(ErrorCode::kInvalidPackage, "/free_dims", [&] { plan_set_from_json(json.dump()); });
}

TEST(ModelStep, StandsForTheModelAtAnyShape) {
  PlanSet set = fixed_set();
  set.free_dims = {"N"};
  set.input_shapes = {{std::string("N"), int64_t{3}}, {int64_t{2}}};
  const ExecPlan plan = plan_of_model(set, {7}, "nobody knows");
  validate_plan(plan);
  EXPECT_TRUE(is_model_step(plan));
  EXPECT_EQ(model_step_reason(plan), "nobody knows");
  ASSERT_EQ(plan.inputs.size(), 2u);
  EXPECT_EQ(plan.inputs[0].shape, (DimShape{int64_t{7}, int64_t{3}}));
  EXPECT_EQ(plan.inputs[1].shape, (DimShape{int64_t{2}}));
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[1].name, "z");
  EXPECT_EQ(open_axes(plan), (std::vector<std::pair<int32_t, size_t>>{{2, 0}, {2, 1}, {3, 0}}));
}

TEST(ModelStep, OpenExtentsHaveNoName) {
  std::vector<TensorInfo> inputs, outputs;
  describe_ports(fixed_set(), inputs, outputs);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].shape, (DimShape{int64_t{2}, std::string()}));
  EXPECT_EQ(outputs[1].shape, (DimShape{std::string()}));
  EXPECT_EQ(inputs[0].shape, (DimShape{int64_t{2}, int64_t{3}}));
}

TEST(ModelStep, SaysWhyItDoesNotRun) {
  const host_ops::HostFunction run = host_ops::find_host_op(kModelStep);
  ASSERT_NE(run, nullptr);
  expect_error(ErrorCode::kInvalidTensor, "interprets no model: nobody knows \"s\"", [&] {
    run({{}, {}, {}, kAttributes});
  });
}

}  // namespace
}  // namespace tensormill::package
