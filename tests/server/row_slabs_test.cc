#include "server/services/deployments/row_slabs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace tensormill::server {
namespace {

constexpr size_t kRow = 128;

using Rows = std::vector<std::shared_ptr<void>>;

std::vector<const void*> places(const Rows& rows) {
  std::vector<const void*> places;
  for (const auto& row : rows) places.push_back(row.get());
  return places;
}

Rows take(RowSlabs& slabs, int count) {
  Rows rows;
  for (int i = 0; i < count; ++i) rows.push_back(slabs.take());
  return rows;
}

TEST(RowSlabs, RowsOfABatchLieSideBySide) {
  RowSlabs slabs(kRow, 4, 4, 1);
  Rows rows = take(slabs, 4);
  std::swap(rows[1], rows[3]);
  std::byte* const first = slabs.close(places(rows));
  ASSERT_EQ(first, rows[0].get());
  EXPECT_EQ(rows[3].get(), first + kRow);
  EXPECT_EQ(rows[1].get(), first + 3 * kRow);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
}

TEST(RowSlabs, ASmallerBatchIsWholeWhenNobodyElseHasARow) {
  RowSlabs slabs(kRow, 4, 4, 2);
  Rows rows = take(slabs, 2);
  EXPECT_EQ(slabs.close(places(rows)), rows[0].get());
  const std::shared_ptr<void> next = slabs.take();
  EXPECT_EQ(slabs.close(places({next})), next.get()) << "the closed slab gave out no more";
}

TEST(RowSlabs, ABatchWithoutOneOfTheRowsIsNotWhole) {
  RowSlabs slabs(kRow, 4, 4, 2);
  Rows rows = take(slabs, 3);
  EXPECT_EQ(slabs.close(places({rows[0], rows[2]})), nullptr) << "somebody may be writing row 1";
  const std::shared_ptr<void> next = slabs.take();
  EXPECT_EQ(slabs.close(places({rows[1], next})), nullptr) << "rows of two slabs";
  std::array<std::byte, kRow> own{};
  Rows fresh = take(slabs, 1);
  EXPECT_EQ(fresh.front(), nullptr) << "both slabs are closed and in use";
  EXPECT_EQ(slabs.close(std::vector<const void*>{own.data()}), nullptr);
  rows.clear();
  EXPECT_NE(slabs.take(), nullptr);
}

TEST(RowSlabs, GivesOutNoMoreThanABatchTakes) {
  RowSlabs slabs(kRow, 8, 2, 1);
  Rows rows = take(slabs, 3);
  EXPECT_NE(rows[1], nullptr);
  EXPECT_EQ(rows[2], nullptr);
  // A row that comes back alone is not given out again beside those that are in use.
  rows[0].reset();
  EXPECT_EQ(slabs.take(), nullptr);
  rows.clear();
  EXPECT_NE(slabs.take(), nullptr);
}

TEST(RowSlabs, RowsOutliveTheSlabs) {
  std::shared_ptr<void> row;
  {
    RowSlabs slabs(kRow, 2, 2, 1);
    row = slabs.take();
  }
  std::memset(row.get(), 7, kRow);
  EXPECT_EQ(static_cast<const unsigned char*>(row.get())[kRow - 1], 7);
}

TEST(RowSlabs, ThreadsNeverShareARow) {
  RowSlabs slabs(kRow, 4, 4, 3);
  std::atomic<int> shared{0};
  std::vector<std::jthread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      for (int turn = 0; turn < 500; ++turn) {
        const std::shared_ptr<void> row = slabs.take();
        if (!row) continue;
        auto* const bytes = static_cast<unsigned char*>(row.get());
        std::memset(bytes, id, kRow);
        if (turn % 3 == 0) slabs.close(places({row}));
        if (std::any_of(bytes, bytes + kRow, [id](unsigned char byte) { return byte != id; })) ++shared;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(shared, 0);
}

}  // namespace
}  // namespace tensormill::server
