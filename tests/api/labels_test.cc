// Labels of workers and the scopes that grant them.
#include "api/http/labels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/http/scopes.h"
#include "api/services/job_service.h"
#include "runtime/base/error.h"
#include "tests/expect_error.h"

namespace tensormill::http {
namespace {

using Texts = std::vector<std::string>;

TEST(LabelsTest, AreSortedAndEachOnce) {
  EXPECT_EQ(parse_labels(""), Texts());
  EXPECT_EQ(parse_labels("room=lab,board=rpi4"), (Texts{"board=rpi4", "room=lab"}));
  EXPECT_EQ(join_labels(parse_labels("b=2,a=1")), "a=1,b=2");
  for (const char* wrong :
       {"board", "=x", "a=", "a=b=c", "a=1,a=2", "a=1,,b=2", "a=ä", "a=1 ", "a=1,b=1,c=1,d=1,e=1,f=1,g=1"})
    expect_error(ErrorCode::kInvalidArgument, "label", [&] { parse_labels(wrong); });
}

TEST(LabelsTest, SetsAreAllThatAWorkerMayBeAskedFor) {
  Texts sets = label_sets({"a=1", "b=2", "c=3"});
  EXPECT_EQ(sets.front(), "") << "who asks for nothing is served as well";
  std::sort(sets.begin(), sets.end());
  EXPECT_EQ(sets, (Texts{"", "a=1", "a=1,b=2", "a=1,b=2,c=3", "a=1,c=3", "b=2", "b=2,c=3", "c=3"}));
}

TEST(ScopesTest, OfWorkersSayWhatTheyDoAndWhatTheyAreCalled) {
  for (const char* good : {"worker:compile", "worker:measure", "label:board=rpi4"})
    EXPECT_EQ(scope_problem(good), "") << good;
  for (const char* bad : {"worker", "worker:shell", "worker:", "label", "label:board", "label:a=b=c"})
    EXPECT_NE(scope_problem(bad), "") << bad;
}

TEST(JobVerdictTest, SaysWhatBecameOfTheWork) {
  const auto verdict = [](ErrorCode code, std::vector<ErrorDetail> details = {}) {
    return services::job_verdict({code, "", std::move(details), ""});
  };
  EXPECT_EQ(verdict(ErrorCode::kInvalidModel), "refused");
  EXPECT_EQ(verdict(ErrorCode::kWrongAnswer), "wrong_answer");
  EXPECT_EQ(verdict(ErrorCode::kDeadlineExceeded), "timed_out");
  EXPECT_EQ(verdict(ErrorCode::kDeadlineExceeded, {{"/on", "nobody"}}), "timed_out_in_queue");
  EXPECT_EQ(verdict(ErrorCode::kJobFailed), "crashed");
  EXPECT_EQ(verdict(ErrorCode::kUnavailable), "device_lost");
  EXPECT_EQ(verdict(ErrorCode::kMemoryBudget), "out_of_memory");
  EXPECT_EQ(verdict(ErrorCode::kIo), "failed");
}

}  // namespace
}  // namespace tensormill::http
