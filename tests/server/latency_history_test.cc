#include "server/metrics/latency_history.h"

#include <gtest/gtest.h>

namespace tensormill::metrics {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistory, TellsPercentilesWithinABucket) {
  LatencyHistory history;
  const LatencyHistory::Clock::time_point now{100min};
  for (int i = 1; i <= 100; ++i) history.answered("a", now, std::chrono::milliseconds(i));
  const LatencySpan whole = history.hour("a", now).whole;
  EXPECT_EQ(whole.answered, 100u);
  EXPECT_GE(*whole.p50_ms, 50 * 0.999);
  EXPECT_LE(*whole.p50_ms, 50 * 1.1);
  EXPECT_GE(*whole.p95_ms, 95 * 0.999);
  EXPECT_LE(*whole.p95_ms, 95 * 1.1);
  EXPECT_GE(*whole.p99_ms, 99 * 0.999);
  EXPECT_LE(*whole.p99_ms, 99 * 1.1);
}

TEST(LatencyHistory, ForgetsAfterAnHour) {
  LatencyHistory history;
  history.answered("a", LatencyHistory::Clock::time_point{5min}, 1ms);
  history.failed("a", LatencyHistory::Clock::time_point{64min});
  const LatencyHour both = history.hour("a", LatencyHistory::Clock::time_point{64min});
  ASSERT_EQ(both.minutes.size(), 60u);
  EXPECT_EQ(both.minutes.front().answered, 1u);
  EXPECT_EQ(both.minutes.back().failed, 1u);
  EXPECT_EQ(both.whole.answered, 1u);
  // The slot of a minute is that of the minute an hour later: what was in it is gone, read or written.
  EXPECT_EQ(history.hour("a", LatencyHistory::Clock::time_point{65min}).whole.answered, 0u);
  history.answered("a", LatencyHistory::Clock::time_point{65min}, 1ms);
  EXPECT_EQ(history.hour("a", LatencyHistory::Clock::time_point{65min}).whole.answered, 1u);
}

TEST(LatencyHistory, KnowsNothingOfOthersAndOfWhatWasForgotten) {
  LatencyHistory history;
  const LatencyHistory::Clock::time_point now{1min};
  history.answered("a", now, 1ms);
  EXPECT_EQ(history.hour("b", now).whole.answered, 0u);
  EXPECT_FALSE(history.hour("b", now).whole.p50_ms.has_value());
  history.forget("a");
  EXPECT_EQ(history.hour("a", now).whole.answered, 0u);
}

TEST(LatencyHistory, TakesWhatIsToldAfterItsMinute) {
  LatencyHistory history;
  history.answered("a", LatencyHistory::Clock::time_point{62min}, 1ms);
  // Begun before the minute turned, told after: no minute is emptied for it.
  history.answered("a", LatencyHistory::Clock::time_point{2min}, 1ms);
  EXPECT_EQ(history.hour("a", LatencyHistory::Clock::time_point{62min}).whole.answered, 2u);
}

}  // namespace
}  // namespace tensormill::metrics
