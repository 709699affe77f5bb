#include "compiler/driver/probe.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/driver/seeded.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/branch_symbols.h"
#include "compiler/ir/op_def.h"
#include "compiler/plan/kernel.h"
#include "runtime/base/error.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/package/model_step.h"

namespace tensormill::driver {

namespace {

/// What the reference computes in a tenth of a second or two.
constexpr int64_t kMostFlops = int64_t{1} << 25;
constexpr int64_t kMostElements = int64_t{1} << 22;
/// For the run of a probe, and of the executor at the plan's own extents.
constexpr int64_t kMostBytes = int64_t{1} << 31;
/// Of the largest magnitude of an output. A formula that is wrong misses whole elements.
constexpr double kTolerance = 1e-2;

bool is_quick(const ir::Graph& graph) {
  int64_t elements = 0, flops = 0;
  for (const ir::Value& value : graph.values())
    elements += value.constant ? 0 : num_elements(value.type.shape).hint();
  if (elements > kMostElements) return false;
  for (const plan::Kernel& kernel : plan::extract_kernels(graph).kernels) flops += kernel.flops;
  return flops <= kMostFlops;
}

bool are_close(const TensorView& actual, const Tensor& expected) {
  const Tensor copy(actual.dtype, actual.shape, nullptr, const_cast<void*>(actual.data));
  double largest = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double value = std::fabs(expected.element_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = copy.element_as_double(i), b = expected.element_as_double(i);
    const bool are_same = a == b || (std::isnan(a) && std::isnan(b));
    if (!are_same && !(std::fabs(a - b) <= kTolerance * largest)) return false;
  }
  return true;
}

class Prober {
public:
  explicit Prober(const std::shared_ptr<const package::LoadedPackage>& package) : package_(package) {}

  /// The generic plan that serves the dims; null for a variant; nothing where there is no plan.
  std::optional<const package::GenericPlan*> plan_for(const std::vector<int64_t>& dims) const {
    try {
      return package_->bind(dims)->generic;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidTensor) throw;
      return std::nullopt;
    }
  }

  /// Nothing where the data or too little memory say nothing.
  std::optional<bool> gives(const ir::ShapedGraph& probe) {
    if (!executor_)
      executor_.emplace(package_, exec::ExecutorOptions{.max_threads = 1, .memory_budget = kMostBytes});
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < probe.graph.inputs().size(); ++i)
      inputs.push_back(seeded_tensor(probe.graph.value(probe.graph.inputs()[i]).type, i + 1));
    try {
      executor_->bind_dims(probe.dims);
      for (size_t i = 0; i < inputs.size(); ++i)
        executor_->set_input(i, {inputs[i].dtype(), inputs[i].shape(), inputs[i].data()});
      executor_->run(pool_);
      const std::vector<Tensor> expected = ir::evaluate_reference(probe.graph, inputs);
      bool are_all = true;
      for (size_t i = 0; i < expected.size(); ++i) {
        const TensorView actual = executor_->output(i);
        // Of extents that data decides the reference has the largest.
        if (actual.shape != expected[i].shape()) continue;
        are_all = are_all && are_close(actual, expected[i]);
      }
      return are_all;
    } catch (const Error& error) {
      // Two formulas of one extent disagree there.
      if (error.code() == ErrorCode::kInvalidPackage) return false;
      if (error.code() != ErrorCode::kTensorData && error.code() != ErrorCode::kMemoryBudget) throw;
      return std::nullopt;
    }
  }

private:
  std::shared_ptr<const package::LoadedPackage> package_;
  std::optional<exec::GraphExecutor> executor_;  ///< made when it is needed
  parallel::ThreadPool pool_{1};
};

/// The model at the extents of a probe.
struct Probe {
  size_t dim = 0;
  ir::ShapedGraph graph;
};

/// By dim: where the plan is written down, and where the dim is small.
std::vector<Probe> probes_of(const ir::SymbolicModel& symbolic, const package::GenericPlan& plan) {
  std::vector<Probe> probes;
  const std::vector<ir::Guard>& guards = symbolic.graph.symbols()->guards();
  for (size_t dim = 0; dim < plan.dims.size(); ++dim) {
    for (const int64_t extent : {plan.dims[dim], int64_t{5}, int64_t{2}, int64_t{1}, int64_t{0}}) {
      Probe probe{dim, {plan.dims, ir::Graph(symbolic.graph.ops())}};
      probe.graph.dims[dim] = extent;
      std::map<std::string, int64_t> values;
      for (size_t i = 0; i < plan.dims.size(); ++i) values[symbolic.symbols[i]] = probe.graph.dims[i];
      // With all branches: where one does not take the extents nothing is compared.
      ir::add_branch_values(*symbolic.graph.symbols(), values);
      const auto holds = [&](const ir::Guard& guard) { return ir::holds_at(guard, values); };
      if (!std::all_of(guards.begin(), guards.end(), holds)) continue;
      if (extent < plan.minimums[dim]) continue;
      probe.graph.graph = ir::bind_symbols(symbolic.graph, values);
      probes.push_back(std::move(probe));
    }
  }
  return probes;
}

/// The probes of one dim, the first of which is at the plan's own extent.
void run_dim(Prober& prober, const std::vector<const Probe*>& probes, Probed& probed) {
  bool is_comparable = false;
  int64_t right = 0;  ///< the least extent down to which all are right
  for (const Probe* probe : probes) {
    const int64_t extent = probe->graph.dims[probe->dim];
    const std::optional<const package::GenericPlan*> plan = prober.plan_for(probe->graph.dims);
    probed.is_complete = probed.is_complete && plan.has_value();
    if (!plan || *plan == nullptr || !is_quick(probe->graph.graph)) continue;
    const std::optional<bool> gives = prober.gives(probe->graph);
    if (probe == probes.front()) is_comparable = gives.value_or(false);
    if (!is_comparable) continue;
    if (gives.value_or(true)) {
      right = extent;
      continue;
    }
    probed.raised.push_back({*plan, probe->dim, right});
    probed.is_complete = false;
    return;
  }
}

}  // namespace

Probed run_probes(const std::shared_ptr<const package::LoadedPackage>& package,
                  const ir::Variants& variants) {
  Probed probed;
  const package::PlanSet& plans = package->package().plans();
  // A model that is one step computes nothing without an interpreter.
  if (!variants.symbolic || !plans.generic || package::is_model_step(plans.generic->plan)) return probed;
  // What a run decides about is no graph of numbers that a reference could run.
  if (!variants.symbolic->graph.symbols()->run_time_symbols().empty()) return probed;
  if (exec::executor_bytes(*package, 1) > kMostBytes) return probed;
  Prober prober(package);
  const std::vector<Probe> made = probes_of(*variants.symbolic, *plans.generic);
  for (size_t dim = 0; dim < variants.free_dims.size(); ++dim) {
    std::vector<const Probe*> probes;
    for (const Probe& probe : made) {
      if (probe.dim == dim) probes.push_back(&probe);
    }
    if (!probes.empty()) run_dim(prober, probes, probed);
  }
  return probed;
}

}  // namespace tensormill::driver
