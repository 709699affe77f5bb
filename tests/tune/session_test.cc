#include "compiler/tune/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "compiler/tune/choose.h"
#include "compiler/tune/features.h"
#include "server/measure/worker.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

/// Gives each candidate a time that depends on its code alone.
class FakeMeasurer : public Measurer {
public:
  void set_task(const Task&, const Workload& workload) override { EXPECT_FALSE(workload.outputs.empty()); }
  Measurement measure(const codegen::Object& object, const plan::KernelWorkspace&,
                      const MeasureOptions& options) override {
    if (++calls == 1) first_ = object.bytes;
    const uint8_t hash = Digest::of(object.bytes).bytes()[0];
    if (hash % 8 == 7 && object.bytes != first_) return {TrialError::kRuntime, "made to fail", {}};
    return {TrialError::kNone, "",
            std::vector<double>(static_cast<size_t>(options.repeat), 1e-3 * (1 + hash))};
  }
  int calls = 0;

private:
  std::string first_;  ///< the default, which never fails
};

/// As FakeMeasurer, but of all that were built together it tells when it has all.
class AllAtOnce final : public FakeMeasurer {
public:
  void measure_all(std::span<const Run> runs, const MeasureOptions& options,
                   const std::function<void(size_t, Measurement)>& take) override {
    sizes.push_back(runs.size());
    std::vector<Measurement> all;
    for (const Run& run : runs) all.push_back(measure(run.object, run.workspace, options));
    for (size_t i = 0; i < all.size(); ++i) take(i, std::move(all[i]));
  }
  std::vector<size_t> sizes;
};

class SessionTest : public testing::Test {
protected:
  TuneSession make(Measurer& measurer, int64_t trials, const std::string& tuner = "random") {
    TuneOptions options;
    options.tuner = tuner;
    options.trials = trials;
    options.cpu = "a cpu";
    options.codegen = "a compiler";
    options.measure.min_repeat_ms = 0;
    TuneHooks hooks;
    hooks.clock = [this] { return clock_ += 1; };
    hooks.record = [this](const Record& record) { records_.push_back(record); };
    return {tune_test::matmul_tasks(), tune_test::host_target(), options, *backend_, measurer, hooks};
  }

  double clock_ = 1000;
  std::unique_ptr<codegen::Backend> backend_ = codegen::make_llvm_backend();
  std::vector<Record> records_;
};

TEST_F(SessionTest, BatchesAreMeasuredAtOnceWhereThatIsBetter) {
  FakeMeasurer one_by_one;
  make(one_by_one, 30).run();
  const std::vector<Record> expected = std::exchange(records_, {});
  clock_ = 1000;
  AllAtOnce at_once;
  make(at_once, 30).run();
  EXPECT_EQ(at_once.calls, one_by_one.calls);
  EXPECT_GT(*std::max_element(at_once.sizes.begin(), at_once.sizes.end()), 1U);
  ASSERT_EQ(records_.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(to_line(records_[i]), to_line(expected[i]));
}

TEST_F(SessionTest, EveryTrialIsARecordAndTheBestIsChosen) {
  FakeMeasurer measurer;
  TuneSession session = make(measurer, 30);
  session.run();
  EXPECT_EQ(session.trials(), 30);
  size_t finals = 0;
  double best = 1e9;
  for (const Record& record : records_) {
    finals += record.final ? 1 : 0;
    if (!record.final) best = std::min(best, record.median_seconds());
    EXPECT_EQ(to_line(record_from_line(to_line(record))), to_line(record));
  }
  EXPECT_EQ(records_.size(), 30U + finals);
  EXPECT_EQ(records_[0].schedule, schedule::print(session.tasks()[0].space->analytic().schedule));
  EXPECT_LE(session.best_latency(), session.default_latency());
  EXPECT_EQ(session.tasks()[0].best_seconds, best);
  EXPECT_FALSE(session.tasks()[0].failures.empty());
  const auto chosen = choose_schedules(records_, tune_test::host_target(), "a compiler");
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen.begin()->second.reason, "");
}

TEST_F(SessionTest, RecordsOfAnEarlierRunCount) {
  FakeMeasurer measurer;
  make(measurer, 20).run();
  const std::vector<Record> earlier(records_.begin(), records_.begin() + 12);
  records_.clear();
  TuneSession session = make(measurer, 20);
  EXPECT_EQ(session.resume(earlier), 12);
  session.run();
  std::set<std::string> schedules;
  for (const Record& record : earlier) schedules.insert(record.schedule);
  for (const Record& record : records_) {
    if (record.final) continue;
    EXPECT_TRUE(schedules.insert(record.schedule).second) << "measured twice";
  }
  EXPECT_EQ(schedules.size(), 20U);
  Record foreign = earlier[1];
  foreign.cpu = "another cpu";
  EXPECT_EQ(make(measurer, 20).resume({foreign}), 0);
}

TEST_F(SessionTest, TheModelLearnsFromRecordsOfOtherKernels) {
  FakeMeasurer measurer;
  make(measurer, 20).run();
  std::vector<Record> foreign = records_;
  for (Record& record : foreign) {
    EXPECT_EQ(record.features.size(), kFeatureCount);
    record.task_key[0] = record.task_key[0] == '0' ? '1' : '0';
  }
  TuneSession session = make(measurer, 20, "xgb");
  EXPECT_EQ(session.resume(foreign), 0) << "no trials of this kernel";
  EXPECT_EQ(session.model_samples(),
            static_cast<size_t>(std::count_if(foreign.begin(), foreign.end(),
                                              [](const Record& record) { return !record.final; })));
  records_.clear();
  session.run();
  EXPECT_EQ(session.trials(), 20);
  EXPECT_EQ(session.model_samples(), 40U);
  EXPECT_GT(session.search_seconds(), 0);
}

TEST_F(SessionTest, AWorkerMeasuresChecksAndSurvivesCandidates) {
  measure::WorkerMeasurer measurer({.candidates = 3});
  TuneSession session = make(measurer, 5);
  session.run();
  for (const Record& record : records_) EXPECT_EQ(record.error, TrialError::kNone);
  EXPECT_GE(measurer.children(), 2) << "replaced after three candidates";
  EXPECT_GT(session.tasks()[0].default_seconds, 0);
  EXPECT_LT(session.tasks()[0].default_seconds, 1);
}

/// Kernels of other programs stand for candidates that do what they must not.
class WorkerTest : public SessionTest {
protected:
  Measurement measure(Measurer& measurer, const driver::BuiltKernel& built, double timeout = 20) {
    MeasureOptions options;
    options.min_repeat_ms = 0;
    options.timeout_seconds = timeout;
    return measurer.measure(built.object, built.workspace, options);
  }
  driver::BuiltKernel build(const Task& task) {
    const Space space(task, tune_test::host_target());
    return driver::build_kernel(task.kernel, space.analytic().schedule, tune_test::host_target(), *backend_);
  }
  static std::vector<Task> tasks(const std::string& op, const std::string& shape) {
    return tune_test::tasks_of("graph \"one\" (%x: f32" + shape + ") {\n  %y: f32" + shape + " = " + op +
                               "(%x)\n  return %y\n}\n");
  }
  Task tanh_ = tasks("tanh", "[64]")[0], relu_ = tasks("relu", "[64]")[0],
       large_ = tasks("relu", "[100000]")[0];
};

TEST_F(WorkerTest, AWrongAnswerIsFound) {
  measure::WorkerMeasurer measurer;
  const std::vector<Workload> workloads = make_workloads(tanh_);
  measurer.set_task(tanh_, workloads[0]);
  EXPECT_EQ(measure(measurer, build(tanh_)).error, TrialError::kNone);
  const Measurement wrong = measure(measurer, build(relu_));
  EXPECT_EQ(wrong.error, TrialError::kWrongAnswer);
  EXPECT_THAT(wrong.message, testing::HasSubstr("the reference gives"));
  EXPECT_EQ(measurer.children(), 1);
}

TEST_F(WorkerTest, ACrashAndAHangCostOneTrialEach) {
  measure::WorkerMeasurer measurer;
  const std::vector<Workload> workloads = make_workloads(relu_);
  measurer.set_task(relu_, workloads[0]);
  // Code for longer buffers runs into the pages that cannot be touched.
  const Measurement crash = measure(measurer, build(large_));
  EXPECT_EQ(crash.error, TrialError::kRuntime);
  EXPECT_THAT(crash.message, testing::HasSubstr("signal 11"));
  EXPECT_EQ(measure(measurer, build(relu_)).error, TrialError::kNone);
  EXPECT_EQ(measurer.children(), 2);
}

/// Kills the children of this process, and waits until they have ended; nobody is told of it.
int end_children() {
  int ended = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t process = 0, parent = 0;
    std::from_chars(name.data(), name.data() + name.size(), process);
    std::ifstream stat(entry.path() / "stat");
    std::string id, program, state;
    if (process == 0 || !(stat >> id >> program >> state >> parent) || parent != ::getpid()) continue;
    siginfo_t info{};
    EXPECT_EQ(::kill(process, SIGKILL), 0);
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT), 0);
    ++ended;
  }
  return ended;
}

TEST_F(WorkerTest, AChildThatEndsBetweenTrialsCostsNone) {
  measure::WorkerMeasurer measurer;
  const std::vector<Workload> workloads = make_workloads(relu_);
  measurer.set_task(relu_, workloads[0]);
  EXPECT_EQ(measure(measurer, build(relu_)).error, TrialError::kNone);
  EXPECT_EQ(end_children(), 1);
  EXPECT_EQ(measure(measurer, build(relu_)).error, TrialError::kNone);
  EXPECT_EQ(measurer.children(), 2);
}

TEST_F(WorkerTest, WhoTakesMoreMemoryThanAChildMayCostsOneTrial) {
  constexpr uint64_t kMemory = uint64_t{1} << 30;
  measure::WorkerMeasurer measurer({.memory = kMemory});
  const std::vector<Workload> workloads = make_workloads(relu_);
  measurer.set_task(relu_, workloads[0]);
  driver::BuiltKernel hungry = build(relu_);
  hungry.workspace.shared_bytes = static_cast<int64_t>(2 * kMemory);
  const Measurement failed = measure(measurer, hungry);
  EXPECT_EQ(failed.error, TrialError::kRuntime);
  EXPECT_THAT(failed.message, testing::HasSubstr("more than " + std::to_string(kMemory) + " bytes"));
  EXPECT_EQ(measure(measurer, build(relu_)).error, TrialError::kNone);
  EXPECT_EQ(measurer.children(), 2);
}

}  // namespace
}  // namespace tensormill::tune
