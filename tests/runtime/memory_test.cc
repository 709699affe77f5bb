#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/base/error.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/planner.h"
#include "runtime/package/plan_memory.h"
#include "tests/runtime/test_package.h"

namespace tensormill::memory {
namespace {

TEST(PlanBlocks, NothingThatLivesTogetherOverlaps) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<BlockRequest> requests;
    for (int i = 0; i < 40; ++i) {
      const int64_t first = random() % 30;
      requests.push_back(
          {static_cast<int64_t>(random() % 5000), first, first + static_cast<int64_t>(random() % 6)});
    }
    const BlockPlan plan = plan_blocks(requests, {});
    EXPECT_GE(plan.total_bytes, plan.live_peak_bytes);
    for (size_t a = 0; a < requests.size(); ++a) {
      ASSERT_EQ(plan.offsets[a] % 64, 0);
      ASSERT_LE(plan.offsets[a] + padded_size(requests[a].bytes), plan.total_bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together = requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
        const bool apart = plan.offsets[a] + padded_size(requests[a].bytes) <= plan.offsets[b] ||
                           plan.offsets[b] + padded_size(requests[b].bytes) <= plan.offsets[a];
        ASSERT_TRUE(!together || apart) << a << " " << b;
      }
    }
    EXPECT_EQ(plan_blocks(requests, {}).offsets, plan.offsets);
  }
}

TEST(PlanBlocks, WhatIsTakenStays) {
  std::mt19937 random(2);
  int64_t reused = 0;
  for (int round = 0; round < 200; ++round) {
    const auto draw = [&](int64_t from) {
      std::vector<BlockRequest> requests;
      for (int i = 0; i < 20; ++i) {
        const int64_t first = from + random() % 15;
        requests.push_back(
            {static_cast<int64_t>(random() % 5000), first, first + static_cast<int64_t>(random() % 20)});
      }
      return requests;
    };
    const BlockPlan before = plan_blocks(draw(0), {});
    ASSERT_TRUE(std::is_sorted(before.placed.begin(), before.placed.end(),
                               [](const auto& a, const auto& b) { return a.offset < b.offset; }));
    const std::vector<BlockRequest> requests = draw(15);
    const BlockPlan plan = plan_blocks(requests, {}, before.placed);
    for (size_t i = 0; i < requests.size(); ++i) {
      const int64_t begin = plan.offsets[i], end = begin + padded_size(requests[i].bytes);
      ASSERT_LE(end, plan.total_bytes);
      for (const PlacedBlock& taken : before.placed) {
        const bool together = requests[i].first <= taken.last && taken.first <= requests[i].last;
        ASSERT_TRUE(!together || end <= taken.offset || taken.offset + taken.bytes <= begin) << i;
      }
      reused += end <= before.total_bytes;
    }
  }
  EXPECT_GT(reused, 0);
}

TEST(PlanBlocks, ReuseJoinsAChainAndOnlyOnce) {
  // a -> b -> c in place: one block. A second heir of the same step does not get the bytes as well.
  const std::vector<BlockRequest> requests = {{1000, 0, 1}, {1000, 1, 1}, {1000, 1, 2}};
  const BlockPlan plan = plan_blocks(requests, {{1, 0}, {2, 0}});
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_NE(plan.offsets[2], plan.offsets[0]);
  const BlockPlan chain = plan_blocks({{1000, 0, 1}, {1000, 1, 2}, {900, 2, 3}}, {{1, 0}, {2, 1}});
  EXPECT_EQ(chain.total_bytes, padded_size(1000));
}

TEST(PlanBlocks, ALaterReaderOrALargerHeirForbidsReuse) {
  const BlockPlan read_later = plan_blocks({{100, 0, 2}, {100, 1, 2}}, {{1, 0}});
  EXPECT_NE(read_later.offsets[0], read_later.offsets[1]);
  const BlockPlan larger = plan_blocks({{100, 0, 1}, {1000, 1, 2}}, {{1, 0}});
  EXPECT_EQ(larger.total_bytes, padded_size(100) + padded_size(1000));
}

TEST(PlanBlocks, SumsThatWrapAreErrors) {
  EXPECT_THROW(checked_add(INT64_MAX, 1), Error);
  EXPECT_THROW(checked_mul(int64_t{1} << 40, int64_t{1} << 40), Error);
  EXPECT_THROW(plan_blocks({{int64_t{1} << 61, 0, 0}, {int64_t{1} << 61, 0, 0}, {1, 0, 0}}, {}), Error);
}

TEST(PlanMemory, ChainsRunInPlaceAndInputsKeep) {
  const auto archive = package::relu_add_archive(1000);
  const package::MemoryPlan memory = package::plan_memory(archive.plan);
  EXPECT_EQ(memory.offsets[2], memory.offsets[3]) << "y lies on t, as the hint allows";
  EXPECT_NE(memory.offsets[0], memory.offsets[2]) << "inputs are kept for the next run";
  EXPECT_EQ(memory.offsets[1], -1) << "constants are not in the arena";
  EXPECT_EQ(memory.arena_bytes, 2 * padded_size(32000) + padded_size(256));
  EXPECT_EQ(memory.shared_workspace[0], -1);
  EXPECT_GE(memory.shared_workspace[1], 0);
}

TEST(Arena, IsZeroedAndAligned) {
  Arena arena(10000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % 4096, 0u);
  for (int64_t i = 0; i < arena.size(); ++i) ASSERT_EQ(arena.data()[i], std::byte{0});
  Arena other = std::move(arena);
  EXPECT_EQ(arena.data(), nullptr);  // NOLINT(bugprone-use-after-move): it has none then
  EXPECT_EQ(other.size(), 10000);
}

}  // namespace
}  // namespace tensormill::memory
