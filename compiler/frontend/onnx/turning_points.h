/// Extents at which a model with free dims turns into another graph, though none of its samples shows it:
/// where numbers that follow from extents pass what an operator compares them with or bounds them by.
/// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/frontend/onnx/converter.h"
#include "compiler/frontend/onnx/shape_samples.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// Adds by how much the first operand of a comparison, Min, Max or Clip is above the others, where all are
/// few numbers that are known.
void add_differences(const NodeContext& context, std::vector<double>& differences);

/// What add_differences gives of all nodes that are converted at the dims; none where the model does not take
/// them.
using DifferencesAt = std::function<std::vector<double>(const std::vector<int64_t>& dims)>;

/// Checks of the set around the extents, above its first sample, at which differences change their signs: the
/// first few along each of its first `own_dims` dims. A difference is taken to be nearly linear between two
/// of them.
void add_turning_checks(const ImportAt& import, const DifferencesAt& differences, size_t own_dims,
                        ir::SampleSet& set);

}  // namespace tensormill::frontend::onnx
