/// One model of all tasks: from the features of loop nests to how well they will do among the candidates of
/// their task. It learns from every trial of a session and from the features that earlier records hold.
/// Thread-safety: a model belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/booster.h"

namespace tensormill::tune {

class CostModel {
public:
  /// `ranking`: learns which of two candidates of a task is faster; else the share of the task's candidates
  /// that are slower. Places, not times: most candidates lie within a few percent of the best, which a model
  /// of times neglects for the sake of the few that take twice as long.
  explicit CostModel(bool ranking, uint64_t seed);

  /// A candidate of `task` that took so long; infinity when it failed. kFeatureCount features.
  void add(const std::string& task, std::vector<float> features, double seconds);
  size_t samples() const { return count_; }
  /// Measurements of one task.
  size_t samples(const std::string& task) const;

  /// Trains anew when there are enough new samples; a few do not change what it says.
  void update();
  bool is_trained() const { return booster_ != nullptr; }
  /// Larger is better. The model is trained.
  std::vector<float> predict(const Matrix& rows) const;

  static constexpr size_t kFewest = 16;      ///< samples that are worth a model
  static constexpr double kGrowth = 0.08;    ///< of the samples: new ones that are worth a new model
  static constexpr size_t kPerTask = 2000;   ///< samples of one task that are kept: the first
  static constexpr size_t kInTotal = 20000;  ///< of all tasks

private:
  struct Sample {
    std::vector<float> features;
    double seconds = 0;
  };
  bool ranking_;
  uint64_t seed_;
  std::map<std::string, std::vector<Sample>> tasks_;
  size_t count_ = 0;
  size_t trained_count_ = 0;
  std::unique_ptr<Booster> booster_;
};

/// Spearman's rank correlation of two lists of the same length >= 2, ties in the middle of their ranks.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tensormill::tune
