/// Register tiles: what the CPU starts in a cycle decides their size.
#include "compiler/schedule/templates/conv_tile.h"

#include <gtest/gtest.h>

#include "compiler/schedule/templates/conv_nest.h"

namespace tensormill::schedule {
namespace {

target::CpuFacts facts_of(const std::string& cpu) {
  return target::parse_target("llvm -mcpu=" + cpu, {}).facts;
}

/// A pointwise layer of 64 channels to 24 blocks of them.
ConvExtents pointwise(int64_t columns) { return {columns, 24, 64, 1, 4, 1}; }

TEST(ConvTile, TwoProductsACycleTakeAllRegisters) {
  for (const char* cpu : {"sapphirerapids", "skylake-avx512", "znver5"}) {
    for (const int64_t columns : {196, 784, 3136}) {
      const ConvTile tile = choose_conv_tile(pointwise(columns), facts_of(cpu));
      EXPECT_EQ(tile.columns, 14) << cpu;
      EXPECT_EQ(tile.blocks, 2) << cpu;
      EXPECT_EQ(steps_together(tile, 16, facts_of(cpu)), 1) << cpu;
    }
  }
}

TEST(ConvTile, OneProductACycleTakesTheSumsThatHideItsLatency) {
  const target::CpuFacts facts = facts_of("znver4");
  for (const int64_t columns : {49, 196, 784, 3136, 169}) {
    const ConvTile tile = choose_conv_tile(pointwise(columns), facts);
    EXPECT_EQ(tile.columns, 7);
    EXPECT_EQ(tile.blocks, 1);
    EXPECT_EQ(steps_together(tile, 16, facts), 4);
    EXPECT_EQ(steps_together(tile, 24, facts), 4);
    EXPECT_EQ(steps_together(tile, 3, facts), 1);
  }
}

TEST(ConvTile, WindowsSlideOverHalfTheColumnsOfOneProduct) {
  EXPECT_EQ(depthwise_columns(112, 1, facts_of("sapphirerapids")), 16);
  EXPECT_EQ(depthwise_columns(14, 1, facts_of("sapphirerapids")), 14);
  EXPECT_EQ(depthwise_columns(14, 1, facts_of("haswell")), 7);
  EXPECT_EQ(depthwise_columns(112, 1, facts_of("znver4")), 8);
  EXPECT_EQ(depthwise_columns(14, 1, facts_of("znver4")), 7);
}

TEST(RegisterTile, OneRowTakesTheVectorsThatHideTheLatency) {
  EXPECT_EQ(choose_tile(1, 63, false, facts_of("sapphirerapids")).vectors, 7);
  EXPECT_LE(choose_tile(1, 63, false, facts_of("znver4")).vectors, 4);
  for (const char* cpu : {"sapphirerapids", "znver4"}) {
    EXPECT_EQ(choose_tile(128, 24, false, facts_of(cpu)).vectors, 3) << cpu;
    EXPECT_EQ(choose_tile(128, 24, false, facts_of(cpu)).rows, 8) << cpu;
  }
}

TEST(ConvTile, FewColumnsTakeMoreBlocks) {
  const ConvTile tile = choose_conv_tile(pointwise(1), facts_of("znver4"));
  EXPECT_EQ(tile.columns, 1);
  EXPECT_EQ(tile.blocks, 4);
}

}  // namespace
}  // namespace tensormill::schedule
