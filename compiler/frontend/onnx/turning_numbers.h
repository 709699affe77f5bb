/// Numbers at which a model with free dims may turn into another graph, though none of its samples shows it.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <set>

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/shape_samples.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// The least few of the constants of up to four elements, subgraphs' and functions' included, that operators
/// compare with something or bound it by: those above the extents that are looked at in any case. Throws
/// Error(kInvalidModel).
std::set<int64_t> compared_numbers(const ModelSource& source);

/// Checks of the set at extents around the numbers, one of its first `own_dims` dims at a time.
void add_turning_checks(const ImportAt& import, const std::set<int64_t>& numbers, size_t own_dims,
                        ir::SampleSet& set);

}  // namespace tensormill::frontend::onnx
