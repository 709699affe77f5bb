// The end of the process while its threads do not end.
#include "server/cli/exit_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <mutex>
#include <thread>

namespace tensormill::cli {
namespace {

TEST(ExitGuardTest, EndsAProcessWhoseThreadsDoNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ExitGuard guard("left in the middle");
        std::mutex never;
        never.lock();
        std::thread stuck([&] { never.lock(); });
        guard.arm(std::chrono::milliseconds(10));
        stuck.join();
      },
      testing::ExitedWithCode(0), R"("level":"warning","msg":"left in the middle")");
}

TEST(ExitGuardTest, LeavesAProcessThatEndsInTimeAlone) {
  ExitGuard never_armed("unused");
  ExitGuard guard("unused");
  guard.arm(std::chrono::hours(1));
}

}  // namespace
}  // namespace tensormill::cli
