/// Where the heads of an attention come from: columns of a matrix for each of a batch, through whatever moves
/// them. Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "compiler/ir/graph.h"

namespace tensormill::passes {

/// What runs along an axis of the heads of Q, K or V.
enum class HeadAxis : uint8_t { kBatch, kHead, kRow, kColumn, kNone };
using HeadAxes = std::array<HeadAxis, 4>;

/// Columns [offset, offset + heads*width) of a [N,S,..] tensor, head by head, times `scale`.
struct HeadSource {
  ir::ValueId value = ir::kAbsent;
  int64_t offset = 0, heads = 0, width = 0;
  double scale = 1;
};

/// Of `value`, of rank 4, whose axes are those of `order`: the matrix that it is cut out of by reshapes,
/// transposes, splits, slices, places of an axis and products by numbers. Nothing where it is no such part.
std::optional<HeadSource> head_source(const ir::Graph& graph, ir::ValueId value, const HeadAxes& order);

/// x, where a value is x times a number, or divided by one that has a reciprocal in float32.
struct Times {
  ir::ValueId x = ir::kAbsent;
  double by = 1;
};
std::optional<Times> match_times(const ir::Graph& graph, ir::ValueId value);

/// What a cast makes wider, or `value` where none does.
ir::ValueId narrow_of(const ir::Graph& graph, ir::ValueId value);

}  // namespace tensormill::passes
