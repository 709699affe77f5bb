/// The search space of a kernel: what its template can do, found by running it, or, where extents are free,
/// what the rule of its loops may be asked to do otherwise. A point's index is the mixed
/// number of its choices in the order in which the template has them (the first choice is the lowest digit),
/// so that spaces in which a knob's presence or candidates depend on another's value have indices too.
/// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/choose.h"
#include "compiler/target/target.h"
#include "compiler/tune/random.h"
#include "compiler/tune/task.h"

namespace tensormill::tune {

/// A point with the schedule that its choices make.
struct Point {
  uint64_t index = 0;
  std::vector<schedule::Knob> knobs;
  schedule::Schedule schedule;
};

class Space {
public:
  /// `task` must outlive the space. `sketches`: the automatic scheduler's points too (schedule/automatic.h),
  /// beside the template's; of a kernel of free extents there are none.
  Space(const Task& task, const target::Target& target, bool sketches = false);

  /// The template's own choices.
  const Point& analytic() const { return analytic_; }
  /// All points: exact where no knob depends on another, else the mean of what random descents through the
  /// choices make of it (Knuth, "Estimating the efficiency of backtrack programs", 1975), the same each time.
  uint64_t size_estimate() const;
  /// loop_features of the point's loops; zeros where its steps do not apply.
  std::vector<float> features(const Point& point) const;
  std::string digest() const;  ///< hex, of the analytic point's knobs and their candidates

  /// A walk over all points, each once; the last choice changes first.
  struct Walk {
    std::vector<std::pair<size_t, size_t>> digits;  ///< the next point's: candidate and their number
    bool done = false;
  };
  /// The next point whose choices fit together; nothing after the last.
  std::optional<Point> next(Walk& walk) const;
  /// Nothing where there is no such point, or its choices do not fit together.
  std::optional<Point> at(uint64_t index) const;
  /// Each choice uniform. Nothing where the choices do not fit together.
  std::optional<Point> sample(Random& random) const;
  /// As `config` says, a choice that it lacks or that is not to be had here at random.
  std::optional<Point> near(const schedule::Config& config, Random& random) const;
  /// `point` with one choice made anew.
  std::optional<Point> mutate(const Point& point, Random& random) const;
  /// Each choice from one of both.
  std::optional<Point> cross(const Point& a, const Point& b, Random& random) const;

private:
  std::optional<Point> make(const schedule::Chooser& choose) const;

  const Task& task_;
  target::Target target_;
  bool sketches_;
  Point analytic_;
};

schedule::Config config_of(const std::vector<schedule::Knob>& knobs);

}  // namespace tensormill::tune
