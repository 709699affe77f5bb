/// What a tuner is worth, against a table of measured times. Everything is seeded; what differs between two
/// runs is what was measured. Thread-safety: pure functions but for the table.
#pragma once

#include "bench/tuner/table.h"

namespace tensormill::bench {

using Tasks = std::vector<std::unique_ptr<TunedTask>>;

/// What one tuner found in all tasks after so many trials a task: GFLOP/s of the best point, the mean over
/// tasks.
struct Progress {
  std::map<int64_t, double> gflops;  ///< by trials a task
  double search_seconds = 0;         ///< spent on proposing and learning
  int64_t trials = 0;                ///< all tasks together
};

/// Runs `tuner` on all tasks, a batch of each in turn, with one cost model; no task begins with its default.
Progress run_tuner(const std::string& tuner, const Tasks& tasks, uint64_t seed,
                   const std::vector<int64_t>& marks, Table& table);

/// Of a task: points drawn uniformly without repetition, with their times; failed ones are left out.
struct Sample {
  std::vector<tune::Point> points;
  std::vector<double> seconds;
};
Sample draw(const TunedTask& task, size_t count, uint64_t seed, Table& table);

/// The points of draw(), built into the table's folder of objects.
void prepare(const TunedTask& task, size_t count, uint64_t seed, Table& table);

struct Correlations {
  std::vector<std::pair<std::string, double>> within;  ///< by task: trained on `training` points of each task
  std::vector<std::pair<std::string, double>> foreign;  ///< on tasks of which the model saw nothing
  /// Of the points' least times in odd rounds with those in even ones: how much of their order is noise.
  std::vector<std::pair<std::string, double>> ruler;
};
/// Spearman's rank correlation of predicted and measured speed on the points behind the first `training` of
/// each sample, `tested` of them; tasks with fewer are left out. All points are measured in so many rounds,
/// one after the other, and the least time counts: a machine that is slow for a moment is not taken for a
/// slow point.
Correlations correlate(const Tasks& tasks, const Tasks& foreign, size_t training, size_t tested,
                       size_t rounds, uint64_t seed, Table& table);

}  // namespace tensormill::bench
