#include "compiler/schedule/templates/conv_tile.h"

#include <algorithm>
#include <limits>

namespace tensormill::schedule {

namespace {

constexpr double kFmaPerCycle = 2;
// Two loads a cycle are possible; lines that are split and the prefetches of the weights take their part.
constexpr double kLoadsPerCycle = 1.6;
constexpr double kFmaLatency = 4;
constexpr double kTileCycles = 24;
// What a weight vector costs where it comes from further away than the first cache, beyond its load.
constexpr double kWeightCycles = 0.25;

// Cycles of one tile, or infinity when its accumulators leave no room for an operand.
double tile_cycles(int64_t columns, int64_t blocks, const ConvExtents& extents, int registers) {
  const int64_t sums = columns * blocks * extents.vectors_per_block;
  const int64_t weights = blocks * extents.vectors_per_block;
  const int64_t free = registers - sums - 1;
  if (free < 1) return std::numeric_limits<double>::infinity();
  // Weights without a register are loaded again for each column.
  const int64_t loads = columns + weights + (columns - 1) * std::max<int64_t>(weights - free, 0);
  const double step = std::max(
      {static_cast<double>(sums) / kFmaPerCycle, static_cast<double>(loads) / kLoadsPerCycle, kFmaLatency});
  const double far = kWeightCycles * static_cast<double>(weights);
  return static_cast<double>(extents.steps) * (step + far) + static_cast<double>(sums) + kTileCycles;
}

double total_cycles(const ConvTile& tile, const ConvExtents& extents, int registers) {
  double total = 0;
  for (const int64_t columns : {tile.columns, extents.columns % tile.columns}) {
    for (const int64_t blocks : {tile.blocks, extents.blocks % tile.blocks}) {
      const int64_t wide = columns == tile.columns ? extents.columns / tile.columns : 1;
      const int64_t high = blocks == tile.blocks ? extents.blocks / tile.blocks : 1;
      if (columns == 0 || blocks == 0) continue;
      total += static_cast<double>(wide * high) * tile_cycles(columns, blocks, extents, registers);
    }
  }
  return total;
}

}  // namespace

ConvTile choose_conv_tile(const ConvExtents& extents, const target::CpuFacts& facts) {
  ConvTile best;
  double least = std::numeric_limits<double>::infinity();
  const int64_t most = facts.vector_registers;
  for (int64_t blocks = 1; blocks <= std::min(extents.blocks, extents.most_blocks); ++blocks) {
    for (int64_t columns = std::min(extents.columns, most); columns >= 1; --columns) {
      const double cycles = total_cycles({columns, blocks}, extents, facts.vector_registers);
      if (cycles >= least) continue;
      least = cycles;
      best = {columns, blocks};
    }
  }
  return best;
}

}  // namespace tensormill::schedule
