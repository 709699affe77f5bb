// How many children run side by side, who waits, and who is refused.
#include "server/jobs/child_slots.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::jobs {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr uint64_t kGiB = uint64_t{1} << 30;

ErrorCode refusal(ChildSlots& slots, uint64_t memory, const std::stop_token& stop = {},
                  ChildSlots::Clock::time_point deadline = ChildSlots::Clock::time_point::max()) {
  try {
    slots.for_request(memory, stop, deadline);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(ChildSlots, LimitsOfMemoryAddUp) {
  ChildSlots slots({10 * kGiB, 8, 0, hours(1)});
  const auto one = slots.for_request(4 * kGiB, {});
  auto two = slots.for_request(4 * kGiB, {});
  EXPECT_EQ(refusal(slots, 4 * kGiB), ErrorCode::kUnavailable);
  EXPECT_EQ(refusal(slots, 0), ErrorCode::kUnavailable) << "one without a limit counts as all";
  const auto small = slots.for_request(2 * kGiB, {});
  two.reset();
  const auto three = slots.for_request(4 * kGiB, {});
  EXPECT_EQ(slots.running(), 3);
  EXPECT_EQ(slots.refusals(), 2u);
}

TEST(ChildSlots, RequestsAreBoundedInNumberToo) {
  ChildSlots slots({100 * kGiB, 2, 0, hours(1)});
  const auto one = slots.for_request(kGiB, {});
  const auto two = slots.for_request(kGiB, {});
  EXPECT_EQ(refusal(slots, kGiB), ErrorCode::kUnavailable);
  EXPECT_NE(slots.for_job(kGiB, milliseconds(0), {}), nullptr) << "jobs have workers that bound them";
}

TEST(ChildSlots, NeitherJobsNorRequestsWaitForTheOtherWithoutOne) {
  ChildSlots slots({8 * kGiB, 2, 0, hours(1)});
  const auto compile = slots.for_job(8 * kGiB, milliseconds(0), {});
  ASSERT_NE(compile, nullptr);
  const auto import = slots.for_request(4 * kGiB, {});
  EXPECT_EQ(refusal(slots, 4 * kGiB), ErrorCode::kUnavailable);
  EXPECT_EQ(slots.for_job(kGiB, milliseconds(0), {}), nullptr);
  // It holds others up, so it must not wait for them.
  EXPECT_NE(slots.for_measuring(8 * kGiB), nullptr);
}

TEST(ChildSlots, AnExecutorTakesItsMemoryForGoodAndStarvesNobody) {
  ChildSlots slots({10 * kGiB, 8, 0, hours(1)});
  auto executor = slots.for_executor(6 * kGiB);
  EXPECT_EQ(slots.running(), 1);
  const auto import = slots.for_request(4 * kGiB, {});
  EXPECT_EQ(refusal(slots, kGiB), ErrorCode::kUnavailable) << "the executor counts";
  // It does not wait for what is over soon, and is not refused for it.
  auto second = slots.for_executor(4 * kGiB);
  EXPECT_EQ(slots.running(), 3);
  try {
    slots.for_executor(1);
    ADD_FAILURE() << "more than children may have";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMemoryBudget);
    EXPECT_NE(error.message().find("children.memory"), std::string::npos) << error.message();
  }
  EXPECT_EQ(slots.running(), 3) << "what was refused takes nothing";
  EXPECT_EQ(slots.refusals(), 1u) << "of requests";
  // Executors have all: one job and one request run all the same.
  EXPECT_NE(slots.for_job(4 * kGiB, milliseconds(0), {}), nullptr);
  second.reset();
  executor.reset();
  EXPECT_NE(slots.for_executor(10 * kGiB), nullptr);
}

TEST(ChildSlots, RequestsRunInTheOrderOfTheirArrival) {
  ChildSlots slots({4 * kGiB, 8, 8, hours(1)});
  auto running = slots.for_request(4 * kGiB, {});
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      // The first two need all, the last one would fit earlier.
      const auto slot = slots.for_request(i < 2 ? 4 * kGiB : kGiB, {});
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    while (slots.waiting() <= i) std::this_thread::yield();
  }
  running.reset();
  threads.clear();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(slots.running(), 0);
}

TEST(ChildSlots, WaitingHasBounds) {
  ChildSlots slots({kGiB, 1, 1, milliseconds(1)});
  const auto running = slots.for_request(kGiB, {});
  EXPECT_EQ(refusal(slots, kGiB), ErrorCode::kUnavailable) << "after 1 ms";
  std::stop_source gone;
  gone.request_stop();
  EXPECT_EQ(refusal(slots, kGiB, gone.get_token()), ErrorCode::kCancelled);
  ChildSlots patient({kGiB, 1, 1, hours(1)});
  const auto other = patient.for_request(kGiB, {});
  EXPECT_EQ(refusal(patient, kGiB, {}, ChildSlots::Clock::now()), ErrorCode::kDeadlineExceeded);
  // The line is as long as it may be: the next one is refused at once.
  std::stop_source leaving;
  std::jthread waiter([&] { EXPECT_EQ(refusal(patient, kGiB, leaving.get_token()), ErrorCode::kCancelled); });
  while (patient.waiting() == 0) std::this_thread::yield();
  EXPECT_EQ(refusal(patient, kGiB), ErrorCode::kUnavailable);
  leaving.request_stop();
  waiter.join();
  EXPECT_EQ(patient.waiting(), 0);
}

TEST(ChildSlots, RoomIsAskedForWithoutAPlaceInTheLine) {
  ChildSlots slots({4 * kGiB, 1, 0, hours(1)});
  slots.require_room(4 * kGiB);
  const auto running = slots.for_request(4 * kGiB, {});
  EXPECT_THROW(slots.require_room(kGiB), Error);
  EXPECT_EQ(slots.refusals(), 1u);
  ChildSlots patient({4 * kGiB, 1, 1, hours(1)});
  const auto other = patient.for_request(4 * kGiB, {});
  patient.require_room(kGiB);
  EXPECT_EQ(patient.waiting(), 0) << "who asks does not wait";
}

TEST(ChildSlots, AJobThatWaitsIsWoken) {
  ChildSlots slots({kGiB, 1, 1, hours(1)});
  auto first = slots.for_job(kGiB, hours(1), {});
  auto second = std::async(std::launch::async, [&] { return slots.for_job(kGiB, hours(1), {}) != nullptr; });
  first.reset();
  EXPECT_TRUE(second.get());
  first = slots.for_job(kGiB, hours(1), {});
  std::stop_source shutdown;
  auto third = std::async(std::launch::async,
                          [&] { return slots.for_job(kGiB, hours(1), shutdown.get_token()) == nullptr; });
  shutdown.request_stop();
  EXPECT_TRUE(third.get());
}

}  // namespace
}  // namespace tensormill::jobs
