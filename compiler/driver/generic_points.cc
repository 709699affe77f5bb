#include "compiler/driver/generic_points.h"

#include <algorithm>
#include <map>
#include <string>

#include "compiler/plan/slice_starts.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

using ShapesByName = std::map<std::string, Shape>;

/// Of the values of an imported graph that have a name of their own.
ShapesByName shapes_of(const ir::Graph& graph) {
  ShapesByName shapes;
  std::set<std::string> repeated;
  for (const ir::Value& value : graph.values()) {
    if (!shapes.emplace(value.name, value.type.shape).second) repeated.insert(value.name);
  }
  for (const std::string& name : repeated) shapes.erase(name);
  return shapes;
}

/// Compares a generic plan of the samples with the model.
class ShapeComparison {
public:
  ShapeComparison(const Points& points, const std::vector<const ir::ShapedGraph*>& samples,
                  const package::GenericPlan& generic)
      : generic_(generic), starts_(samples) {
    // A pass may have changed the form of what keeps its name.
    for (size_t i = 0; i < generic.plan.buffers.size(); ++i) compared_.insert(i);
    for (const ir::ShapedGraph* sample : {samples.front(), samples.back()})
      compared_ = equal_of(package::instantiate(generic, sample->dims), sample->graph);
    for (const ir::ShapedGraph* sample : samples) {
      are_alike_ = are_alike_ && ir::has_nodes_of(sample->graph, samples.front()->graph);
      graphs_.push_back(&sample->graph);
    }
    // Of no elements it does not matter what they are made of.
    for (const ir::ShapedGraph* small : points.small) {
      if (std::find(small->dims.begin(), small->dims.end(), 0) == small->dims.end())
        small_.emplace(small->dims, small);
    }
  }

  /// Whether the plan can be bound to the check's dims, and its outputs and, as far as they are known, its
  /// other extents are the model's.
  bool gives(const ir::ShapeCheck& check) const {
    try {
      const package::ExecPlan plan = package::instantiate(generic_, check.dims);
      for (size_t i = 0; i < check.outputs.size(); ++i) {
        if (plan.buffers[static_cast<size_t>(plan.outputs[i].buffer)].shape != check.outputs[i]) return false;
      }
      const auto small = small_.find(check.dims);
      if (small == small_.end()) return true;
      const ir::Graph& graph = small->second->graph;
      return equal_of(plan, graph) == compared_ && starts_.give(*small->second) && has_constants(graph);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidTensor && error.code() != ErrorCode::kInvalidPackage) throw;
      return false;
    }
  }

private:
  /// Those of the compared buffers that are as large as the values of their name.
  std::set<size_t> equal_of(const package::ExecPlan& plan, const ir::Graph& graph) const {
    const ShapesByName shapes = shapes_of(graph);
    std::set<size_t> equal;
    for (const size_t i : compared_) {
      const auto found = shapes.find(plan.buffers[i].name);
      if (found != shapes.end() && found->second == plan.buffers[i].shape) equal.insert(i);
    }
    return equal;
  }

  /// What the samples compute alike may be something else below them.
  bool has_constants(const ir::Graph& graph) const {
    const bool are_comparable = are_alike_ && ir::has_nodes_of(graph, *graphs_.front());
    return !are_comparable || ir::has_constants_of(graph, graphs_);
  }

  const package::GenericPlan& generic_;
  plan::SliceStarts starts_;
  std::vector<const ir::Graph*> graphs_;  ///< of the samples
  bool are_alike_ = true;                 ///< they have the same nodes
  std::set<size_t> compared_;             ///< buffers
  std::map<std::vector<int64_t>, const ir::ShapedGraph*> small_;
};

/// The least extent of `dim`, above one that is refused, at which the plan was compared with the model.
int64_t least_above(const Points& points, size_t dim, int64_t refused) {
  const std::vector<int64_t>& base = points.samples.front()->dims;
  int64_t least = base[dim];
  for (const ir::ShapeCheck& check : points.checks) {
    std::vector<int64_t> others = check.dims;
    others[dim] = base[dim];
    for (const ir::DependentDim& each : points.spread) others[each.dim] = base[each.dim];
    others = ir::with_dependents(std::move(others), points.dependents);
    if (others == base && check.dims[dim] > refused) least = std::min(least, check.dims[dim]);
  }
  return least;
}

}  // namespace

Points points_of(const ir::SampleSet& set) {
  Points points{{}, {}, set.checks, set.multiples, set.dependents, {}, set.goes_first, {}};
  for (const ir::ShapedGraph& sample : set.samples) points.samples.push_back(&sample);
  for (const ir::ShapedGraph& small : set.small) points.small.push_back(&small);
  points.minimums = set.minimums;
  points.maximums = set.maximums;
  return points;
}

Points spread_points_of(const ir::SampleSet& set) {
  constexpr size_t kOwnSamples = 6;
  Points points = points_of(set);
  std::vector<const ir::ShapedGraph*> own = std::move(points.samples);
  points.samples.clear();
  for (const ir::ShapedGraph& sample : set.spread_samples) points.samples.push_back(&sample);
  const size_t step = std::max<size_t>(own.size() / kOwnSamples, 1);
  for (size_t i = 0; i + 1 < own.size(); i += step) points.samples.push_back(own[i]);
  points.samples.push_back(own.back());
  points.spread = set.spread;
  points.checks.insert(points.checks.end(), set.spread_checks.begin(), set.spread_checks.end());
  const auto is_spread = [&](const ir::DependentDim& dependent) {
    return std::any_of(set.spread.begin(), set.spread.end(),
                       [&](const ir::DependentDim& each) { return each.dim == dependent.dim; });
  };
  points.dependents.erase(std::remove_if(points.dependents.begin(), points.dependents.end(), is_spread),
                          points.dependents.end());
  return points;
}

bool is_dependent(const Points& points, size_t dim) {
  return std::any_of(points.dependents.begin(), points.dependents.end(),
                     [&](const ir::DependentDim& each) { return each.dim == dim; });
}

std::set<std::vector<int64_t>> check_outputs_of(const Points& points,
                                                const std::vector<const ir::ShapedGraph*>& samples,
                                                package::GenericPlan& plan) {
  const std::vector<int64_t>& base = points.samples.front()->dims;
  std::set<std::vector<int64_t>> refused;
  plan.minimums.assign(base.size(), 0);
  const ShapeComparison comparison(points, samples, plan);
  std::vector<int64_t> minimums(base.size(), 1);
  std::set<size_t> may_be_empty;
  for (const ir::ShapeCheck& check : points.checks) {
    const bool is_elsewhere =
        std::any_of(points.elsewhere.begin(), points.elsewhere.end(),
                    [&](const ir::SampleSet* set) { return ir::has_form(*set, check.dims); });
    if (is_elsewhere) continue;
    if (comparison.gives(check)) {
      for (size_t d = 0; d < base.size(); ++d) {
        if (check.dims[d] == 0) may_be_empty.insert(d);
      }
      continue;
    }
    bool small = false;
    for (size_t d = 0; d < base.size(); ++d) {
      if (check.dims[d] >= base[d] || is_dependent(points, d)) continue;
      small = true;
      minimums[d] = std::max(minimums[d], least_above(points, d, check.dims[d]));
    }
    if (small) {
      refused.insert(check.dims);
      continue;
    }
    throw Error(ErrorCode::kNotSupported,
                "the shapes of the outputs depend on the free dims in a way that "
                "has no formula: they differ at " +
                    to_string(Shape(check.dims)));
  }
  for (const size_t d : may_be_empty) {
    if (minimums[d] == 1) minimums[d] = 0;
  }
  for (size_t d = 0; d < points.minimums.size(); ++d) minimums[d] = std::max(minimums[d], points.minimums[d]);
  plan.minimums = std::move(minimums);
  return refused;
}

}  // namespace tensormill::driver
