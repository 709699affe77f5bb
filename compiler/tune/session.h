/// One tuning run over a model's tasks: measures each default, gives batches of trials to the task that
/// promises most, writes every trial as a record before the next, and at last measures the best of each task
/// again interleaved with its default. What is slower than the default is not taken, with warm caches or with
/// cold ones: alone in a loop, weights stay in a cache that a whole model's do not. A kernel of free extents
/// is measured at several, whose geometric mean counts, and is to be right around its tiles, too. Tasks of
/// one layer are measured interleaved together. Thread-safety: a session belongs to one thread; it builds
/// candidates on several.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "compiler/tune/cost_model.h"
#include "compiler/tune/measure.h"
#include "compiler/tune/task_state.h"

namespace tensormill::tune {

struct TuneOptions {
  std::string tuner = "xgb";
  bool sketches = false;           ///< search the automatic scheduler's points too
  int64_t trials = 1000;           ///< of the whole model, the defaults' included
  double time_budget_seconds = 0;  ///< 0: none; the last tenth is for measuring the best again
  int64_t early_stopping = 0;      ///< a task ends after so many trials without a better one; 0: never
  uint64_t seed = 0;
  size_t batch = 8;  ///< candidates that are built before they are measured
  int build_threads = 1;
  double build_timeout_seconds = 10;
  int final_rounds = 7;  ///< of measuring finalists and default interleaved; 0: they are not measured again
  MeasureOptions measure;
  std::string cpu;      ///< target::cpu_fingerprint of the machine that measures
  std::string codegen;  ///< driver::code_generator
};

/// What the session needs from outside.
struct TuneHooks {
  std::function<double()> clock;                           ///< seconds since 1970
  std::function<void(const Record&)> record;               ///< gets each trial once it is measured
  std::function<void(const class TuneSession&)> progress;  ///< after each batch
  std::stop_token stop;                                    ///< ends the search early; what was found remains
};

class TuneSession {
public:
  TuneSession(std::vector<Task> tasks, const target::Target& target, TuneOptions options,
              const codegen::Backend& backend, Measurer& measurer, TuneHooks hooks);

  /// Counts earlier trials of these tasks, made on this CPU with this compiler, as if they had been made now.
  /// Returns how many there were. The cost model also learns from the features that the other records of this
  /// CPU hold.
  int64_t resume(const std::vector<Record>& records);
  void run();

  const std::vector<TaskState>& tasks() const { return tasks_; }
  int64_t trials() const { return trials_; }
  int64_t trial_budget() const { return options_.trials; }
  double build_seconds() const { return build_seconds_; }  ///< spent, all candidates together
  double run_seconds() const { return run_seconds_; }
  double search_seconds() const { return search_seconds_; }   ///< spent on what to try next
  size_t model_samples() const { return model_->samples(); }  ///< what the cost model learns from
  /// Sum over the tasks that were measured of calls x seconds, defaults or best.
  double default_latency() const;
  double best_latency() const;

private:
  struct Candidate;
  double elapsed() const { return hooks_.clock() - start_; }
  bool may_go_on() const;
  void search();
  void select(const TaskState& state);
  void try_batch(TaskState& state, std::vector<Point> points);
  void build(Candidate& candidate) const;
  /// Candidates of one task that are wrong at extents at which they are not measured fail.
  void check(const std::vector<Candidate*>& candidates);
  /// `done` gets each when it was measured there.
  void measure_at(const Workload& workload, const std::vector<Candidate*>& candidates,
                  const MeasureOptions& options, const std::function<void(Candidate&, Measurement)>& done);
  /// Of one task; `done` gets each when it was measured.
  void measure(const std::vector<Candidate*>& candidates, const MeasureOptions& options,
               const std::function<void(Candidate&, Measurement)>& done);
  /// A record of the trial, and what is known of the task from now on.
  void note(TaskState& state, Candidate& candidate, std::vector<Trial>& trials);
  void learn(const std::vector<Record>& records);
  static void add_finalists(TaskState& state, double bar, std::vector<Candidate>& candidates);
  void finish_group(size_t group);
  void finish(TaskState& state, const std::vector<TaskState*>& rivals);
  void measure_in_turns(std::vector<Candidate>& candidates, bool cold);
  size_t faster_than(const std::vector<Candidate>& candidates, size_t than, std::pair<size_t, size_t> range);
  void keep(const Candidate& candidate);
  std::vector<double> best_of_groups() const;
  Record record_of(const TaskState& state, const Candidate& candidate) const;

  target::Target target_;
  TuneOptions options_;
  const codegen::Backend& backend_;
  Measurer& measurer_;
  TuneHooks hooks_;
  std::unique_ptr<CostModel> model_;
  std::vector<TaskState> tasks_;
  const TaskState* selected_ = nullptr;
  std::map<const TaskState*, std::vector<Workload>> workloads_;  ///< of tasks in the selected one's group
  int64_t trials_ = 0;
  double start_ = 0;
  double build_seconds_ = 0;
  double run_seconds_ = 0;
  double search_seconds_ = 0;
};

}  // namespace tensormill::tune
