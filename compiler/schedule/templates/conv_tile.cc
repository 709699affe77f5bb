#include "compiler/schedule/templates/conv_tile.h"

#include <algorithm>
#include <limits>

namespace tensormill::schedule {

namespace {

// Two loads a cycle are possible; lines that are split and the prefetches of the weights take their part.
constexpr double kLoadsPerCycle = 1.6;
constexpr double kFmaLatency = 4;
// Where a core starts one multiply-add a cycle, so many sums hide its latency, and the end of so small a tile
// passes while the next one's products run; tiles of all registers took up to 15 % longer.
constexpr int64_t kSumsOfOne = 7;
// Multiply-adds that are written out there before the loop's own instructions.
constexpr int64_t kBodyOfOne = 28;
constexpr double kTileCycles = 24;
// What a weight vector costs where it comes from further away than the first cache, beyond its load.
constexpr double kWeightCycles = 0.25;

bool starts_one(const target::CpuFacts& facts) { return facts.products_per_cycle == 1; }

// Cycles of one tile, or infinity when its accumulators leave no room for an operand.
double tile_cycles(int64_t columns, int64_t blocks, const ConvExtents& extents,
                   const target::CpuFacts& facts) {
  const int64_t sums = columns * blocks * extents.vectors_per_block;
  const int64_t weights = blocks * extents.vectors_per_block;
  const int64_t free = facts.vector_registers - sums - 1;
  if (free < 1) return std::numeric_limits<double>::infinity();
  // Weights without a register are loaded again for each column.
  const int64_t loads = columns + weights + (columns - 1) * std::max<int64_t>(weights - free, 0);
  const double step = std::max({static_cast<double>(sums) / facts.products_per_cycle,
                                static_cast<double>(loads) / kLoadsPerCycle, kFmaLatency});
  const double far = kWeightCycles * static_cast<double>(weights);
  return static_cast<double>(extents.steps) * (step + far) + static_cast<double>(sums) + kTileCycles;
}

double total_cycles(const ConvTile& tile, const ConvExtents& extents, const target::CpuFacts& facts) {
  double total = 0;
  for (const int64_t columns : {tile.columns, extents.columns % tile.columns}) {
    for (const int64_t blocks : {tile.blocks, extents.blocks % tile.blocks}) {
      const int64_t wide = columns == tile.columns ? extents.columns / tile.columns : 1;
      const int64_t high = blocks == tile.blocks ? extents.blocks / tile.blocks : 1;
      if (columns == 0 || blocks == 0) continue;
      total += static_cast<double>(wide * high) * tile_cycles(columns, blocks, extents, facts);
    }
  }
  return total;
}

}  // namespace

ConvTile choose_conv_tile(const ConvExtents& extents, const target::CpuFacts& facts) {
  ConvTile best;
  double least = std::numeric_limits<double>::infinity();
  const int64_t most = starts_one(facts) ? kSumsOfOne : facts.vector_registers;
  for (int64_t blocks = 1; blocks <= std::min(extents.blocks, extents.most_blocks); ++blocks) {
    const int64_t fitting = std::max<int64_t>(most / (blocks * extents.vectors_per_block), 1);
    for (int64_t columns = std::min(extents.columns, fitting); columns >= 1; --columns) {
      const double cycles = total_cycles({columns, blocks}, extents, facts);
      if (cycles >= least) continue;
      least = cycles;
      best = {columns, blocks};
    }
  }
  return best;
}

int64_t steps_together(const ConvTile& tile, int64_t extent, const target::CpuFacts& facts) {
  if (!starts_one(facts)) return 1;
  int64_t steps = 1;
  while (2 * steps * tile.columns * tile.blocks <= kBodyOfOne && extent % (2 * steps) == 0) steps *= 2;
  return steps;
}

}  // namespace tensormill::schedule
