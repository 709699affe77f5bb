/// Algorithms of a layer as alternatives of the tuner: tasks, the choice from records, the compiled package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/driver/compile.h"
#include "compiler/ops/ops.h"
#include "compiler/tune/choose.h"
#include "compiler/tune/session.h"
#include "runtime/package/metadata.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

constexpr const char* kCompiler = "this compiler";

/// relu of a 3x3 convolution, 16 channels on 12 x 12, beside other weights that make room for transformed
/// ones.
ir::Graph conv_net() {
  ir::Graph graph(ops::standard_ops());
  const ir::ValueId x = graph.add_input("x", {DType::kFloat32, {1, 16, 12, 12}});
  const ir::ValueId w = graph.add_constant("w", driver::seeded_tensor({DType::kFloat32, {16, 16, 3, 3}}, 1));
  const ir::ValueId spare =
      graph.add_constant("spare", driver::seeded_tensor({DType::kFloat32, {12, 600}}, 2));
  const ir::ValueId y =
      graph.add_node("conv", {x, w, ir::kAbsent}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}})[0];
  const ir::ValueId z = graph.add_node("relu", {y})[0];
  graph.set_outputs({graph.add_node("matmul", {z, spare})[0]});
  return graph;
}

/// The tasks of the convolution, by algorithm.
std::map<std::string, Task> layer_tasks() {
  std::map<std::string, Task> tasks;
  for (Task& task : extract_all_tasks(conv_net(), tune_test::host_target(), 3)) {
    if (task.layer.empty()) continue;
    EXPECT_TRUE(tasks.emplace(task.algorithm, task).second) << "found twice";
  }
  return tasks;
}

Record record_of(const Task& task, double seconds) {
  Record record;
  record.target = tune_test::host_target().canonical();
  record.task_key = task.key();
  record.layer = task.layer;
  record.algorithm = task.algorithm;
  record.seconds = {seconds};
  record.codegen = kCompiler;
  return record;
}

/// metadata.json of a package compiled with what the records say.
std::string metadata_with(const std::vector<Record>& records) {
  driver::CompileOptions options;
  options.target = tune_test::host_target();
  options.verify = driver::VerifyMode::kFull;
  options.algorithms = choose_algorithms(records, options.target, kCompiler);
  return driver::compile(conv_net(), options).metadata_json;
}

/// The convolution's kernel there.
package::KernelInfo compiled(const std::vector<Record>& records) {
  for (const package::KernelInfo& kernel : package::metadata_from_json(metadata_with(records)).kernels) {
    if (!kernel.algorithm.empty()) return kernel;
  }
  ADD_FAILURE() << "no kernel has several algorithms";
  return {};
}

TEST(Algorithms, EachIsATaskOfTheLayer) {
  const auto tasks = layer_tasks();
  ASSERT_EQ(tasks.size(), 3U);
  int64_t calls = 0;
  for (const auto& [algorithm, task] : tasks) {
    EXPECT_EQ(task.layer, tasks.at("direct").key());
    calls += task.calls;
  }
  EXPECT_EQ(calls, 1) << "the rule's alone";
  const auto all = extract_all_tasks(conv_net(), tune_test::host_target(), 3);
  const auto own = extract_tasks(conv_net(), tune_test::host_target(), 3);
  ASSERT_EQ(all.size(), own.size() + 2);
  for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(all[i].key(), own[i].key()) << "the rule's stand first";
}

TEST(Algorithms, TheOneThatRecordsFavourIsCompiled) {
  const auto tasks = layer_tasks();
  for (const auto& [favoured, task] : tasks) {
    std::vector<Record> records;
    for (const auto& [algorithm, other] : tasks)
      records.push_back(record_of(other, algorithm == favoured ? 1 : 2));
    const package::KernelInfo kernel = compiled(records);
    EXPECT_EQ(kernel.algorithm, favoured);
    EXPECT_EQ(kernel.algorithm_reason, "records");
    EXPECT_EQ(kernel.task_key, task.key());
    EXPECT_EQ(kernel.verified, "full");
  }
}

TEST(Algorithms, TheRuleStaysWhereNothingIsKnownOrFaster) {
  const auto tasks = layer_tasks();
  const package::KernelInfo rule = compiled({});
  EXPECT_EQ(rule.algorithm_reason, "rule");
  std::vector<Record> ties, others;
  for (const auto& [algorithm, task] : tasks) {
    ties.push_back(record_of(task, algorithm == rule.algorithm ? 1 : 0.995));
    if (algorithm != rule.algorithm) others.push_back(record_of(task, 0.5));
  }
  const package::KernelInfo tied = compiled(ties), unknown = compiled(others);
  EXPECT_EQ(tied.algorithm, rule.algorithm);
  EXPECT_EQ(tied.algorithm_reason, "records");
  EXPECT_EQ(unknown.algorithm, rule.algorithm) << "nobody knows the rule's own time";
  EXPECT_EQ(unknown.algorithm_reason, "rule");
}

TEST(Algorithms, TheOrderOfRecordsChangesNoByte) {
  std::vector<Record> records;
  for (const auto& [algorithm, task] : layer_tasks()) records.push_back(record_of(task, 1));
  const std::string first = metadata_with(records);
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(metadata_with(records), first);
}

TEST(Algorithms, TimesOfOneKindAreCompared) {
  const auto tasks = layer_tasks();
  const target::Target target = tune_test::host_target();
  Record direct = record_of(tasks.at("direct"), 1), filtered = record_of(tasks.at("F(4,3)"), 0.5);
  const auto instead_of_direct = [&] {
    return choose_algorithms({direct, filtered}, target, kCompiler).at(direct.layer).at("direct");
  };
  EXPECT_EQ(instead_of_direct(), "F(4,3)");
  direct.final = true;
  EXPECT_EQ(instead_of_direct(), "direct") << "one trial against what was measured in turns";
  filtered.final = true;
  EXPECT_EQ(instead_of_direct(), "F(4,3)");
  direct.layer = direct.algorithm = "";
  EXPECT_EQ(choose_algorithms({direct, filtered}, target, kCompiler).at(filtered.layer).at("direct"),
            "F(4,3)")
      << "a record without a layer";
  filtered.algorithm = "F(6,3)";
  EXPECT_TRUE(choose_algorithms({direct, filtered}, target, kCompiler).empty()) << "no algorithm";
}

/// Gives each algorithm's candidates one time; with cold caches `cold` times that of the last one in it.
class ByAlgorithm : public Measurer {
public:
  explicit ByAlgorithm(std::map<std::string, double> seconds, std::map<std::string, double> cold = {})
      : seconds_(std::move(seconds)), cold_(std::move(cold)) {}
  void set_task(const Task& task, const Workload&) override { algorithm_ = task.algorithm; }
  Measurement measure(const codegen::Object&, const plan::KernelWorkspace&,
                      const MeasureOptions& options) override {
    const double seconds = options.flush_cache && cold_.contains(algorithm_) ? cold_.at(algorithm_)
                           : seconds_.contains(algorithm_)                   ? seconds_.at(algorithm_)
                                                                             : 1;
    return {TrialError::kNone, "", {seconds}};
  }

private:
  std::map<std::string, double> seconds_, cold_;
  std::string algorithm_;
};

/// What a session of `trials` leaves, and the trials of each algorithm.
std::vector<Record> tuned(Measurer& measurer, int64_t trials, std::map<std::string, int64_t>& attempts) {
  std::vector<Record> records;
  TuneOptions options;
  options.tuner = "random";
  options.trials = trials;
  options.codegen = kCompiler;
  options.final_rounds = 2;
  double clock = 0;
  TuneHooks hooks;
  hooks.clock = [&] { return clock += 1; };
  hooks.record = [&](const Record& record) { records.push_back(record); };
  std::vector<Task> tasks;
  for (auto& [algorithm, task] : layer_tasks()) tasks.push_back(std::move(task));
  const auto backend = codegen::make_llvm_backend();
  TuneSession session(std::move(tasks), tune_test::host_target(), options, *backend, measurer, hooks);
  session.run();
  for (const TaskState& state : session.tasks()) attempts[state.task.algorithm] = state.attempts;
  EXPECT_LE(session.best_latency(), session.default_latency());
  return records;
}

std::string others_than(const std::string& rule) { return rule == "direct" ? "F(2,3)" : "direct"; }

TEST(Algorithms, TheFastestOfALayerIsFoundAndTheHopelessGetNoTrials) {
  const std::string rule = compiled({}).algorithm;
  const std::string fast = others_than(rule);
  std::map<std::string, double> seconds = {{"direct", 4}, {"F(2,3)", 4}, {"F(4,3)", 4}};
  seconds[fast] = 1;
  ByAlgorithm measurer(seconds);
  std::map<std::string, int64_t> attempts;
  const std::vector<Record> records = tuned(measurer, 12, attempts);
  for (const auto& [algorithm, count] : attempts) EXPECT_EQ(count, algorithm == fast ? 10 : 1) << algorithm;
  EXPECT_EQ(compiled(records).algorithm, fast);
}

TEST(Algorithms, AnotherOneMustBeFasterWithColdCachesToo) {
  const std::string rule = compiled({}).algorithm;
  const std::string fast = others_than(rule);
  ByAlgorithm measurer({{fast, 0.5}}, {{fast, 2}});
  std::map<std::string, int64_t> attempts;
  EXPECT_EQ(compiled(tuned(measurer, 6, attempts)).algorithm, rule);
}

}  // namespace
}  // namespace tensormill::tune
