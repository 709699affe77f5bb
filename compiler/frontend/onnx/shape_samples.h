/// Chooses for which extents of its free dims a model is imported, so that how everything in it depends on
/// them can be told from the samples alone. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/dependent_dims.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// The model for values of its free dims; nothing when it does not take them.
using ImportAt = std::function<std::optional<ir::Graph>(const std::vector<int64_t>&)>;

/// Fills `samples`. `anchor`: an extent of each dim
/// around which samples lie, 0 where any will do. `asked`: shapes that get kernels of their own.
///
/// Along each dim the samples hold near neighbours, points kFarStep multiples away, from which the mean
/// growth of an extent follows exactly for every divisor of kFarStep, and, for each extent or attribute in
/// the graph that grows differently from the others, two neighbours between which it changes, found by
/// bisection: with the growth they tell the phase of a quotient, and with the last such change, of what grows
/// more slowly than the dim, its period. Extents that a model does not take are left
/// out; so is a dim for which no multiple is found, and then there are no samples at all.
///
/// `meant_at`: the stops where nodes take no range of extents, for dims that follow from others in what such
/// a node is most often given.
///
/// `needs_alike`: samples that have not the same number of nodes are of no use; where neighbours of the base
/// differ so there are no others.
void sample_shapes(const ImportAt& import, const StopAt& stop_at, const std::vector<int64_t>& anchor,
                   const std::vector<std::vector<int64_t>>& asked, ir::SampleSet& samples,
                   const StopAt& meant_at = {}, bool needs_alike = false);

}  // namespace tensormill::frontend::onnx
