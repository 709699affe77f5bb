#include "compiler/frontend/onnx/spread_dims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tensormill::frontend::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// What is made of a dim that is another one is made of that one.
std::vector<ir::DependentDim> resolved(std::vector<ir::DependentDim> dependents) {
  std::map<int32_t, int32_t> root_of;
  for (ir::DependentDim& each : dependents) {
    for (DimProduct& product : each.value.products) {
      for (DimTerm& term : product.factors) {
        if (const auto root = root_of.find(term.dim); root != root_of.end()) term.dim = root->second;
      }
    }
    if (const std::optional<size_t> same = ir::same_dim(each.value))
      root_of.emplace(static_cast<int32_t>(each.dim), static_cast<int32_t>(*same));
  }
  return dependents;
}

Dims with_ones(Dims dims, const std::vector<ir::DependentDim>& ones) {
  for (const ir::DependentDim& each : ones) dims[each.dim] = 1;
  return dims;
}

std::vector<Shape> outputs_of(const ir::Graph& graph) {
  std::vector<Shape> outputs;
  for (const ir::ValueId output : graph.outputs()) outputs.push_back(graph.value(output).type.shape);
  return outputs;
}

/// The model at the points where `at` moves those of the set; `small`: those below the samples, or null.
template <typename At>
void import_points(const ImportAt& import, const ir::SampleSet& set, const At& at,
                   std::vector<ir::ShapedGraph>& samples, std::vector<ir::ShapeCheck>& checks,
                   std::vector<ir::ShapedGraph>* small) {
  std::set<Dims> seen, below;
  for (const ir::ShapedGraph& sample : set.samples) {
    const Dims dims = at(sample.dims);
    if (!seen.insert(dims).second) continue;
    if (std::optional<ir::Graph> graph = import(dims)) samples.push_back({dims, std::move(*graph)});
  }
  for (const ir::ShapedGraph& each : set.small) below.insert(at(each.dims));
  for (const ir::ShapeCheck& check : set.checks) {
    const Dims dims = at(check.dims);
    if (!seen.insert(dims).second) continue;
    std::optional<ir::Graph> graph = import(dims);
    if (!graph) continue;
    checks.push_back({dims, outputs_of(*graph)});
    if (small == nullptr || below.count(dims) == 0 || samples.empty()) continue;
    if (ir::has_nodes_of(*graph, samples.front().graph)) small->push_back({dims, std::move(*graph)});
  }
}

/// The set where `one` is 1, and what was it is another dim, if there is one.
ir::SampleSet set_of_one(const ImportAt& import, const ir::SampleSet& set, size_t one) {
  ir::SampleSet result;
  result.multiples = set.multiples;
  std::vector<ir::DependentDim> dependents = resolved(set.dependents);
  const auto next = std::find_if(dependents.begin(), dependents.end(), [&](const ir::DependentDim& each) {
    return ir::same_dim(each.value) == one;
  });
  const ir::DependentDim is_one{one, DimFormula{1, {}}};
  if (next == dependents.end()) {
    dependents.insert(dependents.begin(), is_one);
  } else {
    const size_t root = next->dim;
    std::swap(result.multiples[one], result.multiples[root]);
    dependents.erase(next);
    for (ir::DependentDim& each : dependents) {
      for (DimProduct& product : each.value.products) {
        for (DimTerm& term : product.factors) {
          if (static_cast<size_t>(term.dim) == one) term.dim = static_cast<int32_t>(root);
        }
      }
    }
    dependents.push_back(is_one);
  }
  result.dependents = std::move(dependents);
  const auto at = [&](Dims dims) {
    dims[one] = 1;
    return ir::with_dependents(std::move(dims), result.dependents);
  };
  import_points(import, set, at, result.samples, result.checks, &result.small);
  return result;
}

}  // namespace

void add_spread_dims(const ImportAt& import, ir::SampleSet& set) {
  const Dims& base = set.samples.front().dims;
  const auto takes = [&](const std::vector<ir::DependentDim>& ones) {
    return import(with_ones(base, ones)).has_value();
  };
  for (const ir::DependentDim& each : resolved(set.dependents)) {
    if (base[each.dim] == 1) continue;
    std::vector<ir::DependentDim> more = set.spread;
    more.push_back(each);
    if (takes({each}) && takes(more)) set.spread = std::move(more);
  }
  if (set.spread.empty()) return;
  const auto at = [&](const Dims& dims) { return with_ones(dims, set.spread); };
  import_points(import, set, at, set.spread_samples, set.spread_checks, nullptr);
  for (const ir::DependentDim& each : set.spread) {
    Dims dims = with_ones(base, set.spread);
    dims[each.dim] = base[each.dim];
    if (dims == base) continue;
    if (std::optional<ir::Graph> graph = import(dims))
      set.spread_samples.push_back({dims, std::move(*graph)});
  }
}

namespace {

/// The dims that others are equal to.
std::set<size_t> roots_of(const ir::SampleSet& set) {
  std::set<size_t> roots;
  for (const ir::DependentDim& each : resolved(set.dependents)) {
    if (const std::optional<size_t> same = ir::same_dim(each.value)) roots.insert(*same);
  }
  return roots;
}

/// The model where one more dim is 1; nothing where it does not take that.
std::optional<ir::Graph> graph_with_one(const ImportAt& import, const ir::SampleSet& set, size_t one) {
  Dims dims = set.samples.front().dims;
  if (std::exchange(dims[one], 1) == 1) return std::nullopt;
  return import(dims);
}

/// The set with one more dim that is 1; nothing where the model takes too few such shapes.
std::optional<ir::SampleSet> with_one(const ImportAt& import, const ir::SampleSet& set, size_t one) {
  ir::SampleSet made = set_of_one(import, set, one);
  // Of a shape that has no free dim left there is one sample.
  const bool is_fixed = made.samples.size() == 1 && made.dependents.size() == made.multiples.size();
  const bool are_few = made.samples.size() < 2 || made.samples.size() * 2 < set.samples.size();
  if (are_few && !is_fixed) return std::nullopt;
  add_spread_dims(import, made);
  return made;
}

/// The dims of the first `own_dims` that nothing follows from and of which an extent of 1 changes what is
/// computed.
std::set<size_t> changing_dims(const ImportAt& import, const ir::SampleSet& set, size_t own_dims) {
  const ir::Graph& first = set.samples.front().graph;
  std::vector<const ir::Graph*> samples;
  for (const ir::ShapedGraph& sample : set.samples) samples.push_back(&sample.graph);
  const bool are_alike = std::all_of(samples.begin(), samples.end(), [&](const ir::Graph* sample) {
    return ir::has_nodes_of(*sample, first);
  });
  std::set<size_t> known = roots_of(set), changing;
  for (const ir::DependentDim& each : set.dependents) known.insert(each.dim);
  for (size_t dim = 0; dim < own_dims; ++dim) {
    if (known.count(dim) != 0) continue;
    Dims dims = set.samples.front().dims;
    if (std::exchange(dims[dim], 1) == 1) continue;
    const std::optional<ir::Graph> graph = import(ir::with_dependents(dims, set.dependents));
    const bool is_alike =
        !graph || (ir::has_nodes_of(*graph, first) && (!are_alike || ir::has_constants_of(*graph, samples)));
    if (!is_alike) changing.insert(dim);
  }
  return changing;
}

}  // namespace

size_t most_generic_plans(size_t nodes) {
  constexpr size_t kFewest = 8, kMost = 96, kNodesOfAll = 1024;
  return std::clamp(kNodesOfAll / std::max<size_t>(nodes, 1), kFewest, kMost);
}

SpecialSets sets_of_ones(const ImportAt& import, const ir::SampleSet& set, size_t own_dims) {
  struct Made {
    ir::SampleSet set;
    std::set<size_t> ones;
  };
  std::vector<Made> made;
  std::set<std::set<size_t>> tried;
  const std::set<size_t> changing = changing_dims(import, set, own_dims);
  const size_t most = most_generic_plans(set.samples.front().graph.nodes().size());
  SpecialSets result;
  const auto is_full = [&] { return made.size() + 1 >= most; };
  // Of one more dim than the set before it, those of fewer first.
  for (size_t next = 0; next <= made.size() && !(is_full() && result.leaves_out); ++next) {
    std::set<size_t> choices = changing;
    choices.merge(roots_of(next == 0 ? set : made[next - 1].set));
    for (const size_t one : choices) {
      const ir::SampleSet& from = next == 0 ? set : made[next - 1].set;
      std::set<size_t> ones = next == 0 ? std::set<size_t>() : made[next - 1].ones;
      const bool changes = changing.count(one) != 0;
      if (!ones.insert(one).second || !tried.insert(ones).second) continue;
      if (!changes && !graph_with_one(import, from, one)) continue;
      std::optional<ir::SampleSet> more;
      if (!is_full()) more = with_one(import, from, one);
      if (!more) {
        result.leaves_out = true;
        continue;
      }
      more->goes_first = changes || from.goes_first;
      made.push_back({*std::move(more), std::move(ones)});
    }
  }
  std::stable_partition(made.begin(), made.end(), [](const Made& each) { return !each.set.goes_first; });
  for (Made& each : made) result.sets.push_back(std::move(each.set));
  return result;
}

}  // namespace tensormill::frontend::onnx
