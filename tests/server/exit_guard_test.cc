// The end of the process while its threads do not end.
#include "server/cli/exit_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <thread>

namespace tensormill::cli {
namespace {

/// Readable: the process is to end.
FileDescriptor said() { return FileDescriptor(::eventfd(1, EFD_CLOEXEC)); }

TEST(ExitGuardTest, EndsAProcessWhoseThreadsDoNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const FileDescriptor stop = said();
        ExitGuard guard("left in the middle", stop, std::chrono::milliseconds(10));
        std::mutex never;
        never.lock();
        std::thread stuck([&] { never.lock(); });
        stuck.join();
      },
      testing::ExitedWithCode(0), R"("level":"warning","msg":"left in the middle")");
}

/// Makes the standard error a pipe that takes nothing more, and that nobody reads.
void fill_standard_error() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0 || ::fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) ::_exit(3);
  const std::array<char, 4096> piece{};
  while (::write(ends[1], piece.data(), piece.size()) > 0) {
  }
  while (::write(ends[1], piece.data(), 1) > 0) {
  }
  if (::fcntl(ends[1], F_SETFL, 0) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(3);
}

TEST(ExitGuardTest, EndsAProcessWhoseLogNobodyReads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        fill_standard_error();
        const FileDescriptor stop = said();
        ExitGuard guard("unheard", stop, std::chrono::milliseconds(10));
        // Stuck in the middle of a line of the log.
        for (const char letter : {'x', 'y'}) {
          if (::write(STDERR_FILENO, &letter, 1) < 0) ::_exit(3);
        }
      },
      testing::ExitedWithCode(0), "");
}

TEST(ExitGuardTest, LeavesAProcessThatEndsInTimeAlone) {
  const FileDescriptor never(::eventfd(0, EFD_CLOEXEC)), stop = said();
  ExitGuard idle("unused", never, std::chrono::milliseconds(0));
  ExitGuard guard("unused", stop, std::chrono::hours(1));
}

}  // namespace
}  // namespace tensormill::cli
