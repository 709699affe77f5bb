/// At which extents the kernels of a generic plan end just before, at and behind a whole tile, where loops do
/// something else. Thread-safety: those of one symbol table belong to one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/generic_plan.h"

namespace tensormill::driver {

/// Extents of all symbols, and whose tails end there: places among the kernels of `tails`.
using TailPoints = std::map<std::vector<int64_t>, std::set<size_t>>;

/// Of each kernel that the plan's steps call: for each of its tails (`tails`, by kernel) and each symbol that
/// the extent grows with, where it is one less than the tile, the tile, and one more, the other symbols as in
/// `base`; those that the guards of `table` allow. `symbols`: all of them, in the order of the plan's dims.
TailPoints tail_points(const plan::GenericModel& model, const std::vector<std::vector<plan::Tail>>& tails,
                       const std::vector<std::string>& symbols, const ir::SymbolTable& table,
                       const std::vector<int64_t>& base);

}  // namespace tensormill::driver
