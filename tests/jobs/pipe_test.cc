#include "server/jobs/pipe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "runtime/base/error.h"
#include "server/jobs/child_process.h"
#include "tests/jobs/runners.h"
#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

/// A child that has the reading end and never reads.
class DeafChild : public testing::Test {
protected:
  DeafChild() {
    ChildSpec spec = jobs::child("child-hang");
    spec.folder = folder_.path();
    spec.descriptors = {pipe_.read.get()};
    child_ = std::make_unique<ChildProcess>(spec);
    pipe_.read = FileDescriptor();
  }
  storage::TemporaryFolder folder_;
  Pipe pipe_ = make_pipe_to_child();
  std::unique_ptr<ChildProcess> child_;
  const std::string long_text_ = std::string(size_t{1} << 20, 'x');
};

TEST_F(DeafChild, IsWaitedForUntilTheDeadlineAtMost) {
  EXPECT_EQ(write_pipe(pipe_.write.get(), "short", std::chrono::steady_clock::now()), Written::kAll);
  EXPECT_EQ(write_pipe(pipe_.write.get(), long_text_, std::chrono::steady_clock::now()), Written::kLate);
}

TEST_F(DeafChild, IsLeftByWhoIsToldToStop) {
  int looks = 0;
  const auto alive = [&] {
    if (++looks == 2) throw Error(ErrorCode::kCancelled, "stop");
  };
  EXPECT_ERROR(write_pipe(pipe_.write.get(), long_text_, kNoDeadline, alive), ErrorCode::kCancelled);
}

TEST_F(DeafChild, ThatIsEndedMeanwhileIsGone) {
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(write_pipe(pipe_.write.get(), long_text_, kNoDeadline, [this] { child_->cancel(); }),
            Written::kGone);
}

TEST(WritePipe, AllIsTakenByWhoReadsSlowly) {
  Pipe pipe = make_pipe_to_child();
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  std::string taken;
  std::thread reader([&] {
    std::string part(1000, '\0');
    for (ssize_t got = 1; got > 0;) {
      got = ::read(pipe.read.get(), part.data(), part.size());
      if (got > 0) taken.append(part, 0, static_cast<size_t>(got));
    }
  });
  EXPECT_EQ(write_pipe(pipe.write.get(), text, kNoDeadline), Written::kAll);
  pipe.write = FileDescriptor();
  reader.join();
  EXPECT_EQ(taken, text);
}

}  // namespace
}  // namespace tensormill::jobs
