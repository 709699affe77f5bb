// Walls that a kernel lacks, the user that children become, and memory that their own limit does not count.
#include "server/jobs/confine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "server/jobs/child_process.h"
#include "server/jobs/landlock.h"
#include "server/jobs/system_calls.h"
#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ConfineTest : public testing::Test {
protected:
  ChildSpec spec(const std::string& command, ChildKind kind, ChildPolicy policy = {}) {
    policy.on_confined = [this](ChildKind seen, const Confinement& confinement) {
      missing_.push_back(missing_wall(seen, confinement));
      user_ = confinement.user;
    };
    ChildSpec spec;
    spec.command = command;
    spec.folder = folder_.path();
    spec.limits.kind = kind;
    spec.policy = std::make_shared<const ChildPolicy>(std::move(policy));
    return spec;
  }
  static ChildOutcome run(const ChildSpec& spec) {
    ChildProcess child(spec);
    while (true) {
      const auto outcome = child.poll(seconds(60), [](const std::string&, const std::string&) {});
      if (outcome) return *outcome;
    }
  }

  storage::TemporaryFolder folder_;
  std::vector<std::string> missing_;  ///< wall of each child that said what holds
  uint32_t user_ = 0;
};

TEST_F(ConfineTest, AMissingWallIsToldAndWhereItIsRequiredNothingIsBegun) {
  if (!has_call_filters()) GTEST_SKIP() << "this kernel takes no filters of system calls";
  for (const char* const wall : {"landlock", "seccomp"}) {
    const std::string command = std::string("child-no-") + wall;
    missing_.clear();
    const ChildOutcome open = run(spec(command, ChildKind::kImport));
    EXPECT_EQ(open.end, ChildEnd::kOk) << open.error->what();
    EXPECT_EQ(missing_, std::vector<std::string>{wall});
    const ChildOutcome closed = run(spec(command, ChildKind::kImport, {.require_confinement = true}));
    ASSERT_EQ(closed.end, ChildEnd::kUserError);
    EXPECT_EQ(closed.error->code(), ErrorCode::kNotSupported);
    EXPECT_THAT(closed.error->message(), HasSubstr(std::string("this kernel has no ") + wall));
    EXPECT_THAT(closed.error->message(), HasSubstr("jobs.require_confinement"));
  }
  // Who opens no file by name needs no wall around files.
  EXPECT_EQ(run(spec("child-no-landlock", ChildKind::kMeasure, {.require_confinement = true})).end,
            ChildEnd::kOk);
}

TEST_F(ConfineTest, WhatIsExpectedOfTheKernelHolds) {
  missing_.clear();
  Confinement holds;
  ChildSpec wanted = spec("child-ready", ChildKind::kImport);
  wanted.limits.data_bytes = uint64_t{1} << 30;
  wanted.policy = std::make_shared<const ChildPolicy>(
      ChildPolicy{false, 0, [&](ChildKind, const Confinement& confinement) { holds = confinement; }});
  EXPECT_EQ(run(wanted).end, ChildEnd::kOk);
  EXPECT_EQ(holds, expected_confinement({}));
  EXPECT_EQ(holds.landlock, landlock_version());
  EXPECT_EQ(confinement_from_text(to_text(holds)), holds);
  EXPECT_THROW(confinement_from_text("seccomp=1"), InternalError);
}

TEST_F(ConfineTest, WhereTheServerMayAChildBecomesAUserOfItsOwn) {
  constexpr uint32_t kUser = 65534;
  const uint32_t user = usable_child_user(kUser);
  EXPECT_EQ(usable_child_user(0), 0U);
  if (::geteuid() != 0) {
    EXPECT_EQ(user, 0U);
  }
  // One makes files in the folder, the other opens its memory by name.
  const Json import = parse_json(run(spec("child-who", ChildKind::kImport, {.user = user})).result);
  EXPECT_EQ(import.at("file"), true);
  const Json compile = parse_json(run(spec("child-who", ChildKind::kCompile, {.user = user})).result);
  EXPECT_EQ(compile.at("memory_file"), true);
  EXPECT_EQ(compile.at("user"), user != 0 ? user : ::geteuid());
  EXPECT_EQ(compile.at("group"), user != 0 ? user : ::getegid());
  EXPECT_EQ(user_, user);
}

TEST_F(ConfineTest, SharedMemoryCountsAsMemory) {
  const FileDescriptor given = memory_file("given", std::string(size_t{32} << 20, 'x'));
  for (const char* const how : {"mapped", "written", "given"}) {
    ChildSpec hungry = spec("child-shared-memory", ChildKind::kRun);
    hungry.arguments = {how};
    hungry.descriptors = {given.get()};
    // The filter refuses such memory; here is what holds where there is none.
    hungry.limits.confine = false;
    hungry.limits.data_bytes = uint64_t{128} << 20;
    const ChildOutcome outcome = run(hungry);
    EXPECT_EQ(outcome.end, ChildEnd::kOutOfMemory) << how;
    EXPECT_EQ(outcome.error->code(), ErrorCode::kMemoryBudget) << how;
    EXPECT_THAT(outcome.error->message(), HasSubstr("134217728")) << how;
  }
}

}  // namespace
}  // namespace tensormill::jobs
