/// What the passes would make simpler in some samples' graphs alone, by chance of their extents: moves that
/// change nothing there (a pad up to a multiple, a cut at a length that is the extent), nodes that are equal
/// there, products of integers whose sums are short there. The optimized graphs of the samples have to stay
/// of one form. Thread-safety: pure functions.
#pragma once

#include <set>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::plan {

/// The nodes of graphs of one structure that are to get the attribute ir::kKept.
std::set<ir::NodeId> chances_of(const std::vector<ir::Graph>& samples);

}  // namespace tensormill::plan
