/// Constants that depend on the free dims: positions, masks, fills, tables cut to a length. In the samples'
/// graphs they are taken from the passes, which would fold all that follows from them into other constants:
/// they become inputs, and the generic plan computes them. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

/// A constant that became an input.
struct HiddenConstant {
  std::vector<Tensor> values;  ///< by sample
  std::vector<te::Tensor>
      expressions;  ///< by sample, of one form; none for a constant that all samples share
};

struct SampleGraphs {
  std::vector<ir::Graph> graphs;       ///< live nodes only
  std::vector<HiddenConstant> hidden;  ///< in the order of the graphs' inputs behind the model's own
};

/// Graphs that differ in more than extents are returned as they are. Throws Error(kNotSupported) for a
/// constant that depends on the free dims and whose elements are no simple function of their position.
SampleGraphs hide_shape_constants(const std::vector<const ir::Graph*>& samples);

}  // namespace tensormill::plan
