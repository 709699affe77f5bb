/// Random graphs made of what graph passes look for: moves that cancel or change nothing, constants that
/// fold, equal and nearly equal nodes, widening casts, normalization behind convolutions, values that are
/// read twice or never. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "tests/ops/cases/random_graph.h"

namespace tensormill::ops_cases {

/// About `steps` nodes over f32 tensors; values stay within [-8,8] where magnitudes could grow, so that whole
/// graphs can be compared. Always the same for the same arguments.
RandomGraph make_chain_graph(uint64_t seed, int steps = 24);

}  // namespace tensormill::ops_cases
