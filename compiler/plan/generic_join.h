/// Neighbouring axes of a nest as one: vectors then run across the ends of rows, and narrow rows fill them.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/plan/generic_nest.h"

namespace tensormill::plan {

/// `nest` with fewer axes: where everything that is read along two of them has them as neighbours too, in the
/// same order and of the same extents, or not at all. Axes that threads share stay on their own.
Nest with_joined_axes(const Nest& nest, TermVars& vars);

}  // namespace tensormill::plan
