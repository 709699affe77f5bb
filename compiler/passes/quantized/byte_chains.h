/// Chains of elementwise operators from one 8-bit value and constants, tabulated: the result for each of the
/// 256 inputs, per channel where constants differ along one axis. Thread-safety: belongs to one thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"

namespace tensormill::passes {

inline constexpr int64_t kBytes = 256;
/// A chain ends at an 8-bit value behind more operators than these, and the next begins there; a value of
/// another type behind twice as many is not tabulated: so the work for each is bounded.
inline constexpr int64_t kMostChained = 64;

bool is_byte(DType dtype);

/// A value as a function of one byte, or a constant.
struct ByteFunction {
  ir::ValueId root = ir::kAbsent;  ///< the byte; absent: a constant
  int64_t steps = 0;               ///< operators on the longest path from the byte
  int64_t channels = 1;            ///< extent of the axis along which constants differ; 1: there is none
  size_t axis = 0;                 ///< that axis, counted from the last one, which is 0
  /// The operators' reference results, [256,channels], indexed by the bits of the byte; of a constant [] or
  /// [1,channels]. Released (empty) once all readers of the value were visited.
  Tensor values;
  /// What was rounded last on the way, as `values` (its channels may be 1); nothing where nothing was.
  std::optional<Tensor> unrounded = {};
};

class ByteChains {
public:
  /// Constants that differ along an axis of more than `most_channels` are not looked into; 1: none is.
  ByteChains(const ir::Graph& graph, int64_t most_channels);

  /// The function that the node's output is, or null. To be called for all nodes in topological order.
  const ByteFunction* visit(const ir::Node& node);
  /// Starts a new chain: readers of the byte `value` are functions of it from now on, not of its own root.
  void begin_at(ir::ValueId value) { functions_[static_cast<size_t>(value)].reset(); }
  /// All nodes between `value` and the byte that it is a function of.
  std::set<ir::NodeId> nodes_between(ir::ValueId value, ir::ValueId root) const;
  std::vector<std::string> origins_of(const std::set<ir::NodeId>& nodes) const;

private:
  const ByteFunction* operand(ir::ValueId id);
  std::optional<ByteFunction> constant_function(const Tensor& constant) const;
  std::optional<ByteFunction> function_of(const ir::Node& node);
  bool lies_along(const ByteFunction& function, ir::ValueId output) const;
  void release(const ir::Node& node);

  const ir::Graph& graph_;
  int64_t most_channels_;
  int64_t elements_left_;                               ///< to be computed in this graph
  std::vector<int> reads_left_;                         ///< by value
  std::vector<std::optional<ByteFunction>> functions_;  ///< by value, as far as looked at
};

}  // namespace tensormill::passes
