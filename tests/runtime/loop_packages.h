/// Packages of loops made by hand for the runtime's tests.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/graph_executor.h"
#include "tests/runtime/test_package.h"

namespace tensormill::package::loops {

inline Buffer buffer(const char* name, BufferKind kind, DType dtype, const Shape& shape) {
  return {name, kind, dtype, shape, num_bytes(shape, dtype), -1, 0, 0};
}

inline Step loop_step(const char* function, const std::vector<int32_t>& args, size_t results,
                      const char* attributes) {
  Step step;
  step.name = function + std::to_string(args[0]);
  step.kind = StepKind::kHost;
  step.function = function;
  step.args = args;
  for (size_t i = args.size() - results; i < args.size(); ++i)
    step.outputs.push_back(static_cast<int32_t>(i));
  step.origins = {"the loop"};
  step.attributes = attributes;
  return step;
}

inline constexpr int32_t kM = 0, kX = 1, kW = 2, kIteration = 3, kCarried = 4, kSum = 5, kFinal = 6, kAll = 7,
                         kTrips = 8, kPositive = 9, kOther = 10;

/// relu(x) = p; m times: t = t + w, u = p + w in p's place if it may; final t, all of u, how many.
inline Archive counting_archive() {
  Archive archive;
  const Shape row{1, 8};
  archive.plan.buffers = {buffer("m", BufferKind::kInput, DType::kInt64, {1}),
                          buffer("x", BufferKind::kInput, DType::kFloat32, row),
                          buffer("w", BufferKind::kConstant, DType::kFloat32, {8}),
                          buffer("i", BufferKind::kTemp, DType::kInt64, {}),
                          buffer("t", BufferKind::kTemp, DType::kFloat32, row),
                          buffer("sum", BufferKind::kTemp, DType::kFloat32, row),
                          buffer("y", BufferKind::kOutput, DType::kFloat32, row),
                          buffer("all", BufferKind::kOutput, DType::kFloat32, {4, 1, 8}),
                          buffer("trips", BufferKind::kOutput, DType::kInt64, {1}),
                          buffer("p", BufferKind::kTemp, DType::kFloat32, row),
                          buffer("u", BufferKind::kTemp, DType::kFloat32, row)};
  const auto port = [&](int32_t id) {
    const Buffer& own = archive.plan.buffers[static_cast<size_t>(id)];
    return Port{own.name, own.dtype, DimShape(own.shape.begin(), own.shape.end()), id};
  };
  archive.plan.inputs = {port(kM), port(kX)};
  archive.plan.outputs = {port(kFinal), port(kAll), port(kTrips)};
  const auto kernel = [](const char* name, const char* function, std::vector<int32_t> args,
                         std::vector<int64_t> dims, std::vector<InPlace> in_place) {
    const auto output = static_cast<int32_t>(args.size()) - 1;
    return Step{name,
                StepKind::kKernel,
                function,
                std::move(args),
                {output},
                std::move(dims),
                std::move(in_place),
                0,
                0,
                {},
                "",
                0,
                0};
  };
  archive.plan.steps = {kernel("relu", "k_relu", {kX, kPositive}, {8}, {}),
                        loop_step("loop_begin", {kM, kX, kIteration, kCarried}, 2,
                                  R"({"carried":1,"condition":0,"loop":0,"max_trips":1})"),
                        kernel("step", "k_add", {kCarried, kW, kSum}, {1, 8}, {{2, 0}}),
                        kernel("shifted", "k_add", {kPositive, kW, kOther}, {1, 8}, {{2, 0}}),
                        loop_step("loop_end", {kIteration, kSum, kOther, kFinal, kAll, kTrips}, 3,
                                  R"({"carried":1,"condition":0,"loop":0})")};
  archive.params.assign(32 + 64, '\0');
  for (int i = 0; i < 8; ++i) {
    const auto value = static_cast<float>(i + 1);
    std::memcpy(archive.params.data() + i * 4, &value, 4);
  }
  return archive;
}

inline void set(exec::GraphExecutor& executor, int64_t m, const std::vector<float>& x) {
  executor.set_input("m", {DType::kInt64, {1}, &m});
  executor.set_input("x", {DType::kFloat32, {1, 8}, x.data()});
}

}  // namespace tensormill::package::loops
