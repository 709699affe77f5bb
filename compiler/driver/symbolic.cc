#include "compiler/driver/symbolic.h"

#include <algorithm>
#include <set>

#include "compiler/ir/bind_symbols.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/symbolic_plan.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// What chooses layouts and algorithms by extents; and what makes one kernel of several reductions.
const std::set<std::string>& specializing_passes() {
  static const std::set<std::string> names = {"alter_layout", "choose_algorithms", "pack_matmul",
                                              "fuse_attention", "fuse_layer_norm"};
  return names;
}

std::map<std::string, int64_t> values_of(const std::vector<std::string>& symbols,
                                         const std::vector<int64_t>& dims) {
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < dims.size(); ++i) values[symbols[i]] = dims[i];
  return values;
}

/// Whether it takes an extent for a number, or for one of a few.
bool pins(const ir::Guard& guard) {
  return guard.relation == ir::Relation::kEqual && guard.holds && !guard.demanded &&
         (guard.left.is_constant() || guard.right.is_constant());
}

/// Whether the plans of extents of 1 serve what the guard leaves out: each side is a symbol, or more than 1.
bool is_spread(const ir::Guard& guard, const te::DimFacts& facts) {
  const auto fits = [&](const te::Dim& side) {
    return side.as_symbol() != nullptr || facts.prove_le(te::Dim(2), side) == te::Truth::kProven;
  };
  return guard.relation == ir::Relation::kEqual && guard.holds && fits(guard.left) && fits(guard.right);
}

}  // namespace

ir::Graph optimize_generic(const ir::Graph& graph, const CompileOptions& options) {
  passes::PipelineOptions pipeline;
  pipeline.context = {options.target.facts, options.opt_level};
  pipeline.context.is_sample = true;
  pipeline.disabled = options.disabled_passes;
  pipeline.disabled.insert(specializing_passes().begin(), specializing_passes().end());
  std::vector<std::string> ran;
  return passes::run_pipeline(graph, pipeline, ran);
}

/// Some products of dims are beyond what the verifier can show: no reason to lose the buckets.
void check_bounds(const plan::GenericKernel& kernel) {
  try {
    te::verify(kernel.loops, te::Level::kLoops);
  } catch (const InternalError& error) {
    throw Error(
        ErrorCode::kNotSupported,
        "kernel " + kernel.symbol + " is not shown to stay in its buffers for all shapes: " + error.what());
  }
}

bool is_open(const ir::SymbolTable& table) {
  return std::all_of(table.guards().begin(), table.guards().end(), [&](const ir::Guard& guard) {
    return guard.demanded || is_spread(guard, table.facts());
  });
}

bool takes_symbolic(const ir::SymbolicModel& model) {
  const ir::SymbolTable& table = *model.graph.symbols();
  const auto takes = [&] {
    return std::none_of(table.guards().begin(), table.guards().end(), pins) && !table.has_strayed();
  };
  if (!takes()) return false;
  try {
    const ir::Graph graph = optimize_generic(model.graph, {});
    plan::find_kernel_guards(graph);
    if (!takes()) return false;
    const std::vector<int64_t> base = points_of(model.symbols, table, {}, 0).at(0);
    constexpr int kLanes = 8;
    const plan::GenericModel planned =
        plan::plan_symbolic(graph, {model.symbols, model.symbols, base}, model.graph.output_names(), kLanes);
    for (const plan::GenericKernel& kernel : planned.kernels) check_bounds(kernel);
  } catch (const Error& error) {
    // What cannot be made for all extents is made for those of samples.
    static_cast<void>(error);
    return false;
  }
  return takes();
}

std::vector<std::vector<int64_t>> points_of(const std::vector<std::string>& symbols,
                                            const ir::SymbolTable& table,
                                            const std::vector<int64_t>& candidates, size_t most) {
  const auto holds = [&](const std::map<std::string, int64_t>& values) {
    return std::all_of(table.guards().begin(), table.guards().end(),
                       [&](const ir::Guard& guard) { return ir::holds_at(guard, values); });
  };
  std::vector<std::vector<int64_t>> points;
  const auto add = [&](std::map<std::string, int64_t> values) {
    for (auto& [symbol, value] : values) {
      const auto solved = table.facts().simplify(te::Dim::symbol(symbol)).evaluate(values);
      if (solved) value = *solved;
    }
    const bool are_extents =
        std::all_of(values.begin(), values.end(), [](const auto& each) { return each.second >= 1; });
    if (!are_extents || !holds(values)) return;
    std::vector<int64_t> dims;
    for (const std::string& symbol : symbols)
      dims.push_back(values.count(symbol) != 0 ? values.at(symbol) : 1);
    if (std::find(points.begin(), points.end(), dims) == points.end()) points.push_back(std::move(dims));
  };
  for (const int64_t each : candidates) {
    if (points.size() == most) break;
    std::map<std::string, int64_t> values = table.hints();
    for (auto& [symbol, value] : values) value = each;
    add(std::move(values));
  }
  add(table.hints());
  return points;
}

bool take_zeros(const ir::SymbolicModel& symbolic, package::GenericPlan& plan) {
  bool takes_all = true;
  for (size_t d = 0; d < symbolic.symbols.size(); ++d) {
    if (symbolic.graph.symbols()->hints().count(symbolic.symbols[d]) == 0) continue;
    std::vector<int64_t> dims = plan.dims;
    dims[d] = 0;
    std::vector<Shape> expected;
    try {
      const ir::Graph graph = ir::bind_symbols(symbolic.graph, values_of(symbolic.symbols, dims));
      for (const ir::ValueId output : graph.outputs()) expected.push_back(graph.value(output).type.shape);
    } catch (const Error& error) {
      // The model does not take it either.
      if (error.code() != ErrorCode::kInvalidModel) throw;
      continue;
    }
    const int64_t before = std::exchange(plan.minimums[d], 0);
    bool is_right = true;
    try {
      const package::ExecPlan at = package::instantiate(plan, dims);
      for (size_t i = 0; i < expected.size(); ++i) {
        const Shape& shape = at.buffers[static_cast<size_t>(at.outputs[i].buffer)].shape;
        is_right = is_right && shape == expected[i];
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidTensor && error.code() != ErrorCode::kInvalidPackage) throw;
      is_right = false;
    }
    if (!is_right) plan.minimums[d] = before;
    takes_all = takes_all && is_right;
  }
  return takes_all;
}

}  // namespace tensormill::driver
