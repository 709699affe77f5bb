/// Optimization of models with free dims for a generic plan, and which extents its guards leave out.
/// Thread-safety: the objects of one symbol table belong to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/ir/variants.h"
#include "compiler/plan/generic_plan.h"
#include "compiler/plan/loop_facts.h"
#include "compiler/plan/step_branches.h"
#include "runtime/package/plan_set.h"

namespace tensormill::driver {

/// The passes of generic plans.
/// `layout_log`: receives what the desired layout was applied to; null: nothing does. `for_plan_alone`: as
/// PassContext's.
ir::Graph optimize_generic(const ir::Graph& graph, const CompileOptions& options,
                           passes::LayoutLog* layout_log = nullptr, bool for_plan_alone = false);

/// Throws Error(kNotSupported) where the kernel is not shown to stay in its buffers.
void check_bounds(const plan::GenericKernel& kernel);

/// Adds, as text for people, what must hold for the plan to serve a shape that the model itself may take:
/// "N != 1".
void add_conditions(const ir::SymbolTable& table, std::vector<std::string>& conditions);

/// Whether the guards leave out only extents that the model does not take, and extents of 1 that broadcast.
bool is_open(const ir::SymbolTable& table);

/// Values of the symbols for which all guards hold: the first `most` at which all symbols are equal to one of
/// `candidates`, then the hints.
std::vector<std::vector<int64_t>> points_of(const std::vector<std::string>& symbols,
                                            const ir::SymbolTable& table,
                                            const std::vector<int64_t>& candidates, size_t most);

/// The values nearest to `dims` at which symbols that equations determine have what follows from the others;
/// nothing where a guard does not hold then, or a value is less than 1.
std::optional<std::vector<int64_t>> taken_point(const std::vector<std::string>& symbols,
                                                const ir::SymbolTable& table,
                                                const std::vector<int64_t>& dims);

/// The graph with these values of the symbols, in their order.
ir::Graph graph_at(const ir::Graph& graph, const std::vector<std::string>& symbols,
                   const std::vector<int64_t>& dims);

/// The model at the hints of its symbols.
ir::ShapedGraph at_hints(const ir::SymbolicModel& model);

/// The first of points_of. Throws Error(kNotSupported) where there is none.
std::vector<int64_t> base_point(const std::vector<std::string>& symbols, const ir::SymbolTable& table,
                                const std::vector<int64_t>& candidates);

/// The model's free dims, the symbols that its branches have of their own, and those that a run binds.
struct PlanSymbols {
  std::vector<std::string> all;
  std::vector<std::string> symbols, names;  ///< without those of a run: of the graph, and of the plan
  plan::BranchDims dims;
};
/// `free_dims`: the names of the free dims.
PlanSymbols plan_symbols(const ir::SymbolicModel& model, const ir::Graph& optimized,
                         const std::vector<std::string>& free_dims);
/// The generic plan of an optimized graph over those symbols; extents inside branches may be 0.
plan::GenericModel plan_with(const ir::Graph& graph, const PlanSymbols& symbols,
                             const std::vector<int64_t>& dims, const std::vector<std::string>& outputs,
                             const plan::LoopFacts& facts);
/// The facts of the CPU that generic loops depend on.
plan::LoopFacts loop_facts(const target::CpuFacts& facts);

/// Lowers the minimum of a free dim to 0 where the plan gives the right output extents at 0 as well. Returns
/// points with such zeros, at which kernels are to be verified. `takes_all` becomes false where the model may
/// take 0 and the plan does not. Symbols that a run binds may be 0, too.
std::vector<std::vector<int64_t>> take_zeros(const ir::SymbolicModel& symbolic, const PlanSymbols& symbols,
                                             package::GenericPlan& plan, bool& takes_all);

}  // namespace tensormill::driver
