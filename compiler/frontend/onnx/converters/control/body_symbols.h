/// Symbols that the iterations of a loop bind, each anew: they mean nothing outside of its body.
/// Thread-safety: as the context.
#pragma once

#include <cstddef>
#include <optional>

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

class BodySymbols {
public:
  /// Those that are added from here on. The context outlives it.
  explicit BodySymbols(NodeContext& node);

  /// Whether an extent is made of them.
  bool are_in(const ir::SymShape& shape) const;
  /// x, whose extents that are made of them are those of `other`, but for `but_axis`: where an iteration has
  /// another extent there, the run is none of the graph's. x itself where there is none, or ranks differ.
  /// Throws UnsupportedForm where no extents are known at which they are equal.
  ir::ValueId with_extents_of(ir::ValueId x, ir::ValueId other,
                              std::optional<size_t> but_axis = std::nullopt) const;
  /// Takes back what was demanded from here on: what it is of was built and is dropped.
  void drop_guards() const;

private:
  bool is_in(const ir::SymInt& extent) const;

  NodeContext& node_;
  size_t symbols_ = 0, guards_ = 0;  ///< that there were before
};

}  // namespace tensormill::frontend::onnx
