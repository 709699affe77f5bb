/// Nodes of a sample's graph that passes leave as they are.
#pragma once

namespace tensormill::ir {

/// Attribute (int, another one for each node) of a node that could be made simpler in some samples' graphs
/// alone, by chance of their extents: it is neither left out nor taken for its equal, so that the optimized
/// graphs of all samples are of one form.
inline constexpr const char* kKept = "kept";

}  // namespace tensormill::ir
