#include "compiler/tune/session.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "compiler/tune/features.h"
#include "runtime/base/error.h"
#include "runtime/base/median.h"

namespace tensormill::tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFinalShare = 0.1;    // of a time budget, kept for measuring the best again
constexpr size_t kFinalists = 3;       // beside the default
constexpr double kBeyondNoise = 0.99;  // of the default's time: what a finalist has to reach
// Code past this is no candidate worth its compile time: everything unrolled.
constexpr double kMaxStatements = 20000;

// Of the code, in which unrolled loops stand as often as they run.
double count_statements(const te::Stmt& stmt) {
  if (!stmt) return 0;
  double count = 1 + count_statements(stmt->body) + count_statements(stmt->else_body);
  for (const te::Stmt& child : stmt->children) count += count_statements(child);
  const bool is_unrolled = stmt->op == te::StmtOp::kFor && stmt->for_kind == te::ForKind::kUnrolled;
  const int64_t* extent = is_unrolled ? te::as_int(stmt->extent) : nullptr;
  return extent != nullptr ? count * static_cast<double>(*extent) : count;
}

}  // namespace

struct TuneSession::Candidate {
  Point point;
  driver::BuiltKernel built;
  std::vector<float> features;
  Measurement outcome;
  double build_seconds = 0;
  double run_seconds = 0;
};

TuneSession::TuneSession(std::vector<Task> tasks, const target::Target& target, TuneOptions options,
                         const codegen::Backend& backend, Measurer& measurer, TuneHooks hooks)
    : target_(target),
      options_(std::move(options)),
      backend_(backend),
      measurer_(measurer),
      hooks_(std::move(hooks)),
      model_(std::make_unique<CostModel>(ranks(options_.tuner), options_.seed)) {
  for (Task& task : tasks) {
    TaskState state;
    state.task = std::move(task);
    tasks_.push_back(std::move(state));
  }
  // Spaces refer to the kernels, which stand still from here on.
  for (size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].space = std::make_unique<Space>(tasks_[i].task.kernel, target_, options_.sketches);
    tasks_[i].tuner = make_tuner(options_.tuner, *tasks_[i].space, options_.seed * 1000003 + i,
                                 tasks_[i].task.key(), *model_);
  }
}

// From what resume does not count: other kernels, and these ones as other compilers built them.
void TuneSession::learn(const std::vector<Record>& records) {
  for (const Record& record : records) {
    if (record.features.size() != kFeatureCount || record.final || record.cpu != options_.cpu ||
        record.threads != options_.measure.threads) {
      continue;
    }
    const bool is_own =
        std::any_of(tasks_.begin(), tasks_.end(),
                    [&](const TaskState& state) { return state.task.key() == record.task_key; }) &&
        record.codegen == options_.codegen;
    if (!is_own) model_->add(record.task_key + record.codegen, record.features, record.median_seconds());
  }
}

int64_t TuneSession::resume(const std::vector<Record>& records) {
  learn(records);
  int64_t count = 0;
  for (TaskState& state : tasks_) {
    std::vector<Trial> known;
    for (const Record& record : records) {
      if (record.task_key != state.task.key() || record.target != target_.canonical() || record.final ||
          record.cpu != options_.cpu || record.codegen != options_.codegen ||
          record.threads != options_.measure.threads) {
        continue;
      }
      std::optional<Point> point = state.space->at(record.index);
      if (!point || schedule::print(point->schedule) != record.schedule) continue;
      if (point->schedule == state.space->analytic().schedule)
        state.default_seconds = std::min(state.default_seconds, record.median_seconds());
      if (record.error != TrialError::kNone) ++state.failures[std::string(to_text(record.error))];
      known.push_back({std::move(*point), record.median_seconds()});
      state.add(known.back());
    }
    state.tuner->observe(known);
    count += static_cast<int64_t>(known.size());
  }
  trials_ += count;
  return count;
}

bool TuneSession::may_go_on() const {
  const double budget = options_.time_budget_seconds * (1 - kFinalShare);
  return !hooks_.stop.stop_requested() && trials_ < options_.trials &&
         (options_.time_budget_seconds <= 0 || elapsed() < budget);
}

void TuneSession::run() {
  start_ = hooks_.clock();
  for (TaskState& state : tasks_) {
    if (may_go_on() && !std::isfinite(state.default_seconds)) try_batch(state, {state.space->analytic()});
  }
  search();
  for (TaskState& state : tasks_) finish(state);
}

void TuneSession::search() {
  while (may_go_on()) {
    const std::optional<size_t> next = next_task(tasks_);
    if (!next) return;
    TaskState& state = tasks_[*next];
    const auto room = static_cast<size_t>(options_.trials - trials_);
    const double start = hooks_.clock();
    std::vector<Point> points = state.tuner->propose(std::min(options_.batch, room));
    search_seconds_ += hooks_.clock() - start;
    state.exhausted = points.empty();
    if (!points.empty()) try_batch(state, std::move(points));
    if (options_.early_stopping > 0 && state.since_best >= options_.early_stopping) state.exhausted = true;
  }
}

void TuneSession::select(const TaskState& state) {
  if (selected_ == &state) return;
  reference_ = make_reference(state.task);
  measurer_.set_task(state.task, reference_);
  selected_ = &state;
}

void TuneSession::build(Candidate& candidate, const plan::Kernel& kernel) const {
  const double start = hooks_.clock();
  try {
    const te::Function loops = driver::build_loops(kernel, candidate.point.schedule);
    candidate.features = loop_features(loops, target_.facts);
    if (count_statements(loops.body) > kMaxStatements) {
      candidate.outcome = {TrialError::kBuildTimeout, "the code is too large", {}};
    } else {
      candidate.built = driver::build_kernel(kernel, candidate.point.schedule, target_, backend_);
    }
  } catch (const Error& error) {
    candidate.outcome = {TrialError::kInstantiation, error.message(), {}};
  } catch (const InternalError& error) {
    candidate.outcome = {TrialError::kCompileHost, error.what(), {}};
  }
  candidate.build_seconds = hooks_.clock() - start;
  if (candidate.outcome.error == TrialError::kNone &&
      candidate.build_seconds > options_.build_timeout_seconds) {
    candidate.outcome = {TrialError::kBuildTimeout, "built for longer than the limit", {}};
  }
}

Measurement TuneSession::measure(Candidate& candidate, const MeasureOptions& options) {
  const double start = hooks_.clock();
  Measurement result = measurer_.measure(candidate.built.object, candidate.built.workspace, options);
  candidate.run_seconds += hooks_.clock() - start;
  return result;
}

void TuneSession::try_batch(TaskState& state, std::vector<Point> points) {
  std::vector<Candidate> candidates(points.size());
  for (size_t i = 0; i < points.size(); ++i) candidates[i].point = std::move(points[i]);
  select(state);
  {
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < candidates.size(); i = next++) build(candidates[i], state.task.kernel);
    };
    std::vector<std::jthread> threads;
    for (int i = 1; i < options_.build_threads; ++i) threads.emplace_back(work);
    work();
  }
  // No builder runs from here on: it would disturb what is measured.
  std::vector<Trial> trials;
  for (Candidate& candidate : candidates) {
    if (candidate.outcome.error == TrialError::kNone)
      candidate.outcome = measure(candidate, options_.measure);
    build_seconds_ += candidate.build_seconds;
    run_seconds_ += candidate.run_seconds;
    ++trials_;
    const Record record = record_of(state, candidate);
    hooks_.record(record);
    if (candidate.outcome.error != TrialError::kNone) {
      const std::string cause(to_text(candidate.outcome.error));
      if (++state.failures[cause] == 1) state.first[cause] = candidate.outcome.message;
    }
    trials.push_back({candidate.point, record.median_seconds()});
    state.add(trials.back());
    if (candidate.point.schedule == state.space->analytic().schedule)
      state.default_seconds = record.median_seconds();
  }
  state.tuner->observe(trials);
  if (hooks_.progress) hooks_.progress(*this);
}

void TuneSession::finish(TaskState& state) {
  if (!std::isfinite(state.default_seconds) || state.best_seconds >= state.default_seconds) return;
  std::vector<Trial> order = state.trials;
  std::stable_sort(order.begin(), order.end(),
                   [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  std::vector<Candidate> candidates(1);
  candidates[0].point = state.space->analytic();
  for (const Trial& trial : order) {
    if (candidates.size() > kFinalists || trial.seconds >= state.default_seconds) break;
    candidates.emplace_back();
    candidates.back().point = trial.point;
  }
  select(state);
  for (Candidate& candidate : candidates) build(candidate, state.task.kernel);
  MeasureOptions once = options_.measure;
  once.repeat = 1;
  for (int round = 0; round < options_.final_rounds; ++round) {
    for (Candidate& candidate : candidates) {
      if (candidate.outcome.error != TrialError::kNone) continue;
      const Measurement sample = measure(candidate, once);
      candidate.outcome.error = sample.error;
      for (double seconds : sample.seconds) candidate.outcome.seconds.push_back(seconds);
    }
  }
  const auto seconds_of = [](const Candidate& candidate) {
    const bool measured = candidate.outcome.error == TrialError::kNone && !candidate.outcome.seconds.empty();
    return measured ? median(candidate.outcome.seconds) : kInfinity;
  };
  state.default_seconds = seconds_of(candidates[0]);
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const double bar = best == 0 ? state.default_seconds * kBeyondNoise : seconds_of(candidates[best]);
    if (seconds_of(candidates[i]) < bar) best = i;
  }
  state.best_seconds = seconds_of(candidates[best]);
  if (!std::isfinite(state.best_seconds)) return;
  Record record = record_of(state, candidates[best]);
  record.final = true;
  hooks_.record(record);
  if (hooks_.progress) hooks_.progress(*this);
}

Record TuneSession::record_of(const TaskState& state, const Candidate& candidate) const {
  Record record;
  record.target = target_.canonical();
  record.task = state.task.name;
  record.args = state.task.args;
  record.task_key = state.task.key();
  record.index = candidate.point.index;
  record.knobs = candidate.point.knobs;
  record.schedule = schedule::print(candidate.point.schedule);
  if (candidate.outcome.error == TrialError::kNone) record.seconds = candidate.outcome.seconds;
  record.error = candidate.outcome.error;
  record.all_seconds = std::max(candidate.build_seconds + candidate.run_seconds, 0.0);
  record.timestamp = hooks_.clock();
  record.codegen = options_.codegen;
  record.space_digest = state.space->digest();
  record.cpu = options_.cpu;
  record.threads = options_.measure.threads;
  record.features = candidate.features;
  return record;
}

double TuneSession::default_latency() const {
  double sum = 0;
  for (const TaskState& state : tasks_) {
    if (std::isfinite(state.default_seconds))
      sum += state.default_seconds * static_cast<double>(state.task.calls);
  }
  return sum;
}

double TuneSession::best_latency() const {
  double sum = 0;
  for (const TaskState& state : tasks_) {
    if (std::isfinite(state.default_seconds))
      sum += std::min(state.best_seconds, state.default_seconds) * static_cast<double>(state.task.calls);
  }
  return sum;
}

}  // namespace tensormill::tune
