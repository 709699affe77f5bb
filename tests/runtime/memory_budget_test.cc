// Bytes that many share: who is refused, with what, and that all of it comes back.
#include "runtime/base/memory_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill {
namespace {

ErrorCode refusal(MemoryShare& share, uint64_t bytes) {
  try {
    share.take(bytes);
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("limits.memory_in_flight is 100"), std::string::npos) << error.message();
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(MemoryBudget, WhatDoesNotFitBesideOthersIsUnavailableAndWhatNeverFitsIsTooLarge) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 100);
  MemoryShare first(budget);
  first.take(60);
  {
    MemoryShare second(budget);
    second.take(40);
    EXPECT_EQ(budget->used(), 100u);
    EXPECT_EQ(refusal(first, 1), ErrorCode::kUnavailable);
    EXPECT_EQ(refusal(first, 41), ErrorCode::kTooLarge);
    EXPECT_EQ(refusal(second, ~uint64_t{0} - 100), ErrorCode::kTooLarge);
    EXPECT_THROW(second.check(1), Error);
    EXPECT_EQ(budget->used(), 100u) << "a refusal takes nothing";
  }
  EXPECT_EQ(budget->used(), 60u);
  first.check(40);
  EXPECT_EQ(budget->used(), 60u) << "a check takes nothing";
  first.take(40);
  first.give(100);
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(budget->refusals(), 4u);
}

TEST(MemoryBudget, WhatIsThereAlreadyCountsAgainstLaterOnes) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 100);
  MemoryShare answer(budget);
  answer.add(150);
  MemoryShare next(budget);
  EXPECT_EQ(refusal(next, 1), ErrorCode::kUnavailable);
}

TEST(MemoryBudget, WithoutABoundItCounts) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 0);
  MemoryShare share(budget);
  share.take(uint64_t{1} << 50);
  EXPECT_EQ(budget->used(), uint64_t{1} << 50);
}

TEST(MemoryBudget, ALoanEnds) {
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", 100);
  MemoryShare share(budget);
  {
    const MemoryLoan loan(&share, 90);
    EXPECT_EQ(budget->used(), 90u);
    EXPECT_THROW(MemoryLoan(&share, 11), Error);
  }
  EXPECT_EQ(budget->used(), 0u);
  const MemoryLoan nobody_counts(nullptr, 1000);
  EXPECT_GT(memory_of_this_machine(), uint64_t{1} << 26);
}

TEST(MemoryBudget, ManyThreadsNeverPassIt) {
  constexpr uint64_t kBound = 1000;
  const auto budget = std::make_shared<MemoryBudget>("limits.memory_in_flight", kBound);
  std::atomic<uint64_t> most{0};
  std::vector<std::jthread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 5000; ++i) {
        MemoryShare share(budget);
        try {
          share.take(100 + (i * 7 + thread * 131) % 400);
          share.take(i % 50);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
        }
        uint64_t seen = most.load();
        const uint64_t used = budget->used();
        while (used > seen && !most.compare_exchange_weak(seen, used)) {
        }
      }
    });
  }
  threads.clear();
  EXPECT_LE(most.load(), kBound);
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace tensormill
