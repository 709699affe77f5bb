/// Finds the free dims that a model makes of others: it takes no shape in which they have other values.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// How far apart extents are looked at: strides, hops and patches that divide it are found, 2^7·3·5.
inline constexpr int64_t kFarStep = 1920;

/// Imports the model for values of its free dims and says where that ended; its node is -1 where the model
/// takes them.
using StopAt = std::function<ImportStop(const std::vector<int64_t>&)>;

/// At a shape of which each dim has a value of its own, an import ends at a node of which numbers are to be
/// equal and are not: dims that are to be other ones, several at once (tied_dims.h), or an equation, from
/// which one dim follows. It is right if the import then gets farther; so on, until the model takes the
/// shape. What a dim is of each other is read off where the equation is solved at other values of that one: a
/// line, or a quotient, by the places where it changes; of several, a sum or a product. A dim may also be a
/// number: one of a weight's extents, an attribute, or what alone solves an equation. `anchor`: an extent of
/// each dim that is asked for, 0 where any will do. `taken`: shapes that are asked for and that the model
/// takes; a dim follows from others only as it does there. Empty where that finds nothing; the imports
/// without a sign of what to look for are bounded in all.
std::vector<ir::DependentDim> find_dependents(const StopAt& stop_at, const std::vector<int64_t>& anchor,
                                              const std::vector<std::vector<int64_t>>& taken);

}  // namespace tensormill::frontend::onnx
