/// Maps read at places between their elements. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/pytorch/node_context.h"

namespace tensormill::frontend::pytorch {

/// A sampler of x [N,C,H,W] at places [N,Ho,Wo] of x's type; what is outside is 0 with `padding` 0.
class Grid {
public:
  Grid(NodeContext& node, V x, int64_t padding);
  V clamped(V at, const ir::SymInt& extent);
  /// The elements at whole places [N,C,Ho,Wo].
  V taken(V y, V x);
  /// Between the four elements around each place.
  V between(V y, V x);

private:
  V inside(V at, const ir::SymInt& extent);

  NodeContext& node_;
  Compose c_;
  V x_, flat_ = ir::kAbsent;
  int64_t padding_;
  ir::SymInt rows_, columns_;
};

}  // namespace tensormill::frontend::pytorch
