/// What the iterations of a loop make of any size, in buffers that grow.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>

#include "runtime/host_ops/growing_buffers.h"
#include "runtime/host_ops/registry.h"
#include "tests/expect_error.h"
#include "tests/runtime/loop_packages.h"

namespace tensormill::package::loops {
namespace {

/// m times: t = t + w, u = relu(x) + w; final t, all of u, as many as there are: a plan without free dims.
Archive appending_archive() {
  Archive archive = counting_archive();
  ExecPlan& plan = archive.plan;
  const auto add = [&](const char* name, BufferKind kind, const Shape& shape) {
    plan.buffers.push_back(buffer(name, kind, DType::kInt64, shape));
    return static_cast<int32_t>(plan.buffers.size()) - 1;
  };
  const int32_t none = add("none", BufferKind::kConstant, {1}), rows = add("rows", BufferKind::kTemp, {1}),
                more = add("more", BufferKind::kTemp, {1}), made = add("made", BufferKind::kTemp, {1}),
                bound = add("bound", BufferKind::kTemp, {1});
  plan.buffers[static_cast<size_t>(none)].params_offset = 64;
  archive.params.resize(192, '\0');
  plan.steps[1] = loop_step("loop_begin", {kM, kX, none, kIteration, kCarried, rows}, 3,
                            R"({"carried":2,"condition":0,"loop":0,"max_trips":1})");
  plan.steps[4] = loop_step("append_growing", {rows, kOther, more}, 1, R"({"buffer":0})");
  plan.steps.push_back(loop_step("loop_end", {kIteration, kSum, more, kFinal, made, kTrips}, 3,
                                 R"({"carried":2,"condition":0,"loop":0})"));
  plan.steps.push_back(loop_step("bind_extents", {made, bound}, 1, "{}"));
  const auto bind = static_cast<int32_t>(plan.steps.size()) - 1;
  plan.steps.push_back(loop_step("take_growing", {made, kAll}, 1, R"({"buffer":0})"));
  plan.params_bytes = static_cast<int64_t>(archive.params.size());
  PlanSet plans;
  for (const Port& port : plan.inputs) plans.input_shapes.push_back(port.shape);
  plans.generic = GenericPlan{{}, {}, {}, plan, {}, {{kAll, 0, {0, {{1, {{0, 1, 0, 1}}}}}}}, {}, {}};
  plans.generic->run_dims = {{"T", bind, 0, 0, 4}};
  archive.plans = std::move(plans);
  return archive;
}

void expect_rows(exec::GraphExecutor& executor, parallel::ThreadPool& pool, int64_t m) {
  const std::vector<float> x = {-3, -2, -1, 0, 1, 2, 3, 4};
  set(executor, m, x);
  executor.run(pool);
  const int64_t trips = std::max<int64_t>(m, 0);
  const Tensor y = executor.copy_output(0), all = executor.copy_output(1), count = executor.copy_output(2);
  EXPECT_EQ(count.values<int64_t>()[0], trips);
  ASSERT_EQ(all.shape(), (Shape{trips, 1, 8}));
  for (size_t i = 0; i < 8; ++i) {
    const float w = static_cast<float>(i + 1);
    EXPECT_EQ(y.values<float>()[i], x[i] + static_cast<float>(trips) * w);
    for (size_t row = 0; row < static_cast<size_t>(trips); ++row)
      EXPECT_EQ(all.values<float>()[row * 8 + i], std::max(x[i], 0.0f) + w) << row;
  }
}

TEST(GrowingLoops, MakeAsManyRowsAsThereAreIterations) {
  for (const int threads : {1, 2}) {
    parallel::ThreadPool pool(threads);
    exec::GraphExecutor executor(load_archive(appending_archive().bytes()), {.max_threads = threads});
    for (const int64_t m : {1, 0, 3, 700, 2, -1, 5000, 699}) expect_rows(executor, pool, m);
  }
}

TEST(GrowingLoops, OfTwoExecutorsAreApart) {
  const std::shared_ptr<const LoadedPackage> package = load_archive(appending_archive().bytes());
  const auto run = [&](int64_t first) {
    parallel::ThreadPool pool(1);
    exec::GraphExecutor executor(package);
    for (int64_t m = first; m < first + 40; m += 3) expect_rows(executor, pool, m);
  };
  std::jthread one([&] { run(0); }), other([&] { run(200); });
}

TEST(GrowingLoops, NameTheirNodeWhereThereIsNoMoreMemory) {
  parallel::ThreadPool pool(1);
  exec::GraphExecutor executor(load_archive(appending_archive().bytes()), {.memory_budget = 100 * 1024});
  for (const int64_t hostile : {int64_t{1} << 20, int64_t{1} << 60}) {
    set(executor, hostile, std::vector<float>(8, 1.0f));
    expect_error(ErrorCode::kMemoryBudget, "node \"the loop\": what the iterations so far have made",
                 [&] { executor.run(pool); });
  }
  // There is memory for the rows, and none for them and the result.
  set(executor, 3000, std::vector<float>(8, 1.0f));
  expect_error(ErrorCode::kMemoryBudget, "node \"the loop\"", [&] { executor.run(pool); });
  expect_rows(executor, pool, 30);
}

TEST(GrowingLoops, NeedStepsThatAgree) {
  const auto changed = [](const std::function<void(PlanSet&)>& change) {
    Archive archive = appending_archive();
    change(*archive.plans);
    return archive.bytes();
  };
  parallel::ThreadPool pool(1);
  const auto fails = [&](ErrorCode code, const char* says, const std::function<void(PlanSet&)>& change) {
    exec::GraphExecutor executor(load_archive(changed(change)));
    set(executor, 3, std::vector<float>(8, 1.0f));
    expect_error(code, says, [&] { executor.run(pool); });
  };
  const auto with = [](size_t step, const char* attributes) {
    return [step, attributes](PlanSet& plans) { plans.generic->plan.steps[step].attributes = attributes; };
  };
  fails(ErrorCode::kTensorData, "left 0 bytes", with(7, R"({"buffer":1})"));
  fails(ErrorCode::kInvalidPackage, "no growing buffer", with(4, R"({"buffer":-1})"));
  fails(ErrorCode::kInvalidPackage, "no attribute \"buffer\"", with(4, "{}"));
}

}  // namespace
}  // namespace tensormill::package::loops

namespace tensormill::host_ops {
namespace {

TensorView view(const Tensor& tensor) { return {tensor.dtype(), tensor.shape(), tensor.data()}; }

TEST(GrowingBuffers, KeepWhatIsBeforeTheirEnd) {
  GrowingBuffers buffers;
  const std::array<std::byte, 3> three = {std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_TRUE(buffers.bytes(5).empty());
  for (size_t i = 0; i < 100; ++i) buffers.write(5, 3 * i, three);
  ASSERT_EQ(buffers.bytes(5).size(), 300u);
  for (size_t i = 0; i < 300; ++i) EXPECT_EQ(buffers.bytes(5)[i], three[i % 3]);
  buffers.write(5, 1, three);
  EXPECT_EQ(std::to_integer<int>(buffers.bytes(5)[1]), 1);
  EXPECT_EQ(buffers.bytes(5).size(), 4u);
  expect_error(ErrorCode::kInvalidPackage, "not the end", [&] { buffers.write(5, 5, three); });
  // What is there is enough for what is written; more is not allowed.
  buffers.set_limit(0);
  buffers.write(5, 4, three);
  expect_error(ErrorCode::kMemoryBudget, "no memory", [&] { buffers.write(6, 0, three); });
  EXPECT_GE(buffers.capacity(), 300);
  buffers.clear();
  EXPECT_EQ(buffers.capacity(), 0);
}

TEST(GrowingSteps, HandOnExtentsOfWhatTheySet) {
  GrowingBuffers buffers;
  const auto call = [&](const char* step, const std::vector<TensorView>& inputs, Tensor& output) {
    const std::vector<void*> outputs = {output.data()};
    const std::vector<size_t> bytes = {output.num_bytes()};
    find_host_op(step)({inputs, outputs, bytes, R"({"buffer":2})", false, &buffers});
  };
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 1.0f);
  const Tensor x = Tensor::from<float>({2, 3}, values), other = Tensor::zeros(DType::kFloat32, {2, 3});
  Tensor extents(DType::kInt64, {2}), taken(DType::kFloat32, {2, 3}), less(DType::kFloat32, {2, 2});
  call("set_growing", {view(x)}, extents);
  EXPECT_EQ(extents.values<int64_t>()[0], 2);
  EXPECT_EQ(extents.values<int64_t>()[1], 3);
  call("take_growing", {view(extents)}, taken);
  EXPECT_EQ(taken.values<float>()[5], 6);
  // Before any iteration there is the initial value.
  for (const int64_t trip : {1, 0}) {
    const Tensor number = Tensor::from<int64_t>({}, std::vector<int64_t>{trip});
    call("take_growing", {view(extents), view(number), view(other)}, taken);
    EXPECT_EQ(taken.values<float>()[5], trip == 0 ? 0 : 6);
  }
  expect_error(ErrorCode::kTensorData, "left 24 bytes of a value of 16",
               [&] { call("take_growing", {view(extents)}, less); });
  Tensor rows(DType::kInt64, {1});
  for (const int64_t row : {0, 1}) {
    const Tensor number = Tensor::from<int64_t>({1}, std::vector<int64_t>{row});
    call("append_growing", {view(number), view(x)}, rows);
    EXPECT_EQ(rows.values<int64_t>()[0], row + 1);
  }
  EXPECT_EQ(buffers.bytes(2).size(), 48u);
  expect_error(ErrorCode::kTensorData, "iteration 2 makes 16 bytes, those before 48", [&] {
    call("append_growing", {view(rows), view(less)}, rows);
  });
}

}  // namespace
}  // namespace tensormill::host_ops
