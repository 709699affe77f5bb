#include "server/measure/host.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/tune/measure.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "tests/deaf_program.h"
#include "tests/expect_error.h"
#include "tests/storage/support.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::measure::measure_host_test {
namespace {

/// A child that does not read, and requests that are longer than a pipe holds.
class DeafMeasuringChild : public testing::Test {
protected:
  storage::TemporaryFolder folder_;
  FileDescriptor code_ = memory_file("code"), tensors_ = memory_file("tensors");
  MeasureHost host_{
      {.program = deaf_program(folder_.path()), .start_seconds = 0}, code_.get(), tensors_.get()};
  const Json request_ = {{"symbol", std::string(size_t{1} << 20, 'x')}};
};

TEST_F(DeafMeasuringChild, CostsOneTrialOfAsLongAsATrialMayTake) {
  for (int trial = 1; trial <= 2; ++trial) {
    const Json answer = host_.measure(request_, 0.01);
    EXPECT_EQ(answer.value("error", 0), static_cast<int>(tune::TrialError::kRunTimeout)) << answer;
    EXPECT_EQ(host_.children(), trial) << "each is replaced";
  }
}

TEST_F(DeafMeasuringChild, IsEndedByWhoCancels) {
  const auto cancel = [] { throw Error(ErrorCode::kCancelled, "the job was cancelled"); };
  for (int trial = 1; trial <= 2; ++trial) {
    expect_error(ErrorCode::kCancelled, "the job was cancelled",
                 [&] { host_.measure(request_, 3600, cancel); });
    EXPECT_EQ(host_.children(), trial) << "the half of a request is in the pipe of the last one";
  }
}

}  // namespace
}  // namespace tensormill::measure::measure_host_test
