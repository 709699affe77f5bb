/// The generic plan of a graph whose extents are expressions over symbols: the formulas of its buffers and
/// kernels are the graph's own. Thread-safety: those of one symbol table belong to one thread.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/generic_plan.h"
#include "compiler/plan/loop_facts.h"

namespace tensormill::plan {

/// Which of the graph's symbols stands for which free dim of the package.
struct FreeSymbols {
  std::vector<std::string> symbols, free_dims;  ///< by free dim
  /// At which the plan is written down, and behind them the symbols that a run binds; all guards hold there.
  std::vector<int64_t> dims;
};

/// The steps of an optimized graph, whose nodes stand in segments (ir::in_segments), and its table's guards.
/// Throws Error(kNotSupported) naming the node and what cannot be computed for all extents.
GenericModel plan_symbolic(const ir::Graph& graph, const FreeSymbols& free,
                           const std::vector<std::string>& output_names, const LoopFacts& facts);

/// What kernels of the nodes of an optimized graph take for granted goes into the guards of its table.
void find_kernel_guards(const ir::Graph& graph);

}  // namespace tensormill::plan
