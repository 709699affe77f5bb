// Walls that a kernel lacks, the user that children become, and memory that their own limit does not count.
#include "server/jobs/confine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "server/jobs/child_process.h"
#include "server/jobs/landlock.h"
#include "server/jobs/memory_watch.h"
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
      landlock_ = confinement.landlock;
    };
    ChildSpec spec;
    spec.command = command;
    spec.folder = folder_.path();
    spec.limits.kind = kind;
    spec.limits.data_bytes = uint64_t{1} << 30;
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
  int landlock_ = 0;
};

/// Another process' memory files are shown to who has it, or to its own user.
class WithoutTracing {
public:
  WithoutTracing() {
    read(had_);
    auto without = had_;
    without[0].effective &= ~(1U << CAP_SYS_PTRACE);
    write(without);
  }
  ~WithoutTracing() { write(had_); }
  WithoutTracing(const WithoutTracing&) = delete;
  WithoutTracing& operator=(const WithoutTracing&) = delete;

private:
  using Data = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;
  static __user_cap_header_struct header() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }
  static void read(Data& data) {
    auto of_this_thread = header();
    EXPECT_EQ(::syscall(SYS_capget, &of_this_thread, data.data()), 0);
  }
  static void write(const Data& data) {
    auto of_this_thread = header();
    EXPECT_EQ(::syscall(SYS_capset, &of_this_thread, data.data()), 0);
  }
  Data had_{};
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
  if (landlock_ != 0) {
    EXPECT_EQ(compile.at("file"), false) << "it makes files in no folder";
  }
  EXPECT_EQ(compile.at("user"), user != 0 ? user : ::geteuid());
  EXPECT_EQ(compile.at("group"), user != 0 ? user : ::getegid());
  EXPECT_EQ(user_, user);
}

TEST_F(ConfineTest, WhoMayOpenFilesOpensNoneOutside) {
  const storage::TemporaryFolder outside;
  const std::string file = outside.path() + "/catalog";
  write_file(file, "what is kept");
  for (const ChildKind kind : kChildKinds) {
    if ((needs_of(kind) & (kMakesFiles | kLinks)) == 0) continue;
    SCOPED_TRACE(child_kind_name(kind));
    ChildSpec walled = spec("child-files", kind);
    walled.arguments = {file};
    const ChildOutcome outcome = run(walled);
    ASSERT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
    if (!missing_.back().empty()) GTEST_SKIP() << "this kernel has no " << missing_.back();
    const Json result = parse_json(outcome.result);
    EXPECT_EQ(result.at("outside"), EACCES);
    EXPECT_EQ(result.at("overwrite"), EACCES);
    EXPECT_EQ(result.at("inside"), (needs_of(kind) & kMakesFiles) != 0 ? 0 : EACCES);
    EXPECT_EQ(read_file(file), "what is kept");
  }
}

TEST_F(ConfineTest, LandlockAloneHoldsWhatItsVersionKnows) {
  if (!has_call_filters()) GTEST_SKIP() << "this kernel takes no filters of system calls";
  if (landlock_version() < 3) GTEST_SKIP() << "this kernel's Landlock knows neither of them";
  const storage::TemporaryFolder outside;
  const std::string file = outside.path() + "/catalog";
  write_file(file, "what is kept");
  ChildSpec walled = spec("child-landlock-alone", ChildKind::kRun);
  walled.arguments = {file};
  const ChildOutcome outcome = run(walled);
  ASSERT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
  EXPECT_EQ(missing_, std::vector<std::string>{"seccomp"});
  const Json result = parse_json(outcome.result);
  EXPECT_EQ(result.at("truncate"), EACCES);
  EXPECT_EQ(read_file(file), "what is kept");
  if (landlock_version() >= 4) {
    EXPECT_EQ(result.at("connect"), EACCES);
  }
  if (landlock_version() >= 6) {
    EXPECT_EQ(result.at("kill"), EPERM);
  }
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

TEST_F(ConfineTest, TablesOfPagesCountAsMemory) {
  ChildSpec hungry = spec("child-page-tables", ChildKind::kRun);
  hungry.limits.data_bytes = uint64_t{128} << 20;
  const ChildOutcome outcome = run(hungry);
  EXPECT_EQ(outcome.end, ChildEnd::kOutOfMemory);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kMemoryBudget);
}

TEST_F(ConfineTest, MemoryFilesOfAChildOfAnotherUserCount) {
  const uint32_t user = usable_child_user(65534);
  if (user == 0) GTEST_SKIP() << "this process may not make its children another user";
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  const WithoutTracing as_in_a_container;
  ChildSpec hungry = spec("child-shared-memory", ChildKind::kCompile, {.user = user});
  hungry.arguments = {"written"};
  hungry.limits.data_bytes = uint64_t{128} << 20;
  const ChildOutcome outcome = run(hungry);
  EXPECT_EQ(outcome.end, ChildEnd::kOutOfMemory) << outcome.error->what();
  EXPECT_EQ(user_, user);
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), dumpable) << "the server's own cores stay";
}

TEST_F(ConfineTest, GrowthOfAGivenFileCountsUntilItIsForgiven) {
  constexpr uint64_t kGrowth = uint64_t{64} << 20;
  const FileDescriptor given = memory_file("given");
  const std::vector<int> descriptors = {given.get()};
  MemoryWatch watch(uint64_t{1} << 40, descriptors);
  const uint64_t before = watch.held(::getpid());
  const std::string part(size_t{1} << 20, 'x');
  for (uint64_t written = 0; written < kGrowth; written += part.size()) write_all(given.get(), part, "given");
  EXPECT_GE(watch.held(::getpid()), before + kGrowth);
  watch.forgive_given();
  EXPECT_LT(watch.held(::getpid()), before + kGrowth / 2);
}

}  // namespace
}  // namespace tensormill::jobs
