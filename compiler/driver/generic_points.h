/// At which shapes a generic plan is made and compared with the model. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/ir/variants.h"
#include "runtime/package/plan_set.h"

namespace tensormill::driver {

/// What one plan is made from.
struct Points {
  std::vector<const ir::ShapedGraph*> samples, small;
  std::vector<ir::ShapeCheck> checks;
  std::vector<int64_t> multiples;
  std::vector<ir::DependentDim> dependents;
  std::vector<ir::DependentDim> spread;  ///< may also be 1; they are no dependents here
  bool goes_first = false;
  std::vector<const ir::SampleSet*> elsewhere;  ///< whose shapes other plans serve
  std::vector<int64_t> minimums = {};           ///< of the dims, 0 where that is not known; or none at all
  std::vector<int64_t> maximums = {};           ///< of the dims, 0 where there is none; or none at all
};

Points points_of(const ir::SampleSet& set);
/// Of what the model is where dims are 1 that may be, and a few of the set's own samples, where they are not.
Points spread_points_of(const ir::SampleSet& set);
bool is_dependent(const Points& points, size_t dim);

/// The plan gives the model's output shapes at every checked point. Extents below the samples for which it
/// does not are below its minimums; so is 0 where the model does not take it. Returns those without a 0.
/// Throws Error(kNotSupported) where it does not give others.
std::set<std::vector<int64_t>> check_outputs_of(const Points& points,
                                                const std::vector<const ir::ShapedGraph*>& samples,
                                                package::GenericPlan& plan);

}  // namespace tensormill::driver
