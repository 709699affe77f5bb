/// Kernels of free extents as tasks: where they are measured and checked, what their records are taken for.
#include "compiler/tune/symbolic_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/jit.h"
#include "compiler/driver/compile.h"
#include "compiler/ops/ops.h"
#include "compiler/tune/choose.h"
#include "compiler/tune/session.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/measure/worker.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kBuild = "a compiler";

/// softmax(relu(x w)) of any number of rows.
ir::Variants model(int64_t columns = 48) {
  const std::string row = std::to_string(columns) + "]";
  const std::string text = "graph \"product\" dims(N: 24) (%x: f32[N,40], %w: f32[40," + row +
                           ") {\n  %y: f32[N," + row + " = matmul(%x, %w)\n  %z: f32[N," + row +
                           " = relu(%y)\n  %s: f32[N," + row + " = softmax(%z) {axis: 1}\n  return %s\n}\n";
  ir::Variants variants;
  variants.free_dims = {"N"};
  variants.input_shapes = {{"N", int64_t{40}}, {int64_t{40}, columns}};
  variants.symbolic = ir::SymbolicModel{ir::parse_graph(text, ops::standard_ops()), {"N"}};
  return variants;
}

std::vector<Task> tasks_of(const ir::Variants& variants, std::vector<std::vector<int64_t>> extents = {}) {
  SymbolicOptions options;
  options.extents = std::move(extents);
  return symbolic_tasks(variants, tune_test::host_target(), options);
}

Task product_task(const ir::Variants& variants, std::vector<std::vector<int64_t>> extents = {}) {
  for (Task& task : tasks_of(variants, std::move(extents))) {
    if (task.name.find("matmul") != std::string::npos) return std::move(task);
  }
  throw std::logic_error("there is no product");
}

/// Its plan holds for numbers of rows alone of which the guard is true.
ir::Variants guarded_model(const std::string& guard) {
  ir::Variants variants = model();
  const std::string text = ir::print(variants.symbolic->graph);
  const size_t at = text.find("dims(N: 24) ") + 12;
  variants.symbolic->graph = ir::parse_graph(
      text.substr(0, at) + "guards(\"" + guard + "\" \"\") " + text.substr(at), ops::standard_ops());
  return variants;
}

/// The same, where one row is computed in another way: a plan of its own.
ir::Variants with_ones() {
  ir::Variants variants = guarded_model("N != 1");
  const char* ones =
      "graph \"product\" dims(M: 3) (%x: f32[M,40], %w: f32[40,48]) {\n"
      "  %y: f32[M,48] = matmul(%x, %w)\n  %z: f32[M,48] = sigmoid(%y)\n  return %z\n}\n";
  variants.free_dims.push_back("M");
  variants.symbolic->symbols.push_back("M");
  variants.symbolic_ones.push_back({ir::parse_graph(ones, ops::standard_ops()), {"N", "M"}});
  return variants;
}

std::set<std::string> keys_of(const std::vector<Task>& tasks) {
  std::set<std::string> keys;
  for (const Task& task : tasks) keys.insert(task.key());
  return keys;
}

/// Of the first input.
int64_t rows_of(const Workload& workload) { return workload.inputs[0].shape()[0]; }

TEST(SymbolicTasks, KernelsOfAllExtentsAreTasks) {
  const std::vector<Task> tasks = tasks_of(model(), {{24}, {100}});
  EXPECT_GE(tasks.size(), 3U) << "softmax is several kernels";
  for (const Task& task : tasks) {
    EXPECT_EQ(make_workloads(task).size(), 2U) << task.name;
    EXPECT_EQ(rows_of(make_workloads(task)[1]), 100) << task.name;
    EXPECT_GE(task.calls, 1);
    EXPECT_GT(task.bytes, 0);
  }
  EXPECT_THAT(product_task(model(), {{24}, {100}}).args, HasSubstr("-> f32[24,48], f32[100,40]"));
  EXPECT_EQ(rows_of(make_workloads(product_task(model()))[0]), 24) << "as the model was imported";
  EXPECT_EQ(product_task(model(), {{24}, {100}}).free_args, "f32[N,40] f32[40,48] -> f32[N,48]");
}

TEST(SymbolicTasks, ExtentsHaveTheModelsNamesAndWhatIsMadeOfThem) {
  ir::Variants variants;
  variants.free_dims = {"rows"};
  variants.input_shapes = {{"rows", int64_t{4}}};
  variants.symbolic = ir::SymbolicModel{
      ir::parse_graph(
          "graph \"windows\" dims(N: 9) (%x: f32[N,4]) {\n"
          "  %y: f32[(N + 1)//2,4] = slice(%x) {extents: dims[(N + 1)//2, 4], starts: dims[0, 0], "
          "steps: ints[2, 1]}\n  %z: f32[(N + 1)//2,4] = relu(%y)\n  return %z\n}\n",
          ops::standard_ops()),
      {"N"}};
  const std::vector<Task> tasks = tasks_of(variants);
  ASSERT_FALSE(tasks.empty());
  EXPECT_EQ(tasks.front().free_args, "f32[rows,4] -> f32[(rows + 1)//2,4]");
  EXPECT_EQ(tasks.front().args, "f32[9,4] -> f32[5,4]");
}

TEST(SymbolicTasks, TheKeyIsOfTheStructureAndNotOfAShape) {
  EXPECT_EQ(keys_of(tasks_of(model(), {{24}})), keys_of(tasks_of(model(), {{3}, {1000}})));
  EXPECT_NE(product_task(model(48)).key(), product_task(model(64)).key());
}

TEST(SymbolicTasks, TilesAreCheckedAround) {
  const Task task = product_task(model());
  const auto steps = schedule::parse_schedule("choose rows 5\n");
  const std::vector<plan::Tail> tails = plan::loops_by(*task.symbolic->kernel().source, steps).tails;
  std::set<int64_t> rows;
  for (const Workload* workload : task.symbolic->checked(tails)) rows.insert(rows_of(*workload));
  for (const int64_t extent : {0, 1, 4, 5, 6}) EXPECT_THAT(rows, Contains(extent));
}

TEST(SymbolicTasks, ExtentsAreNamed) {
  EXPECT_THAT(named_extents(model(), {}), testing::ElementsAre(std::vector<int64_t>{24}))
      << "as the model was imported";
  EXPECT_THAT(named_extents(model(), {{"N", {1, 8}}}),
              testing::ElementsAre(std::vector<int64_t>{1}, std::vector<int64_t>{8}));
  try {
    named_extents(model(), {{"M", {1}}});
    FAIL() << "M is no free dim";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    ASSERT_EQ(error.details().size(), 1U);
    EXPECT_EQ(error.details()[0].pointer, "/extents/M");
  }
  ir::Variants buckets = model();
  buckets.graphs.push_back({{3}, buckets.symbolic->graph});
  EXPECT_THAT(named_extents(buckets, {}), testing::ElementsAre(std::vector<int64_t>{3}));
  EXPECT_EQ(extents_json({{3}, {9}}, {"N"}), Json::parse(R"([{"N":3},{"N":9}])"));
}

TEST(SymbolicTasks, PlansOfExtentsOfOneHaveTasksOfTheirOwn) {
  ir::Variants without = with_ones();
  without.symbolic_ones.clear();
  const std::set<std::string> general = keys_of(tasks_of(without));
  const std::vector<Task> all = tasks_of(with_ones());
  std::vector<int64_t> rows;
  for (const Task& task : all) {
    if (!general.contains(task.key())) rows.push_back(rows_of(make_workloads(task)[0]));
  }
  ASSERT_FALSE(rows.empty());
  EXPECT_THAT(rows, testing::Each(3)) << "of M, where it was imported";
  // Each of the named extents is measured in the plan that serves it.
  for (const Task& task : tasks_of(with_ones(), {{5, 1}, {1, 9}})) {
    ASSERT_EQ(make_workloads(task).size(), 1U);
    EXPECT_EQ(rows_of(make_workloads(task)[0]), general.contains(task.key()) ? 5 : 9) << task.name;
  }
  EXPECT_EQ(keys_of(tasks_of(with_ones(), {{5, 1}})), general);
  EXPECT_THROW(tasks_of(with_ones(), {{5, 2}}), Error) << "no plan serves both";
}

TEST(SymbolicTasks, WhatExtentsOfOneMakeConstantIsATaskToo) {
  ir::Variants variants = guarded_model("N != 1");
  const char* ones =
      "graph \"product\" dims() (%x: f32[1,40], %w: f32[40,48]) {\n"
      "  %y: f32[1,48] = matmul(%x, %w)\n  return %y\n}\n";
  variants.symbolic_ones.push_back({ir::parse_graph(ones, ops::standard_ops()), {"N"}});
  const auto has_row = [&](std::vector<std::vector<int64_t>> extents) {
    SymbolicOptions options;
    options.extents = std::move(extents);
    const std::vector<Task> tasks = package_tasks(variants, tune_test::host_target(), options);
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const Task& task) { return !task.symbolic && task.name == "matmul"; });
  };
  EXPECT_TRUE(has_row({}));
  EXPECT_TRUE(has_row({{1}, {8}}));
  EXPECT_FALSE(has_row({{8}})) << "nobody asks for one row";
}

TEST(SymbolicTasks, ExtentsThatNoPlanTakesAreLeftOutOnlyWhereNobodyNamedThem) {
  ir::Variants variants = guarded_model("N != 7");
  EXPECT_THROW(tasks_of(variants, {{7}, {9}}), Error);
  SymbolicOptions options;
  options.extents = {{7}, {9}};
  options.may_leave_out = true;
  const std::vector<Task> tasks = symbolic_tasks(variants, tune_test::host_target(), options);
  ASSERT_FALSE(tasks.empty());
  ASSERT_EQ(make_workloads(tasks.front()).size(), 1U);
  EXPECT_EQ(rows_of(make_workloads(tasks.front())[0]), 9);
}

/// Runs candidates here, and spoils the last row of what some of them make of some numbers of rows.
class Spoiler : public Measurer {
public:
  explicit Spoiler(std::set<int64_t> rows) : rows_(std::move(rows)) {}
  void set_task(const Task&, const Workload& workload) override { workload_ = &workload; }
  Measurement measure(const codegen::Object& object, const plan::KernelWorkspace& workspace,
                      const MeasureOptions& options) override {
    std::vector<Tensor> outputs;
    std::vector<void*> buffers;
    for (const Tensor& input : workload_->inputs) buffers.push_back(const_cast<void*>(input.data()));
    for (const ir::ValueType& type : workload_->outputs) {
      outputs.emplace_back(type.dtype, type.shape);
      buffers.push_back(outputs.back().data());
    }
    const auto library = codegen::JitLibrary::load(object);
    const int32_t code =
        driver::run_kernel(library->kernel(object.symbol), buffers, workspace, workload_->dims);
    if (rows_.contains(rows_of(*workload_)))
      outputs[0].set_element(outputs[0].num_elements() - 1, outputs[0].element_as_double(0) + 1);
    try {
      workload_->check(code, outputs);
    } catch (const Error& error) {
      return {TrialError::kWrongAnswer, error.message(), {}};
    }
    return {TrialError::kNone, "", std::vector<double>(static_cast<size_t>(options.repeat), 1e-3)};
  }

private:
  const std::set<int64_t> rows_;
  const Workload* workload_ = nullptr;
};

class SymbolicSession : public testing::Test {
protected:
  void run(Measurer& measurer, std::vector<Task> tasks, int64_t trials) {
    TuneOptions options;
    options.tuner = "random";
    options.trials = trials;
    options.cpu = "a cpu";
    options.codegen = kBuild;
    options.measure.min_repeat_ms = 0;
    options.final_rounds = 2;
    TuneHooks hooks;
    double clock = 1000;
    hooks.clock = [&] { return clock += 1; };
    hooks.record = [this](const Record& record) { records_.push_back(record); };
    const auto backend = codegen::make_llvm_backend();
    TuneSession(std::move(tasks), tune_test::host_target(), options, *backend, measurer, hooks).run();
  }
  std::vector<Record> records_;
};

TEST_F(SymbolicSession, AWrongTailIsFoundThatNoMeasurementMeets) {
  Spoiler none({});
  run(none, {product_task(model(), {{24}, {60}})}, 4);
  ASSERT_FALSE(records_.empty());
  for (const Record& record : records_) EXPECT_EQ(record.error, TrialError::kNone);
  const int64_t rows = [&] {
    for (const schedule::Knob& knob : records_[0].knobs) {
      if (knob.name == "rows") return knob.chosen;
    }
    return int64_t{0};
  }();
  ASSERT_GT(rows, 1) << "products have blocks of rows";
  records_.clear();
  Spoiler tail({rows + 1});
  run(tail, {product_task(model(), {{24}, {60}})}, 1);
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].error, TrialError::kWrongAnswer);
}

TEST_F(SymbolicSession, RecordsAreTakenForTheKernelsThatTheyAreOf) {
  measure::WorkerMeasurer measurer;
  run(measurer, tasks_of(model(), {{24}, {60}}), 24);
  for (const Record& record : records_) {
    EXPECT_EQ(record.error, TrialError::kNone) << record.schedule;
    EXPECT_EQ(to_line(record_from_line(to_line(record))), to_line(record));
  }
  driver::CompileOptions options;
  options.target = tune_test::host_target();
  options.schedules = choose_schedules(records_, options.target, kBuild);
  const auto tuned_of = [&](const ir::Variants& variants) {
    std::set<std::string> tuned;
    const driver::CompileResult result = driver::compile(variants, options);
    EXPECT_TRUE(result.refused_records.empty());
    const Json metadata = parse_json(result.metadata_json);
    for (const Json& kernel : metadata.at("kernels")) {
      if (kernel.at("tuning_record") != "") tuned.insert(kernel.at("task_key").get<std::string>());
    }
    return tuned;
  };
  EXPECT_EQ(tuned_of(model()), keys_of(tasks_of(model())));
  EXPECT_THAT(tuned_of(model(64)), testing::Not(Contains(product_task(model(64)).key())));
  for (const std::string& key : tuned_of(model(64)))
    EXPECT_THAT(keys_of(tasks_of(model())), Contains(key)) << "the kernel is the same";
}

TEST(SymbolicRecords, AWrongOneIsRefusedAndTheRuleStands) {
  driver::CompileOptions options;
  options.target = tune_test::host_target();
  const std::string plain = driver::compile(model(), options).code;
  options.schedules[product_task(model()).key()] = {"choose rows 77\n", std::string(64, 'a'), ""};
  const driver::CompileResult result = driver::compile(model(), options);
  ASSERT_EQ(result.refused_records.size(), 1U);
  EXPECT_THAT(result.refused_records[0].what, HasSubstr("knob rows cannot be 77"));
  EXPECT_FALSE(result.refused_records[0].is_damaged);
  EXPECT_EQ(result.code, plain);
}

}  // namespace
}  // namespace tensormill::tune
