// What a request has in memory while it waits for a child.
#include "server/services/jobs/child_runner.h"

#include <gtest/gtest.h>

#include "tests/storage/support.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::child_runner_test {
namespace {

TEST(ChildRunner, WhatAChildIsGivenIsMadeOnceItMayRun) {
  constexpr uint64_t kMemory = uint64_t{1} << 30;
  const storage::TemporaryFolder folder;
  jobs::ChildSlots slots({.memory = kMemory, .requests = 1});
  ChildRunner children(folder.path() + "/children", slots);
  int made = 0;
  const auto make = [&]() -> jobs::ChildSpec {
    ++made;
    throw Error(ErrorCode::kIo, "made");
  };
  std::stop_source gone;
  gone.request_stop();
  {
    const auto other = slots.for_request(kMemory, {});
    EXPECT_ERROR(children.run(kMemory, make, gone.get_token()), ErrorCode::kCancelled);
    EXPECT_EQ(made, 0) << "while it waited";
  }
  EXPECT_ERROR(children.run(kMemory, make, gone.get_token()), ErrorCode::kIo);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(slots.running(), 0) << "what fails before there is a child has its place no longer";
}

}  // namespace
}  // namespace tensormill::server::child_runner_test
