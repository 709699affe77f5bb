#include "compiler/tune/session.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "compiler/tune/choose.h"
#include "compiler/tune/features.h"
#include "runtime/base/error.h"
#include "runtime/base/median.h"

namespace tensormill::tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFinalShare = 0.1;  // of a time budget, kept for measuring the best again
constexpr size_t kFinalists = 3;     // beside the default
constexpr double kRivalBar = 1.05;   // of the default algorithm's best: worth a final measurement
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

// The samples of `next`, each times the one that was taken in the same turn at other extents.
void multiply(Measurement& product, Measurement next) {
  if (next.error == TrialError::kNone && !product.seconds.empty()) {
    for (size_t i = 0; i < next.seconds.size() && i < product.seconds.size(); ++i)
      next.seconds[i] *= product.seconds[i];
  }
  product = std::move(next);
}

}  // namespace

struct TuneSession::Candidate {
  TaskState* state = nullptr;
  Point point;
  BuiltCandidate built;
  std::vector<float> features;
  Measurement outcome;
  double build_seconds = 0;
  double run_seconds = 0;

  /// The middle one of its samples; infinity where it failed.
  double seconds() const {
    const bool measured = outcome.error == TrialError::kNone && !outcome.seconds.empty();
    return measured ? median(outcome.seconds) : kInfinity;
  }
};

/// Behind `candidates`: the task's best by single trials, of those below `bar`.
void TuneSession::add_finalists(TaskState& state, double bar, std::vector<Candidate>& candidates) {
  std::vector<Trial> order = state.trials;
  std::stable_sort(order.begin(), order.end(),
                   [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  for (size_t i = 0; i < std::min(order.size(), kFinalists) && order[i].seconds < bar; ++i) {
    candidates.emplace_back();
    candidates.back().state = &state;
    candidates.back().point = order[i].point;
  }
}

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
  form_groups(tasks_);
  // Spaces refer to the kernels, which stand still from here on.
  for (size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].space = std::make_unique<Space>(tasks_[i].task, target_, options_.sketches);
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
  if (options_.final_rounds == 0) return;
  for (size_t group = 0; group < count_groups(tasks_); ++group) finish_group(group);
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
  if (selected_ != nullptr && selected_->group != state.group) workloads_.clear();
  if (!workloads_.contains(&state)) workloads_.emplace(&state, make_workloads(state.task));
  selected_ = &state;
}

void TuneSession::build(Candidate& candidate) const {
  const double start = hooks_.clock();
  const Task& task = candidate.state->task;
  try {
    const te::Function loops = loops_of(task, candidate.point.schedule);
    candidate.features = loop_features(with_extents(task, loops), target_.facts);
    if (count_statements(loops.body) > kMaxStatements) {
      candidate.outcome = {TrialError::kBuildTimeout, "the code is too large", {}};
    } else {
      candidate.built = build_candidate(task, candidate.point.schedule, target_, backend_);
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

void TuneSession::check(const std::vector<Candidate*>& candidates) {
  if (candidates.empty() || !candidates[0]->state->task.symbolic) return;
  MeasureOptions once = options_.measure;
  once.number = once.repeat = 1;
  once.min_repeat_ms = 0;
  // Candidates of other tiles are looked at around other extents.
  std::map<const Workload*, std::vector<Candidate*>> all;
  std::vector<const Workload*> order;
  for (Candidate* candidate : candidates) {
    for (const Workload* workload : candidate->state->task.symbolic->checked(candidate->built.tails)) {
      std::vector<Candidate*>& own = all[workload];
      if (own.empty()) order.push_back(workload);
      own.push_back(candidate);
    }
  }
  for (const Workload* workload : order) {
    std::vector<Candidate*> own = all[workload];
    std::erase_if(own, [](const Candidate* each) { return each->outcome.error != TrialError::kNone; });
    measure_at(*workload, own, once, [](Candidate& candidate, Measurement outcome) {
      if (outcome.error != TrialError::kNone) candidate.outcome = std::move(outcome);
    });
  }
}

void TuneSession::measure_at(const Workload& workload, const std::vector<Candidate*>& candidates,
                             const MeasureOptions& options,
                             const std::function<void(Candidate&, Measurement)>& done) {
  if (candidates.empty()) return;
  measurer_.set_task(candidates[0]->state->task, workload);
  std::vector<Run> runs;
  for (const Candidate* candidate : candidates)
    runs.push_back({candidate->built.kernel.object, candidate->built.kernel.workspace});
  double start = hooks_.clock();
  measurer_.measure_all(runs, options, [&](size_t place, Measurement outcome) {
    const double end = hooks_.clock();
    candidates[place]->run_seconds += end - start;
    start = end;
    done(*candidates[place], std::move(outcome));
  });
}

void TuneSession::measure(const std::vector<Candidate*>& candidates, const MeasureOptions& options,
                          const std::function<void(Candidate&, Measurement)>& done) {
  const std::vector<Workload>& workloads = workloads_.at(selected_);
  if (workloads.size() == 1) return measure_at(workloads[0], candidates, options, done);
  std::map<const Candidate*, Measurement> means;
  std::vector<Candidate*> left = candidates;
  for (const Workload& workload : workloads) {
    measure_at(workload, left, options, [&](Candidate& candidate, Measurement outcome) {
      multiply(means[&candidate], std::move(outcome));
    });
    std::erase_if(left, [&](const Candidate* each) { return means[each].error != TrialError::kNone; });
  }
  for (Candidate* candidate : candidates) {
    Measurement& mean = means[candidate];
    for (double& seconds : mean.seconds)
      seconds = std::pow(seconds, 1 / static_cast<double>(workloads.size()));
    if (workloads.empty()) mean = {TrialError::kRuntime, "the reference refuses all data", {}};
    done(*candidate, std::move(mean));
  }
}

void TuneSession::note(TaskState& state, Candidate& candidate, std::vector<Trial>& trials) {
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

void TuneSession::try_batch(TaskState& state, std::vector<Point> points) {
  std::vector<Candidate> candidates(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    candidates[i].state = &state;
    candidates[i].point = std::move(points[i]);
  }
  select(state);
  {
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < candidates.size(); i = next++) build(candidates[i]);
    };
    std::vector<std::jthread> threads;
    for (int i = 1; i < options_.build_threads; ++i) threads.emplace_back(work);
    work();
  }
  // No builder runs from here on: it would disturb what is measured.
  std::vector<Trial> trials;
  std::vector<Candidate*> built;
  for (Candidate& candidate : candidates) {
    if (candidate.outcome.error == TrialError::kNone) built.push_back(&candidate);
  }
  check(built);
  std::erase_if(built, [](const Candidate* each) { return each->outcome.error != TrialError::kNone; });
  const Candidate* next_candidate = candidates.data();
  const auto note_before = [&](const Candidate* end) {
    for (; next_candidate != end; ++next_candidate)
      note(state, candidates[static_cast<size_t>(next_candidate - candidates.data())], trials);
  };
  measure(built, options_.measure, [&](Candidate& candidate, Measurement outcome) {
    candidate.outcome = std::move(outcome);
    note_before(&candidate + 1);
  });
  note_before(candidates.data() + candidates.size());
  state.tuner->observe(trials);
  if (hooks_.progress) hooks_.progress(*this);
}

void TuneSession::finish_group(size_t group) {
  std::vector<TaskState*> run, rivals;
  for (TaskState& state : tasks_) {
    if (state.group == group) (state.task.calls > 0 ? run : rivals).push_back(&state);
  }
  if (run.empty()) {
    run.push_back(rivals.front());
    rivals.erase(rivals.begin());
  }
  for (TaskState* state : run) {
    finish(*state, rivals);
    rivals.clear();
  }
}

void TuneSession::finish(TaskState& state, const std::vector<TaskState*>& rivals) {
  if (!std::isfinite(state.default_seconds)) return;
  std::vector<Candidate> candidates(1);
  candidates[0].state = &state;
  candidates[0].point = state.space->analytic();
  add_finalists(state, state.default_seconds, candidates);
  const size_t own = candidates.size();
  for (TaskState* rival : rivals) add_finalists(*rival, state.best_seconds * kRivalBar, candidates);
  if (candidates.size() == 1) return;
  for (Candidate& candidate : candidates) build(candidate);
  measure_in_turns(candidates, false);
  state.default_seconds = candidates[0].seconds();
  for (TaskState* rival : rivals) rival->rejected = true;
  const size_t best = faster_than(candidates, 0, {1, own});
  state.best_seconds = candidates[best].seconds();
  if (!std::isfinite(state.best_seconds)) return;
  keep(candidates[best]);
  const size_t winner = faster_than(candidates, best, {own, candidates.size()});
  if (winner == best) return;
  TaskState& rival = *candidates[winner].state;
  rival.best_seconds = candidates[winner].seconds();
  rival.rejected = false;
  keep(candidates[winner]);
}

/// The fastest of a range of candidates that is faster than `than` by more than noise, and with cold caches
/// too; `than` where there is none.
size_t TuneSession::faster_than(const std::vector<Candidate>& candidates, size_t than,
                                std::pair<size_t, size_t> range) {
  std::vector<size_t> order;
  for (size_t i = range.first; i < range.second; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidates[a].seconds() < candidates[b].seconds(); });
  for (const size_t i : order) {
    if (!(candidates[i].seconds() < candidates[than].seconds() * kBeyondNoise)) break;
    std::vector<Candidate> two = {candidates[i], candidates[than]};
    for (Candidate& candidate : two) candidate.outcome = {};
    measure_in_turns(two, true);
    if (two[0].seconds() < two[1].seconds()) return i;
  }
  return than;
}

/// A sample of each, round after round.
void TuneSession::measure_in_turns(std::vector<Candidate>& candidates, bool cold) {
  MeasureOptions once = options_.measure;
  once.repeat = 1;
  once.flush_cache = cold || once.flush_cache;
  for (int round = 0; round < options_.final_rounds; ++round) {
    for (size_t i = 0; i < candidates.size();) {
      // Those of one task that follow each other.
      TaskState* const state = candidates[i].state;
      std::vector<Candidate*> some;
      for (; i < candidates.size() && candidates[i].state == state; ++i) {
        if (candidates[i].outcome.error == TrialError::kNone) some.push_back(&candidates[i]);
      }
      if (some.empty()) continue;
      select(*state);
      measure(some, once, [](Candidate& candidate, const Measurement& sample) {
        candidate.outcome.error = sample.error;
        for (double seconds : sample.seconds) candidate.outcome.seconds.push_back(seconds);
      });
    }
  }
}

void TuneSession::keep(const Candidate& candidate) {
  Record record = record_of(*candidate.state, candidate);
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
  record.layer = state.task.layer;
  record.algorithm = state.task.algorithm;
  record.index = candidate.point.index;
  record.knobs = candidate.point.knobs;
  record.schedule = schedule::print(candidate.point.schedule);
  record.is_default = candidate.point.schedule == state.space->analytic().schedule;
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

std::vector<double> TuneSession::best_of_groups() const {
  std::vector<double> best(count_groups(tasks_), kInfinity);
  for (const TaskState& state : tasks_) {
    const double seconds = std::min(state.best_seconds, state.default_seconds);
    if (!state.rejected) best[state.group] = std::min(best[state.group], seconds);
  }
  return best;
}

double TuneSession::best_latency() const {
  const std::vector<double> best = best_of_groups();
  double sum = 0;
  for (const TaskState& state : tasks_) {
    if (std::isfinite(state.default_seconds))
      sum += best[state.group] * static_cast<double>(state.task.calls);
  }
  return sum;
}

}  // namespace tensormill::tune
