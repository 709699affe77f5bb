/// Measured times of configurations, each measured once: what all tuners of a run are shown. Two tuners that
/// propose the same point see the same time, so that they differ in what they propose alone.
/// Thread-safety: a table belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/session.h"
#include "server/measure/worker.h"

namespace tensormill::bench {

/// A task with its space; the space refers to the task, so that neither is copied.
struct TunedTask {
  explicit TunedTask(tune::Task from, const target::Target& target)
      : task(std::move(from)), space(task, target) {}
  TunedTask(const TunedTask&) = delete;
  TunedTask& operator=(const TunedTask&) = delete;
  tune::Task task;
  tune::Space space;
};

/// What one trial cost, in seconds.
struct TrialCost {
  double build = 0, run = 0;
};

class Table {
public:
  /// `program`: the tensormill that runs candidates. `path`: a file of records that is read first and to
  /// which each new measurement is added; "" for none. What another build of the compiler measured is
  /// skipped. `objects`: a folder in which built code is kept, so that it can be built while the machine is
  /// busy and measured while it is not; "" for none.
  Table(const target::Target& target, std::string program, const std::string& path, std::string objects = "");

  /// Of one run: the fastest of the samples; infinity for what failed.
  double seconds(const TunedTask& task, const tune::Point& point);
  /// seconds() of each point. What is not known yet is built first, so that no compiler runs between
  /// measurements.
  std::vector<double> seconds_of_all(const TunedTask& task, const std::vector<tune::Point>& points);
  /// Builds what seconds_of_all would have to, into the folder of objects.
  void prepare(const TunedTask& task, const std::vector<tune::Point>& points);
  /// Measures each point anew, however often it was measured before; of all its times the least is kept, as a
  /// machine that is slow for a moment makes a point slow that is not.
  std::vector<double> seconds_again(const TunedTask& task, const std::vector<tune::Point>& points);
  size_t measured() const { return measured_; }  ///< by this object, not read from the file
  size_t failed() const { return failed_; }

  /// Builds and measures each point as a session does, whether it is known or not.
  std::vector<TrialCost> costs(const TunedTask& task, const std::vector<tune::Point>& points,
                               const tune::MeasureOptions& options);

private:
  struct Built {
    driver::BuiltKernel kernel;
    tune::Measurement outcome;  ///< of building
    TrialCost cost;
  };
  void select(const TunedTask& task);
  Built build(const TunedTask& task, const tune::Point& point) const;
  /// build(), or what an earlier run left in the folder of objects.
  Built build_or_load(const TunedTask& task, const tune::Point& point) const;
  bool is_known(const TunedTask& task, const tune::Point& point) const;
  tune::Measurement run(const TunedTask& task, Built& built, const tune::MeasureOptions& options);
  double keep(const TunedTask& task, const tune::Point& point, const tune::Measurement& result,
              const TrialCost& cost);

  target::Target target_;
  std::unique_ptr<codegen::Backend> backend_;
  measure::WorkerMeasurer measurer_;
  std::unique_ptr<tune::RecordLog> log_;
  std::string objects_;
  std::map<std::string, double> known_;  ///< by task key and schedule
  const TunedTask* selected_ = nullptr;
  std::vector<tune::Workload> workloads_;
  size_t measured_ = 0, failed_ = 0;
};

}  // namespace tensormill::bench
