/// The register tile of convolutions on blocks: which rectangle of output columns x channel blocks is summed
/// in registers. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/target/target.h"

namespace tensormill::schedule {

struct ConvTile {
  int64_t columns = 1;
  int64_t blocks = 1;
  int64_t rows = 1;  ///< of the image, a divisor of their number
};

/// What a nest is tiled from: extents in elements and blocks, `steps` of the reduction, vectors of the target
/// a block.
struct ConvExtents {
  int64_t columns = 1;
  int64_t blocks = 1;
  int64_t steps = 1;
  int64_t vectors_per_block = 1;
  int64_t most_blocks = 4;  ///< of a tile
  int64_t rows = 1;         ///< that tiles may be cut from
};

/// The tile with the fewest cycles over the whole output, by the ports that a step of the reduction needs:
/// its fused multiply-adds, loads (weights once a tile, inputs as broadcasts) and the latency of an
/// accumulator, plus what starting and storing a tile costs. Tiles that do not fit the registers are out, and
/// where a core starts one multiply-add a cycle, tiles of more sums than its latency needs.
ConvTile choose_conv_tile(const ConvExtents& extents, const target::CpuFacts& facts);

/// How many steps of a reduction over `extent` to write out in the tile's innermost loop: 1, or a power of
/// two that divides it.
int64_t steps_together(const ConvTile& tile, int64_t extent, const target::CpuFacts& facts);

}  // namespace tensormill::schedule
