/// Windows that move over a map: of convolutions and pools. Thread-safety: pure functions; builders as they
/// say.
#pragma once

#include <optional>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Larger numbers are no geometry; below it products of two stay inside int64.
inline constexpr int64_t kMaxWindowNumber = int64_t{1} << 30;

struct Windows {
  ir::SymShape kernel;
  ir::Ints strides, dilations;
  ir::Ints pads;  ///< begins, then ends
  /// Pads that follow from symbolic extents, in place of `pads`, which are 0; empty: none does
  ir::SymShape symbolic_pads = {};
  bool same = false;   ///< pads follow from the extents
  bool upper = false;  ///< then: the odd pad goes to the end
  /// Where a pooling window is larger than the padded input: how many windows there are along each axis
  std::optional<ir::SymShape> pooled = std::nullopt;
};

/// Sets the pads with which there are ceil(in / stride) windows over a map [N,C,spatial...], whatever its
/// extents are; the odd one goes to the end where `upper` is set, else to the begin.
void pad_same(Windows& windows, const ir::SymShape& map, bool upper);
/// x [N,C,spatial...] with the windows' pads, which become 0, where these are no numbers.
ir::ValueId padded_for(OpBuilder& builder, ir::ValueId x, Windows& windows, double value);

}  // namespace tensormill::build
