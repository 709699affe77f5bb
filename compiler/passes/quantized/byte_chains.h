/// Values that are elementwise of one byte and of constants: what they are for each of its 256 values, and
/// for each channel where constants differ along one axis. Thread-safety: belongs to one thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"

namespace tensormill::passes {

inline constexpr int64_t kBytes = 256;
/// Where bytes behind more steps are, the next chain may begin; other values behind twice as many are left
/// alone: so the work for each is bounded.
inline constexpr int64_t kMostChained = 64;

bool is_byte(DType dtype);

/// A value as a function of one byte, or a constant.
struct ByteFunction {
  ir::ValueId root = ir::kAbsent;  ///< the byte; absent: a constant
  int64_t steps = 0;               ///< operators between them, the longest way
  int64_t channels = 1;            ///< along the axis on which constants differ; 1: on none
  size_t axis = 0;                 ///< that axis, counted from the last one, which is 0
  /// By the operators' references, by the bits of the byte [256,channels]; a constant's own [] or
  /// [1,channels]. Empty once all readers of the value were visited.
  Tensor values;
  /// What was rounded last on the way, as `values` (its channels may be 1); nothing where nothing was.
  std::optional<Tensor> unrounded = {};
};

class ByteChains {
public:
  /// Constants that differ along an axis of more than `most_channels` are not looked into; 1: none is.
  ByteChains(const ir::Graph& graph, int64_t most_channels);

  /// What the node's output is; null where it is none of these. To be called for all nodes in their order.
  const ByteFunction* visit(const ir::Node& node);
  /// What is computed of the byte `value` is a function of it from now on, not of what it was made of.
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
