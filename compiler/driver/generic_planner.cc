#include "compiler/driver/generic_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ir/branch_symbols.h"
#include "compiler/plan/step_branches.h"
#include "compiler/plan/symbolic_plan.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// Whether it takes an extent for a number, or for one of a few; what a branch does is told where it is
/// taken.
bool pins(const ir::Guard& guard) {
  return ir::branch_of(guard) == ir::kOutside && guard.relation == ir::Relation::kEqual && guard.holds &&
         !guard.demanded && (guard.left.is_constant() || guard.right.is_constant());
}

/// Why a plan would serve but a part of what the model takes; "" where it serves all.
std::string what_pins(const ir::SymbolTable& table) {
  const char* differs = "nodes compute something else at some extents than at others";
  const auto pin = std::find_if(table.guards().begin(), table.guards().end(), pins);
  if (pin != table.guards().end())
    return std::string(differs) + ": node \"" + pin->origin + "\", where " + ir::to_string(*pin);
  return table.has_strayed() ? differs : "";
}

/// `graph`: the optimized model, with the guards of its kernels.
PlannedModel plan_of(const ir::SymbolicModel& model, ir::Graph graph,
                     const std::vector<std::string>& free_dims, const CompileOptions& options) {
  PlanSymbols symbols = plan_symbols(model, graph, free_dims);
  const std::vector<int64_t> base = base_point(symbols.all, *graph.symbols(), {8, 4, 16, 32, 64, 128});
  plan::GenericModel planned =
      plan_with(graph, symbols, base, model.graph.output_names(), loop_facts(options.target.facts));
  for (const plan::GenericKernel& kernel : planned.kernels) check_bounds(kernel);
  return {std::move(graph), std::move(symbols), std::move(planned)};
}

/// `for_plan_alone`: as PassContext's. `reason`: receives why there is none; may be null.
std::optional<PlannedModel> plan_if_taken(const ir::SymbolicModel& model, const CompileOptions& options,
                                          bool for_plan_alone, std::string* reason) {
  const ir::SymbolTable& table = *model.graph.symbols();
  const auto is_refused = [&](const std::string& why) {
    if (reason != nullptr) *reason = why;
    return !why.empty();
  };
  if (is_refused(what_pins(table))) return std::nullopt;
  try {
    ir::Graph graph = optimize_generic(model.graph, options, nullptr, for_plan_alone);
    plan::find_kernel_guards(graph);
    if (is_refused(what_pins(table))) return std::nullopt;
    PlannedModel planned = plan_of(model, std::move(graph), model.symbols, options);
    static_cast<void>(plan::with_dims_around(planned.model.plan, planned.symbols.dims, model.symbols));
    if (!is_refused(what_pins(table))) return planned;
  } catch (const Error& error) {
    // What cannot be made for all extents is made for some shapes, and interpreted at others.
    static_cast<void>(is_refused(error.message()));
  }
  return std::nullopt;
}

/// Whether models are optimized with them as they are to see whether they have a plan.
bool are_default(const CompileOptions& options) {
  return options.opt_level == CompileOptions().opt_level && options.disabled_passes.empty() &&
         options.algorithms.empty() && !options.layout;
}

}  // namespace

bool takes_symbolic(const ir::SymbolicModel& model, std::string* reason) {
  return plan_if_taken(model, CompileOptions(), true, reason).has_value();
}

GenericPlanner::GenericPlanner(target::Target target) { options_.target = std::move(target); }

bool GenericPlanner::takes(const ir::SymbolicModel& model, std::string* reason) {
  std::optional<PlannedModel> planned = plan_if_taken(model, options_, false, reason);
  if (!planned) return false;
  stored_.push_back({model.graph.symbols(), model.symbols, *std::move(planned)});
  return true;
}

PlannedModel GenericPlanner::plan(const ir::SymbolicModel& model, const std::vector<std::string>& free_dims,
                                  const CompileOptions& options, passes::LayoutLog* layout_log) {
  const auto found = std::find_if(stored_.begin(), stored_.end(), [&](const StoredPlan& each) {
    return each.table == model.graph.symbols() && each.free_dims == free_dims && are_default(options);
  });
  if (found != stored_.end()) {
    PlannedModel planned = std::move(found->planned);
    stored_.erase(found);
    return planned;
  }
  ir::Graph graph = optimize_generic(model.graph, options, layout_log);
  plan::find_kernel_guards(graph);
  return plan_of(model, std::move(graph), free_dims, options);
}

}  // namespace tensormill::driver
