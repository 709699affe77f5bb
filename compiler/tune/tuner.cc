#include "compiler/tune/tuner.h"

#include <algorithm>

#include "compiler/tune/model_tuner.h"
#include "runtime/base/error.h"

namespace tensormill::tune {

namespace {

constexpr size_t kTriesPerPoint = 30;  // draws for one new point before the space counts as used up

class GridTuner : public Tuner {
public:
  using Tuner::Tuner;
  std::vector<Point> propose(size_t count) override {
    std::vector<Point> points;
    while (points.size() < count) {
      std::optional<Point> point = space().next(walk_);
      if (!point) break;
      if (is_new(*point)) points.push_back(std::move(*point));
    }
    return points;
  }

private:
  Space::Walk walk_;
};

class RandomTuner : public Tuner {
public:
  RandomTuner(const Space& space, uint64_t seed) : Tuner(space), random_(seed) {}
  std::vector<Point> propose(size_t count) override {
    return sample_points(space(), random_, count, [this](const Point& point) { return is_new(point); });
  }

private:
  Random random_;
};

/// A genetic search: parents by tournament, uniform crossover, one mutation; the best stay in the pool.
class GeneticTuner : public Tuner {
public:
  GeneticTuner(const Space& space, uint64_t seed) : Tuner(space), random_(seed) {}
  std::vector<Point> propose(size_t count) override {
    std::vector<Point> points;
    for (size_t tries = 0;
         pool_.size() >= kFewestParents && points.size() < count && tries < kTriesPerPoint * count; ++tries) {
      std::optional<Point> child = space().cross(parent(), parent(), random_);
      if (child && random_.unit() < kMutation) child = space().mutate(*child, random_);
      if (child && is_new(*child)) points.push_back(std::move(*child));
    }
    for (Point& point : sample_points(space(), random_, count - points.size(),
                                      [this](const Point& fresh) { return is_new(fresh); })) {
      points.push_back(std::move(point));
    }
    return points;
  }
  void observe(const std::vector<Trial>& trials) override {
    Tuner::observe(trials);
    for (const Trial& trial : trials) {
      if (trial.seconds < kNever) pool_.push_back(trial);
    }
    std::stable_sort(pool_.begin(), pool_.end(),
                     [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
    if (pool_.size() > kPool) pool_.resize(kPool);
  }

private:
  static constexpr size_t kFewestParents = 8;
  static constexpr size_t kPool = 32;
  static constexpr double kMutation = 0.5;
  static constexpr double kNever = 1e9;

  const Point& parent() {
    const size_t a = random_.below(pool_.size()), b = random_.below(pool_.size());
    return pool_[std::min(a, b)].point;
  }

  Random random_;
  std::vector<Trial> pool_;  ///< ascending by time
};

}  // namespace

bool Tuner::is_new(const Point& point) { return seen_.insert(schedule::print(point.schedule)).second; }

bool Tuner::is_known(const Point& point) const { return seen_.count(schedule::print(point.schedule)) != 0; }

void Tuner::observe(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) is_new(trial.point);
}

std::vector<Point> sample_points(const Space& space, Random& random, size_t count,
                                 const std::function<bool(const Point&)>& is_new) {
  std::vector<Point> points;
  for (size_t tries = 0; points.size() < count && tries < kTriesPerPoint * count; ++tries) {
    std::optional<Point> point = space.sample(random);
    if (point && is_new(*point)) points.push_back(std::move(*point));
  }
  return points;
}

std::vector<std::string> tuner_names() { return {"xgb", "xgb-rank", "ga", "gridsearch", "random"}; }

bool ranks(std::string_view name) { return name == "xgb-rank"; }

std::unique_ptr<Tuner> make_tuner(std::string_view name, const Space& space, uint64_t seed,
                                  const std::string& task, CostModel& model) {
  if (name == "xgb" || name == "xgb-rank") return std::make_unique<ModelTuner>(space, seed, task, model);
  if (name == "gridsearch") return std::make_unique<GridTuner>(space);
  if (name == "random") return std::make_unique<RandomTuner>(space, seed);
  if (name == "ga") return std::make_unique<GeneticTuner>(space, seed);
  std::string known;
  for (const std::string& one : tuner_names()) known += (known.empty() ? "" : ", ") + one;
  throw Error(ErrorCode::kUsage, "no tuner \"" + std::string(name) + "\"; known: " + known);
}

}  // namespace tensormill::tune
