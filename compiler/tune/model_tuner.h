/// The tuner that asks a cost model: parallel simulated annealing over the model's predictions proposes the
/// points, a share of them is drawn at random, and no two of a batch are nearly the same.
/// After Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018), section 3.3.
#pragma once

#include <map>

#include "compiler/tune/cost_model.h"
#include "compiler/tune/tuner.h"

namespace tensormill::tune {

class ModelTuner : public Tuner {
public:
  /// `model` is shared by the tuners of all tasks. All references must outlive the tuner.
  ModelTuner(const Space& space, uint64_t seed, std::string task, CostModel& model);

  std::vector<Point> propose(size_t count) override;
  /// Adds the trials to the model.
  void observe(const std::vector<Trial>& trials) override;

private:
  /// A point that was looked at, with its features; scored again by each new model.
  struct Visited {
    Point point;
    std::vector<float> features;
    double score = 0;
    bool is_taken = false;  ///< proposed, observed, or of the same schedule as one that was
  };

  /// The place of the point among the visited, where it is put with its features the first time.
  size_t visit(Point point);
  void score(size_t first);
  void anneal();
  std::vector<Point> choose(size_t count);

  std::string task_;
  CostModel& model_;
  Random random_;
  std::vector<Visited> visited_;
  std::map<std::string, size_t> places_;  ///< in visited_ by the text of the knobs
  std::vector<size_t> chains_;            ///< in visited_: where the annealing stands
  std::vector<Trial> best_;               ///< observed, ascending by time
};

}  // namespace tensormill::tune
