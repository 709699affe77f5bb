/// What records are worth within their model, on a model whose kernels take what a table says.
#include "compiler/tune/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/tune/choose.h"
#include "tests/tune/support.h"

namespace tensormill::tune::network_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kCompiler = "this compiler";
constexpr int kRounds = 3;
constexpr double kNow = 1000;

const std::string kOne(64, '1'), kTwo(64, '2'), kLayer(64, 'a');

Record record(const std::string& kernel, const std::string& schedule, double seconds, bool is_default) {
  Record record;
  record.target = tune_test::host_target().canonical();
  record.task = "task " + kernel.substr(0, 1);
  record.task_key = kernel;
  record.schedule = schedule;
  record.seconds = {seconds};
  record.is_default = is_default;
  record.codegen = kCompiler;
  return record;
}

/// Of a kernel of a layer: found to be the best of its algorithm.
Record algorithm(const std::string& kernel, const std::string& name, double seconds) {
  Record made = record(kernel, "default of " + name, seconds, true);
  made.layer = kLayer;
  made.algorithm = name;
  made.final = true;
  return made;
}

/// A model that calls kernel 1 twice and, where it has that, one layer.
class FakeModel final : public NetworkBench {
public:
  FakeModel(std::vector<Record> records, std::map<std::string, double> seconds)
      : records_(std::move(records)), seconds_(std::move(seconds)) {}

  std::vector<Record> records() override { return records_; }
  void keep(const Record& record) override {
    records_.push_back(record);
    kept.push_back(record);
  }
  void compile() override {
    ++compiled;
    tuned_ = timed(choose_schedules(records_, target_, kCompiler),
                   choose_algorithms(records_, target_, kCompiler));
  }
  NetworkRounds run(int rounds) override {
    NetworkRounds done;
    for (int i = 0; i < rounds; ++i, ++measured) {
      done.untuned.push_back({{1.0}, timed({}, {})});
      const double seconds = run_seconds ? run_seconds(measured) : 1.0 / gain;
      done.tuned.push_back({{seconds, seconds * 2}, tuned_});
    }
    return done;
  }
  /// The schedules that a compile takes now, by kernel.
  std::map<std::string, std::string> schedules() {
    std::map<std::string, std::string> steps;
    for (const auto& [kernel, one] : choose_schedules(records_, target_, kCompiler))
      steps[kernel] = one.steps;
    return steps;
  }

  bool has_layer = false;
  double gain = 1.1;                       ///< of the whole
  std::function<double(int)> run_seconds;  ///< of a tuned run, by the number of its round
  int compiled = 0, measured = 0;
  std::vector<Record> kept;

private:
  KernelTimes timed(const std::map<std::string, driver::TunedSchedule>& schedules,
                    const driver::LayerAlgorithms& algorithms) const {
    KernelTimes times;
    const auto found = schedules.find(kOne);
    times[kOne] = {2, seconds_.at(found == schedules.end() ? "default" : found->second.steps)};
    if (!has_layer) return times;
    const auto layer = algorithms.find(kLayer);
    const bool replaced = layer != algorithms.end() && layer->second.at("direct") == "F(2,3)";
    times[replaced ? kTwo : kLayer] = {1, seconds_.at(replaced ? "F(2,3)" : "direct")};
    return times;
  }

  std::vector<Record> records_;
  std::map<std::string, double> seconds_;
  target::Target target_ = tune_test::host_target();
  KernelTimes tuned_;
};

NetworkOutcome settle(FakeModel& model) {
  return settle_in_network(model, tune_test::host_target(), kCompiler, kRounds, [] { return kNow; });
}

std::vector<Record> found() { return {record(kOne, "default", 2, true), record(kOne, "found", 1, false)}; }

TEST(Network, WhatPaysStays) {
  FakeModel model(found(), {{"default", 1.0}, {"found", 0.9}});
  const NetworkOutcome outcome = settle(model);
  EXPECT_TRUE(outcome.is_tuned);
  EXPECT_NEAR(outcome.gain, 1.1, 1e-12);
  EXPECT_THAT(outcome.left_out, IsEmpty());
  EXPECT_THAT(model.kept, IsEmpty());
  EXPECT_EQ(model.compiled, 1);
}

TEST(Network, WhatIsFasterAloneOnlyIsLeftOut) {
  FakeModel model(found(), {{"default", 1.0}, {"found", 0.995}});
  const NetworkOutcome outcome = settle(model);
  ASSERT_THAT(outcome.left_out, SizeIs(1));
  EXPECT_EQ(outcome.left_out[0].name, "task 1");
  EXPECT_EQ(outcome.left_out[0].key, kOne);
  EXPECT_EQ(outcome.left_out[0].calls, 2);
  EXPECT_EQ(outcome.left_out[0].untuned_seconds, 1.0);
  EXPECT_EQ(outcome.left_out[0].tuned_seconds, 0.995);
  EXPECT_EQ(model.schedules().at(kOne), "default");
  ASSERT_THAT(model.kept, SizeIs(1));
  EXPECT_TRUE(model.kept[0].final);
  EXPECT_THAT(model.kept[0].seconds, ElementsAre(0.5, 0.5, 0.5)) << "of one call, by round";
  EXPECT_EQ(model.kept[0].timestamp, kNow);
  EXPECT_EQ(model.compiled, 2) << "and the rest was measured";
  EXPECT_TRUE(outcome.is_tuned) << "both packages are the same now";
}

TEST(Network, WithoutARecordOfTheDefaultItStays) {
  FakeModel model({record(kOne, "found", 1, false)}, {{"default", 1.0}, {"found", 1.2}});
  model.gain = 0.9;
  const NetworkOutcome outcome = settle(model);
  EXPECT_THAT(model.kept, IsEmpty());
  EXPECT_FALSE(outcome.is_tuned);
}

TEST(Network, AnAlgorithmThatDoesNotPayIsLeftOut) {
  for (const double within : {0.5, 1.5}) {
    FakeModel model({algorithm(kLayer, "direct", 1), algorithm(kTwo, "F(2,3)", 0.5)},
                    {{"default", 1.0}, {"direct", 1.0}, {"F(2,3)", within}});
    model.has_layer = true;
    const NetworkOutcome outcome = settle(model);
    EXPECT_THAT(outcome.left_out, SizeIs(within > 1 ? 1 : 0)) << within;
    const auto chosen = choose_algorithms(model.records(), tune_test::host_target(), kCompiler);
    EXPECT_EQ(chosen.at(kLayer).at("direct"), within > 1 ? "direct" : "F(2,3)");
  }
}

TEST(Network, WhereTheWholeIsSlowerNothingIsTaken) {
  std::vector<Record> records = found();
  records.push_back(algorithm(kLayer, "direct", 1));
  records.push_back(algorithm(kTwo, "F(2,3)", 0.5));
  FakeModel model(records, {{"default", 1.0}, {"found", 0.9}, {"direct", 1.0}, {"F(2,3)", 0.5}});
  model.has_layer = true;
  model.gain = 0.99;
  const NetworkOutcome outcome = settle(model);
  EXPECT_FALSE(outcome.is_tuned);
  EXPECT_THAT(outcome.left_out, SizeIs(2));
  EXPECT_EQ(model.schedules().at(kOne), "default");
  const auto chosen = choose_algorithms(model.records(), tune_test::host_target(), kCompiler);
  EXPECT_EQ(chosen.at(kLayer).at("direct"), "direct") << "although it was the slower one of the two";
}

TEST(Network, RunsAtSeveralExtentsAreOne) {
  const NetworkRun mean =
      mean_run({{{2.0, 1.0}, {{kOne, {2, 4.0}}, {kTwo, {1, 3.0}}}}, {{4.0, 8.0}, {{kOne, {2, 1.0}}}}});
  ASSERT_THAT(mean.seconds, SizeIs(2));
  EXPECT_NEAR(mean.seconds[0], 2.0, 1e-12) << "of the least at each";
  EXPECT_NEAR(mean.seconds[1], 4.0, 1e-12);
  EXPECT_NEAR(mean.kernels.at(kOne).seconds, 2.0, 1e-12);
  EXPECT_EQ(mean.kernels.at(kOne).calls, 2);
  EXPECT_NEAR(mean.kernels.at(kTwo).seconds, 3.0, 1e-12) << "it runs at the first extents alone";
}

TEST(Network, TheSameCodeIsNeverSlower) {
  FakeModel model({record(kOne, "default", 1, true)}, {{"default", 1.0}});
  model.gain = 0.98;
  EXPECT_TRUE(settle(model).is_tuned);
  EXPECT_THAT(model.kept, IsEmpty());
}

TEST(Network, TimesThatScatterAreTakenMoreOften) {
  FakeModel model(found(), {{"default", 1.0}, {"found", 0.9}});
  model.run_seconds = [](int round) { return 0.7 + 0.2 * (round % 3); };
  EXPECT_THAT(settle(model).rounds.tuned, SizeIs(5 * kRounds));
  FakeModel settling(found(), {{"default", 1.0}, {"found", 0.9}});
  settling.run_seconds = [](int round) { return round < 3 ? 0.7 + 0.2 * round : 0.9; };
  EXPECT_THAT(settle(settling).rounds.tuned, SizeIs(2 * kRounds));
}

}  // namespace
}  // namespace tensormill::tune::network_test
