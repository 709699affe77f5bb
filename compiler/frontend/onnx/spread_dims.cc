#include "compiler/frontend/onnx/spread_dims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tensormill::frontend::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// The dim that the formula is, if it is one.
std::optional<size_t> same_dim(const DimFormula& formula) {
  if (formula.offset != 0 || formula.products.size() != 1) return std::nullopt;
  const DimProduct& product = formula.products[0];
  if (product.scale != 1 || product.factors.size() != 1) return std::nullopt;
  const DimTerm& term = product.factors[0];
  if (term.mul != 1 || term.add != 0 || term.div != 1) return std::nullopt;
  return static_cast<size_t>(term.dim);
}

/// What is made of a dim that is another one is made of that one.
std::vector<ir::DependentDim> resolved(std::vector<ir::DependentDim> dependents) {
  std::map<int32_t, int32_t> root_of;
  for (ir::DependentDim& each : dependents) {
    for (DimProduct& product : each.value.products) {
      for (DimTerm& term : product.factors) {
        if (const auto root = root_of.find(term.dim); root != root_of.end()) term.dim = root->second;
      }
    }
    if (const std::optional<size_t> same = same_dim(each.value))
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

/// The model at the points where `at` moves those of the set.
template <typename At>
void import_points(const ImportAt& import, const ir::SampleSet& set, const At& at,
                   std::vector<ir::ShapedGraph>& samples, std::vector<ir::ShapeCheck>& checks) {
  std::set<Dims> seen;
  for (const ir::ShapedGraph& sample : set.samples) {
    const Dims dims = at(sample.dims);
    if (!seen.insert(dims).second) continue;
    if (std::optional<ir::Graph> graph = import(dims)) samples.push_back({dims, std::move(*graph)});
  }
  for (const ir::ShapeCheck& check : set.checks) {
    const Dims dims = at(check.dims);
    if (!seen.insert(dims).second) continue;
    if (const std::optional<ir::Graph> graph = import(dims)) checks.push_back({dims, outputs_of(*graph)});
  }
}

/// The set where `one` is 1, and what was it is another dim.
ir::SampleSet set_of_one(const ImportAt& import, const ir::SampleSet& set, size_t one) {
  ir::SampleSet result;
  result.multiples = set.multiples;
  std::vector<ir::DependentDim> dependents = resolved(set.dependents);
  const auto next = std::find_if(dependents.begin(), dependents.end(),
                                 [&](const ir::DependentDim& each) { return same_dim(each.value) == one; });
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
  result.dependents = std::move(dependents);
  result.dependents.push_back({one, DimFormula{1, {}}});
  const auto at = [&](Dims dims) {
    dims[one] = 1;
    return ir::with_dependents(std::move(dims), result.dependents);
  };
  import_points(import, set, at, result.samples, result.checks);
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
  import_points(import, set, at, set.spread_samples, set.spread_checks);
  for (const ir::DependentDim& each : set.spread) {
    Dims dims = with_ones(base, set.spread);
    dims[each.dim] = base[each.dim];
    if (dims == base) continue;
    if (std::optional<ir::Graph> graph = import(dims))
      set.spread_samples.push_back({dims, std::move(*graph)});
  }
}

std::vector<ir::SampleSet> sets_of_ones(const ImportAt& import, const ir::SampleSet& set) {
  std::vector<ir::SampleSet> sets;
  std::set<std::set<size_t>> tried;
  // Of one more dim than the set before it, those of fewer first.
  const auto add_ones = [&](const ir::SampleSet& from, const std::set<size_t>& ones) {
    std::vector<std::pair<ir::SampleSet, std::set<size_t>>> more;
    std::set<size_t> roots;
    for (const ir::DependentDim& each : resolved(from.dependents)) {
      if (const std::optional<size_t> same = same_dim(each.value)) roots.insert(*same);
    }
    for (const size_t root : roots) {
      std::set<size_t> all = ones;
      if (!all.insert(root).second || !tried.insert(all).second) continue;
      const Dims& base = from.samples.front().dims;
      Dims dims = base;
      dims[root] = 1;
      if (base[root] == 1 || !import(dims)) continue;
      ir::SampleSet made = set_of_one(import, from, root);
      if (made.samples.size() < 2 || made.samples.size() * 2 < from.samples.size()) continue;
      add_spread_dims(import, made);
      more.emplace_back(std::move(made), std::move(all));
    }
    return more;
  };
  std::vector<std::set<size_t>> ones_of;
  for (size_t next = 0; next <= sets.size(); ++next) {
    auto more = next == 0 ? add_ones(set, {}) : add_ones(sets[next - 1], ones_of[next - 1]);
    for (auto& [made, ones] : more) {
      if (sets.size() + 1 == kMostGenericPlans) return sets;
      sets.push_back(std::move(made));
      ones_of.push_back(std::move(ones));
    }
  }
  return sets;
}

}  // namespace tensormill::frontend::onnx
