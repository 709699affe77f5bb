#include "compiler/driver/symbolic.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <span>

#include "compiler/driver/layers.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/branch_symbols.h"
#include "compiler/ir/run_dims.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/symbolic_plan.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

std::map<std::string, int64_t> values_of(const std::vector<std::string>& symbols,
                                         const std::vector<int64_t>& dims) {
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < dims.size(); ++i) values[symbols[i]] = dims[i];
  return values;
}

/// Whether the plans of extents of 1 serve what the guard leaves out: each side is a symbol, or more than 1.
bool is_spread(const ir::Guard& guard, const te::DimFacts& facts) {
  const auto fits = [&](const te::Dim& side) {
    return side.as_symbol() != nullptr || facts.prove_le(te::Dim(2), side) == te::Truth::kProven;
  };
  return guard.relation == ir::Relation::kEqual && guard.holds && fits(guard.left) && fits(guard.right);
}

}  // namespace

ir::Graph optimize_generic(const ir::Graph& graph, const CompileOptions& options,
                           passes::LayoutLog* layout_log, bool for_plan_alone) {
  passes::PipelineOptions pipeline;
  pipeline.context = {options.target.facts, options.opt_level};
  pipeline.context.is_generic = true;
  pipeline.context.for_plan_alone = for_plan_alone;
  if (options.layout) {
    pipeline.context.layout = passes::bind_desired_layout(*options.layout, graph);
    pipeline.context.layout_log = layout_log;
  }
  pipeline.disabled = options.disabled_passes;
  if (!options.algorithms.empty())
    pipeline.context.algorithms = LayerProbe(graph, pipeline).options_for(options.algorithms);
  std::vector<std::string> ran;
  return ir::in_segments(passes::run_pipeline(graph, pipeline, ran));
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

namespace {

/// "N >= 2", "(W + 3)//4 >= 2" where one term is compared with a number, else as it is.
std::string condition_text(const ir::Guard& guard) {
  const te::Dim difference = guard.left - guard.right;
  const std::vector<te::DimTerm>& terms = difference.terms();
  if (terms.size() != 1 || std::abs(terms[0].coefficient) != 1) return ir::to_string(guard);
  // sign * term + constant, compared with 0.
  const int64_t sign = terms[0].coefficient, zero = -sign * difference.constant();
  const te::Dim term = difference - te::Dim(difference.constant());
  const std::string name = (sign > 0 ? term : -term).to_string();
  if (guard.relation == ir::Relation::kEqual)
    return name + (guard.holds ? " == " : " != ") + std::to_string(zero);
  const bool is_at_most = guard.holds == (sign > 0);
  // Whether the relation holds where both sides are equal.
  const bool has_zero = guard.holds == (guard.relation == ir::Relation::kLessEqual);
  const int64_t bound = has_zero ? zero : zero + (is_at_most ? -1 : 1);
  return name + (is_at_most ? " <= " : " >= ") + std::to_string(bound);
}

}  // namespace

void add_conditions(const ir::SymbolTable& table, std::vector<std::string>& conditions) {
  const auto before = std::make_shared<ir::SymbolTable>();
  before->add_symbols_of(table);
  for (const ir::Guard& guard : table.guards()) {
    const bool is_outside = !table.is_run_time(guard) && ir::branch_of(guard) == ir::kOutside;
    // Of extents of 1 or more most hold by themselves.
    const te::Truth truth = !is_outside || guard.demanded
                                ? te::Truth::kProven
                                : before->truth(guard.relation, {guard.left, before}, {guard.right, before});
    // What meets is as long, or one of them is 1: of most others the model takes none.
    const bool is_meeting = guard.relation == ir::Relation::kEqual && guard.holds &&
                            !guard.left.is_constant() && !guard.right.is_constant();
    if (truth == te::Truth::kUnknown && !is_meeting) conditions.push_back(condition_text(guard));
    before->add_guard(guard);
  }
}

bool is_open(const ir::SymbolTable& table) {
  // What a guard leaves out is told without the guard: by those before it.
  const auto before = std::make_shared<ir::SymbolTable>();
  before->add_symbols_of(table);
  for (const ir::RunSymbol& symbol : table.run_time_symbols()) {
    // A run may have less of it.
    if (symbol.low && !symbol.high) return false;
  }
  for (const ir::Guard& guard : table.guards()) {
    // Of what a run decides there is no plan of extents of 1.
    const bool is_apart = table.is_run_time(guard) || ir::branch_of(guard) != ir::kOutside;
    if (!guard.demanded && (is_apart || !is_spread(guard, before->facts()))) return false;
    before->add_guard(guard);
  }
  return true;
}

namespace {

/// Numbers of a run that a guard says to be equal to something are that.
void meet_guards(const ir::SymbolTable& table, std::map<std::string, int64_t>& values) {
  const auto is_run_time = [&](const std::string& name) {
    return std::any_of(table.run_time_symbols().begin(), table.run_time_symbols().end(),
                       [&](const ir::RunSymbol& symbol) { return symbol.name == name; });
  };
  for (const ir::Guard& guard : table.guards()) {
    if (guard.relation != ir::Relation::kEqual || !guard.holds) continue;
    const bool is_left = guard.left.as_symbol() != nullptr && is_run_time(*guard.left.as_symbol());
    const te::Dim &own = is_left ? guard.left : guard.right, &other = is_left ? guard.right : guard.left;
    const std::string* symbol = own.as_symbol();
    const std::optional<int64_t> value = other.evaluate(values);
    if (symbol != nullptr && is_run_time(*symbol) && value) values[*symbol] = *value;
  }
}

/// What counts something is no more than there is.
void cap_counts(const ir::SymbolTable& table, std::map<std::string, int64_t>& values) {
  for (const ir::RunSymbol& symbol : table.run_time_symbols()) {
    const std::optional<int64_t> high = symbol.high ? symbol.high->evaluate(values) : std::nullopt;
    if (high) values[symbol.name] = std::min(values[symbol.name], *high);
  }
}

}  // namespace

namespace {

/// The extents for these values of the symbols, as taken_point.
std::optional<std::vector<int64_t>> point_at(const std::vector<std::string>& symbols,
                                             const ir::SymbolTable& table,
                                             std::map<std::string, int64_t> values) {
  for (auto& [symbol, value] : values) {
    const auto solved = table.facts().simplify(te::Dim::symbol(symbol)).evaluate(values);
    if (solved) value = *solved;
  }
  meet_guards(table, values);
  cap_counts(table, values);
  const bool are_extents =
      std::all_of(values.begin(), values.end(), [](const auto& each) { return each.second >= 1; });
  const bool holds = std::all_of(table.guards().begin(), table.guards().end(),
                                 [&](const ir::Guard& guard) { return ir::holds_at(guard, values); });
  if (!are_extents || !holds) return std::nullopt;
  std::vector<int64_t> dims;
  for (const std::string& symbol : symbols) dims.push_back(values.count(symbol) != 0 ? values.at(symbol) : 1);
  return dims;
}

}  // namespace

std::optional<std::vector<int64_t>> taken_point(const std::vector<std::string>& symbols,
                                                const ir::SymbolTable& table,
                                                const std::vector<int64_t>& dims) {
  std::map<std::string, int64_t> values = table.hints();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (values.count(symbols[i]) != 0) values[symbols[i]] = dims[i];
  }
  return point_at(symbols, table, std::move(values));
}

std::vector<std::vector<int64_t>> points_of(const std::vector<std::string>& symbols,
                                            const ir::SymbolTable& table,
                                            const std::vector<int64_t>& candidates, size_t most) {
  std::vector<std::vector<int64_t>> points;
  const auto add = [&](std::map<std::string, int64_t> values) {
    std::optional<std::vector<int64_t>> dims = point_at(symbols, table, std::move(values));
    if (dims && std::find(points.begin(), points.end(), *dims) == points.end())
      points.push_back(*std::move(dims));
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

ir::Graph graph_at(const ir::Graph& graph, const std::vector<std::string>& symbols,
                   const std::vector<int64_t>& dims) {
  return ir::bind_symbols(graph, values_of(symbols, dims));
}

ir::ShapedGraph at_hints(const ir::SymbolicModel& model) {
  const std::vector<int64_t> dims = points_of(model.symbols, *model.graph.symbols(), {}, 0).at(0);
  std::map<std::string, int64_t> values = model.graph.symbols()->hints();
  for (size_t i = 0; i < dims.size(); ++i) values[model.symbols[i]] = dims[i];
  return {dims, ir::bind_symbols(model.graph, values)};
}

std::vector<int64_t> base_point(const std::vector<std::string>& symbols, const ir::SymbolTable& table,
                                const std::vector<int64_t>& candidates) {
  std::vector<std::vector<int64_t>> points = points_of(symbols, table, candidates, 1);
  if (points.empty()) throw Error(ErrorCode::kNotSupported, "no extents are known that the model takes");
  return std::move(points.front());
}

namespace {

/// What forbids the extents: the first guard in the order of what was asked, so that those before it hold.
const ir::Guard* first_broken(const ir::SymbolTable& table, const std::map<std::string, int64_t>& values) {
  const auto found = std::find_if(table.guards().begin(), table.guards().end(),
                                  [&](const ir::Guard& guard) { return !ir::holds_at(guard, values); });
  return found == table.guards().end() ? nullptr : &*found;
}

/// Whether the plan's outputs have the extents that the model's have.
bool has_shapes_of(const ir::SymbolicModel& symbolic, const PlanSymbols& symbols,
                   const package::GenericPlan& plan, const std::vector<int64_t>& dims) {
  try {
    const ir::Graph graph = graph_at(symbolic.graph, symbols.all, dims);
    const package::ExecPlan at =
        package::instantiate(plan::with_dims_around(plan, symbols.dims, symbolic.symbols),
                             plan::without_branches(dims, symbols.dims));
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const ir::SymShape& expected = graph.value(graph.outputs()[i]).type.shape;
      if (at.buffers[static_cast<size_t>(at.outputs[i].buffer)].shape != expected.hints()) return false;
    }
    return true;
  } catch (const Error& error) {
    // The model is not known to take it, or the plan does not.
    static_cast<void>(error);
    return false;
  }
}

/// The dims where free dim `zero` is 0, numbers of a run that are equal to it, and what the branches have of
/// it, or, where a branch does not take that, what they have in `base`.
std::vector<int64_t> dims_with_zero(const ir::SymbolTable& table, const PlanSymbols& symbols,
                                    const std::vector<int64_t>& base, size_t zero, bool in_branches) {
  std::map<std::string, int64_t> values = values_of(symbols.all, base);
  values[symbols.all[zero]] = 0;
  for (size_t i = 0; i < symbols.dims.around.size() && in_branches; ++i) {
    if (symbols.dims.around[i] == zero) values[symbols.all[symbols.dims.free_dims + i]] = 0;
  }
  meet_guards(table, values);
  cap_counts(table, values);
  std::vector<int64_t> result;
  for (const std::string& symbol : symbols.all) {
    const te::Dim solved = table.facts_with_zeros().solved(te::Dim::symbol(symbol));
    result.push_back(solved.evaluate(values).value_or(0));
  }
  return result;
}

/// Numbers of a run that are 0 together: all of them, and of few each alone; of many every second one, and
/// the others, so that what is joined has some of its parts.
std::vector<std::vector<size_t>> zero_groups(size_t count) {
  constexpr size_t kFew = 16;
  std::vector<std::vector<size_t>> groups(count <= kFew ? count : 2);
  for (size_t i = 0; i < count; ++i) groups[i % groups.size()].push_back(i);
  if (count > 1) {
    groups.emplace_back(count);
    std::iota(groups.back().begin(), groups.back().end(), 0);
  }
  return groups;
}

}  // namespace

// What a guard of a run refuses of a free dim of 0, runs with other numbers may take.
std::vector<std::vector<int64_t>> take_zeros(const ir::SymbolicModel& symbolic, const PlanSymbols& symbols,
                                             package::GenericPlan& plan, bool& takes_all) {
  const ir::SymbolTable& table = *symbolic.graph.symbols();
  std::vector<int64_t> base = plan.dims;
  for (const package::RunDim& run : plan.run_dims) base.push_back(run.sample);
  std::vector<std::vector<int64_t>> taken;
  const auto broken_at = [&](const std::vector<int64_t>& dims) {
    return first_broken(table, values_of(symbols.all, dims));
  };
  // Several together where they are taken together: each point is a model to be looked at, and compared.
  const std::function<void(std::span<const size_t>)> take_runs = [&](std::span<const size_t> runs) {
    std::map<std::string, int64_t> values = values_of(symbols.all, base);
    for (const size_t run : runs) values[symbols.all[plan.dims.size() + run]] = 0;
    cap_counts(table, values);
    std::vector<int64_t> dims;
    for (const std::string& symbol : symbols.all) dims.push_back(values.at(symbol));
    const ir::Guard* broken = broken_at(dims);
    if (broken == nullptr && has_shapes_of(symbolic, symbols, plan, dims)) {
      taken.push_back(std::move(dims));
    } else if (runs.size() > 1) {
      takes_all = takes_all && broken != nullptr && broken->demanded;
      take_runs(runs.first(runs.size() / 2));
      take_runs(runs.subspan(runs.size() / 2));
    } else if (broken != nullptr) {
      // What a guard refuses the run refuses.
      takes_all = takes_all && broken->demanded;
    } else {
      plan.run_dims[runs.front()].least = 1;
      takes_all = false;
    }
  };
  for (const std::vector<size_t>& runs : zero_groups(plan.run_dims.size())) take_runs(runs);
  for (size_t d = 0; d < symbolic.symbols.size(); ++d) {
    if (table.hints().count(symbolic.symbols[d]) == 0) continue;
    std::vector<int64_t> dims = dims_with_zero(table, symbols, base, d, true);
    const ir::Guard* broken = broken_at(dims);
    if (broken != nullptr && ir::branch_of(*broken) != ir::kOutside) {
      dims = dims_with_zero(table, symbols, base, d, false);
      broken = broken_at(dims);
    }
    // What follows from others is compared with what they make it.
    if (table.facts_with_zeros().solved(te::Dim::symbol(symbolic.symbols[d])).as_symbol() == nullptr) {
      plan.minimums[d] = 0;
      continue;
    }
    if (dims[d] != 0) continue;
    if (broken != nullptr) {
      takes_all = takes_all && broken->demanded && !table.is_run_time(*broken);
      continue;
    }
    const int64_t before = std::exchange(plan.minimums[d], 0);
    if (has_shapes_of(symbolic, symbols, plan, dims)) {
      taken.push_back(std::move(dims));
    } else {
      plan.minimums[d] = before;
      takes_all = false;
    }
  }
  return taken;
}

PlanSymbols plan_symbols(const ir::SymbolicModel& model, const ir::Graph& optimized,
                         const std::vector<std::string>& free_dims) {
  PlanSymbols result{{}, model.symbols, free_dims, {free_dims.size(), {}}};
  for (const auto& [symbol, hint] : model.graph.symbols()->hints()) {
    std::string around = symbol;
    while (ir::branch_of(std::string_view(around)) != ir::kOutside) around = ir::around_branch(around);
    if (around == symbol) continue;
    const auto found = std::find(model.symbols.begin(), model.symbols.end(), around);
    if (found == model.symbols.end())
      throw Error(ErrorCode::kNotSupported, "symbol " + symbol + " of a branch stands for no free dim");
    result.symbols.push_back(symbol);
    result.names.push_back(symbol);
    result.dims.around.push_back(static_cast<size_t>(found - model.symbols.begin()));
  }
  result.all = result.symbols;
  const std::vector<std::string> of_run = ir::run_symbols(optimized);
  result.all.insert(result.all.end(), of_run.begin(), of_run.end());
  return result;
}

plan::LoopFacts loop_facts(const target::CpuFacts& facts) {
  return {facts.lanes(32), facts.l2_bytes, facts.num_cores};
}

plan::GenericModel plan_with(const ir::Graph& graph, const PlanSymbols& symbols,
                             const std::vector<int64_t>& dims, const std::vector<std::string>& outputs,
                             const plan::LoopFacts& facts) {
  plan::GenericModel model =
      plan::plan_symbolic(graph, {symbols.symbols, symbols.names, dims}, outputs, facts);
  // What a branch demands of them is a guard of the branch.
  for (size_t i = symbols.dims.free_dims; i < symbols.symbols.size(); ++i) {
    model.plan.minimums[i] = 0;
    model.plan.multiples[i] = 1;
  }
  return model;
}

}  // namespace tensormill::driver
