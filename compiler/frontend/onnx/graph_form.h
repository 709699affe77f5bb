/// What of a graph may differ between samples of free dims. Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

/// All that kernels may be made of: extents, and attributes that are integers. Empty where the model does not
/// take the dims.
struct GraphForm {
  std::vector<int64_t> values;
  size_t extents = 0;               ///< the first values are extents
  std::vector<size_t> starts = {};  ///< which values say where slices start
  int64_t constant_bytes = 0;
  bool is_like(const GraphForm& other) const {
    return values.size() == other.values.size() && extents == other.extents;
  }
};

GraphForm form_of(const ir::Graph& graph);
/// The elements of the largest value that is no constant.
int64_t largest_of(const ir::Graph& graph);

/// The largest number of elements that a node goes on by along an axis.
int64_t longest_hop_of(const ir::Graph& graph);

}  // namespace tensormill::frontend::onnx
