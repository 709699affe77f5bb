/// Symbols that the iterations of a loop bind, each anew: they mean nothing outside of its body.
/// Thread-safety: as the context.
#pragma once

#include <cstddef>

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

class BodySymbols {
public:
  /// Those that are added from here on. The context outlives it.
  explicit BodySymbols(NodeContext& node);

  /// Whether an extent is made of them.
  bool are_in(const ir::SymShape& shape) const;
  /// x, whose extents that are made of them are those of `other`, which they are equal to; x itself where
  /// there is none, or one that is not proven to be equal.
  ir::ValueId with_equal_extents_of(ir::ValueId x, ir::ValueId other) const;
  /// The same of what is put behind `other` along `axis`, which takes nothing that has other extents along
  /// other axes: each iteration checks them. Throws UnsupportedForm where no extents are known at which they
  /// are equal.
  ir::ValueId with_extents_beside(ir::ValueId x, ir::ValueId other, size_t axis) const;
  /// Takes back what was demanded from here on: what it is of was built and is dropped.
  void drop_guards() const;

private:
  bool is_in(const ir::SymInt& extent) const;
  template <typename IsEqual>
  ir::ValueId with_extents(ir::ValueId x, ir::ValueId other, const IsEqual& is_equal) const;

  NodeContext& node_;
  size_t symbols_ = 0, guards_ = 0;  ///< that there were before
};

}  // namespace tensormill::frontend::onnx
