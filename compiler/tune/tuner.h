/// Tuners: who says which points of a task's space are tried next. Thread-safety: a tuner belongs to one
/// thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "compiler/tune/space.h"

namespace tensormill::tune {

class CostModel;

/// A point with what came of it: seconds of one run, infinity after an error.
struct Trial {
  Point point;
  double seconds = 0;
};

class Tuner {
public:
  explicit Tuner(const Space& space) : space_(space) {}
  virtual ~Tuner() = default;
  /// Up to `count` points that were never proposed and never observed; fewer, or none, when the space has
  /// no more (or none was found in many tries).
  virtual std::vector<Point> propose(size_t count) = 0;
  /// The outcomes of proposals, and of points from earlier records.
  virtual void observe(const std::vector<Trial>& trials);

protected:
  /// True the first time that the point's schedule is seen: different choices may make the same steps.
  bool is_new(const Point& point);
  /// True when is_new was called with the point's schedule.
  bool is_known(const Point& point) const;
  const Space& space() const { return space_; }

private:
  const Space& space_;
  std::set<std::string> seen_;
};

/// The names that make_tuner knows.
std::vector<std::string> tuner_names();

/// One of tuner_names(). Throws Error(kUsage) for another name. `task` and `model`: the kernel's key and the
/// cost model of all tasks, for those that ask one. All references must outlive the tuner.
std::unique_ptr<Tuner> make_tuner(std::string_view name, const Space& space, uint64_t seed,
                                  const std::string& task, CostModel& model);

/// The objective of the tuner's cost model: true for a ranking.
bool ranks(std::string_view name);

/// New points by uniform choices: what is left of `count` when others found fewer.
std::vector<Point> sample_points(const Space& space, Random& random, size_t count,
                                 const std::function<bool(const Point&)>& is_new);

}  // namespace tensormill::tune
