/// Test points for the tails of tiled loops in a generic plan: extents one below, at and one above a tile,
/// where other code runs. Thread-safety: the objects of one symbol table belong to one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/generic_plan.h"

namespace tensormill::driver {

/// Values of all symbols -> indices into `tails` of the kernels whose tail begins or ends there.
using TailPoints = std::map<std::vector<int64_t>, std::set<size_t>>;

/// For each kernel that the plan's steps call, each of its tails (`tails`, by kernel) and each symbol that
/// the extent grows with: the points at which the extent is tile - 1, tile and tile + 1, with the other
/// symbols as in `base`. Points that the guards of `table` exclude are left out. `symbols`: in the order of
/// the plan's dims.
TailPoints tail_points(const plan::GenericModel& model, const std::vector<std::vector<plan::Tail>>& tails,
                       const std::vector<std::string>& symbols, const ir::SymbolTable& table,
                       const std::vector<int64_t>& base);

}  // namespace tensormill::driver
