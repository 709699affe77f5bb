/// How the loops of generic kernels are arranged: axes that are joined, blocks of registers, what threads
/// share.
#include <gtest/gtest.h>

#include "compiler/plan/generic_tiling.h"
#include "compiler/te/text.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

TEST(GenericJoin, AxesAreJoinedThatAreReadAsNeighbours) {
  const auto rank = [](MakeNest make) { return symbolic(make, 3).nest.tensor->axes.size(); };
  EXPECT_EQ(rank(&pointwise), 3U);
  EXPECT_EQ(rank(&scaled), 3U);
  EXPECT_EQ(rank(&with_row), 4U);
  EXPECT_EQ(symbolic(&pointwise, 3).nest.tensor->reduction->axes.size(), 1U);
  EXPECT_EQ(symbolic(&pooled, 3).nest.tensor->reduction->axes.size(), 1U);
  EXPECT_EQ(symbolic(&conv, 3).nest.tensor->reduction->axes.size(), 2U);
}

TEST(GenericParts, NoIndexIsClampedInsideAPad) {
  const std::string text = te::print(loops_of(symbolic(&padded, 5), 8).function);
  EXPECT_EQ(text.find("max("), std::string::npos);
  const std::string channels = te::print(loops_of(symbolic(&stacked, 3), 8).function);
  EXPECT_EQ(channels.find("max("), std::string::npos);
  EXPECT_EQ(channels.find("select("), std::string::npos);
}

TEST(GenericParts, LoadsAreMaskedWhereASelectLeavesThemOut) {
  const std::string text = te::print(loops_of(symbolic(&largest_of_windows, 5), 8).function);
  EXPECT_EQ(text.find("min("), std::string::npos);
}

TEST(GenericTiling, WholeVectorsAreStoredWithoutAMask) {
  const std::string text = te::print(loops_of(symbolic(&scaled, 3), 8).function);
  EXPECT_NE(text.find("else"), std::string::npos);
}

TEST(GenericTiling, BoundsAreAskedOnceForASum) {
  const std::string text = te::print(loops_of(symbolic(&conv, 3), 8).function);
  const size_t other = text.rfind("} else");
  ASSERT_NE(other, std::string::npos);
  EXPECT_EQ(text.substr(0, other).find("min("), std::string::npos);
  EXPECT_NE(text.find("min(", other), std::string::npos);
}

TEST(GenericTiling, RowsThatShareWhatTheyReadAreOneBlock) {
  const Tiling conv_tiling = choose_tiling(symbolic(&conv, 3).nest, {8});
  EXPECT_EQ(conv_tiling.block_axis, 1U);
  EXPECT_EQ(conv_tiling.block, 4);
  EXPECT_EQ(conv_tiling.vectors, 2);
  EXPECT_EQ(conv_tiling.blocks, 2);
  EXPECT_EQ(conv_tiling.vector_axis, 2U);
  EXPECT_FALSE(conv_tiling.is_ragged);

  const Tiling matrix = choose_tiling(symbolic(&product<64>, 1).nest, {8});
  EXPECT_EQ(matrix.block_axis, 0U);
  EXPECT_TRUE(matrix.is_ragged);
  EXPECT_EQ(matrix.vectors, 2);
  EXPECT_EQ(matrix.first_axis, matrix.vector_axis);
  EXPECT_EQ(matrix.parallel_axis, 1U);
  EXPECT_EQ(matrix.loop_order(2), (std::vector<size_t>{0, 1}));
  EXPECT_FALSE(matrix.by_one);
  EXPECT_TRUE(choose_tiling(symbolic(&product<76>, 1).nest, {8}).by_one);

  // Not the heads, of which there are whole blocks: nothing is the same for two of them.
  const Tiling own = choose_tiling(symbolic(&batched, 2).nest, {8});
  EXPECT_EQ(own.block_axis, 2U);
  EXPECT_FALSE(own.first_axis);
}

TEST(GenericTiling, PixelsAndBlocksOfChannelsAreOneTile) {
  const Tiling wide = choose_tiling(symbolic(&blocked<16, 4, 1>, 5).nest, {16});
  EXPECT_EQ(wide.vector_axis, 4U);
  EXPECT_EQ(wide.block_axis, 3U);
  EXPECT_EQ(wide.block, 6);
  EXPECT_EQ(wide.column_axis, 1U);
  EXPECT_EQ(wide.columns, 4);
  // One tile has all channels: threads share the rows.
  EXPECT_EQ(wide.shared_axis, 2U);
  EXPECT_EQ(wide.parts, 8);
  EXPECT_EQ(choose_tiling(symbolic(&blocked<8, 2, 1>, 5).nest, {8}).block, 6);
  const std::string text = te::print(loops_of(symbolic(&blocked<16, 4, 1>, 5), 16).function);
  EXPECT_EQ(text.find("max("), std::string::npos) << "taps are asked for, not clamped";
}

TEST(GenericTiling, RowsThatTakeAQuarterOfTheCacheMeetAllPanelsBeforeTheNext) {
  const auto tiling = [](MakeNest make, int64_t l2_bytes) {
    return choose_tiling(symbolic(make, 1).nest, {16, l2_bytes});
  };
  constexpr int64_t kL2 = int64_t{1} << 20;
  EXPECT_EQ(tiling(&blocks_of_columns<48, 768>, kL2).chunk, 14) << "of 6 rows of 3 KiB";
  EXPECT_EQ(tiling(&blocks_of_columns<48, 768>, 2 * kL2).chunk, 28);
  EXPECT_EQ(tiling(&blocks_of_columns<48, 768>, 4096).chunk, 1);
  EXPECT_EQ(tiling(&blocks_of_columns<8, 768>, kL2).chunk, 0)
      << "threads share rows where there are few panels";
}

TEST(GenericTiling, BlocksFillRegisters) {
  const auto tiling = [](MakeNest make, int lanes) { return choose_tiling(symbolic(make, 1).nest, {lanes}); };
  EXPECT_EQ(tiling(&columns<48>, 8).block, 6);
  EXPECT_EQ(tiling(&columns<48>, 8).blocks, 2);
  EXPECT_EQ(tiling(&columns<192>, 8).blocks, 4);
  EXPECT_EQ(tiling(&columns<48>, 16).block, 8);
  // Two blocks of four are one of eight where columns come vector by vector; a block of six has no other.
  EXPECT_EQ(tiling(&columns<32>, 8).block, 4);
  EXPECT_EQ(tiling(&columns<18>, 8).block, 6);
  EXPECT_EQ(tiling(&columns<18>, 8).blocks, 1);
  EXPECT_EQ(tiling(&columns<162>, 8).blocks, 3);
  EXPECT_TRUE(tiling(&columns<7>, 8).is_ragged);
}

TEST(GenericTiling, ABatchOfOneIsSharedByThreads) {
  const Tiling own = choose_tiling(symbolic(&batched, 2).nest, {8});
  EXPECT_EQ(own.parallel_axis, 0U);
  EXPECT_TRUE(own.joined);
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
