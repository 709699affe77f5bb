/// Finds where the samples of a model's free dims begin. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/dependent_dims.h"
#include "compiler/frontend/onnx/shape_samples.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

struct SampleBase {
  std::vector<int64_t> dims;   ///< a shape that the model takes
  std::vector<int64_t> steps;  ///< by how much each dim may grow from there, a few times at least
  std::vector<ir::DependentDim> dependents;
};

/// The arguments are those of sample_shapes. Nothing where the model takes no shape that was tried.
std::optional<SampleBase> find_sample_base(const ImportAt& import, const StopAt& stop_at,
                                           const StopAt& meant_at, const std::vector<int64_t>& anchor,
                                           const std::vector<std::vector<int64_t>>& asked);

/// A shape that the model takes, of small extents or of one small among larger ones, where no extents near it
/// make a base of samples; nothing where none is found.
std::optional<std::vector<int64_t>> find_single_shape(const ImportAt& import,
                                                      const std::vector<int64_t>& anchor);

/// Whether the model takes an extent of one of the first `own_dims` dims that is no such multiple as the
/// set's samples are of: what was refused among those that were tried is no rule then.
bool takes_between_multiples(const ImportAt& import, const ir::SampleSet& set, size_t own_dims);

}  // namespace tensormill::frontend::onnx
