/// Maps read at places between their elements. Thread-safety: as the builder.
#pragma once

#include <optional>

#include "compiler/build/compose.h"

namespace tensormill::build {

/// A sampler of x [N,C,H,W] at places [N,Ho,Wo] of x's type. Elements that are not there are `outside`;
/// without one they are those of the edge.
class Grid {
public:
  using V = ir::ValueId;
  Grid(OpBuilder& builder, V x, std::optional<double> outside);
  V clamped(V at, const ir::SymInt& extent);
  /// Folded back at both ends of an axis: between the first and the last element, or, where `at_edges` is
  /// set, half an element further out.
  V reflected(V at, const ir::SymInt& extent, bool at_edges);
  /// Whether places lie on an axis.
  V inside(V at, const ir::SymInt& extent);
  /// The elements at whole places [N,C,Ho,Wo].
  V taken(V y, V x);
  /// Between the four elements around each place.
  V between(V y, V x);

private:
  Compose c_;
  V x_, flat_ = ir::kAbsent;
  std::optional<double> outside_;
  ir::SymInt rows_, columns_;
};

}  // namespace tensormill::build
