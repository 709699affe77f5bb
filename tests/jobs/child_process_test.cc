#include "server/jobs/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "runtime/base/json.h"
#include "server/jobs/child_main.h"
#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Events = std::vector<std::pair<std::string, std::string>>;

/// Whether this kernel takes filters of system calls at all: tried in a process of its own, with one that
/// allows every call.
bool kernel_has_seccomp() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const sock_fprog program{1, &allow};
    const bool ok = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) throw_errno(errno, "fork");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ChildProcessTest : public testing::Test {
protected:
  ChildSpec spec(const std::string& command, std::vector<std::string> arguments = {}) const {
    ChildSpec spec;
    spec.command = command;
    spec.arguments = std::move(arguments);
    spec.folder = folder_.path();
    return spec;
  }
  static ChildOutcome run_to_end(ChildProcess& child, Events* events = nullptr) {
    while (true) {
      const auto outcome = child.poll(seconds(60), [&](const std::string& type, const std::string& json) {
        if (events != nullptr) events->emplace_back(type, json);
      });
      if (outcome) return *outcome;
    }
  }
  static ChildOutcome run(const ChildSpec& spec, Events* events = nullptr) {
    ChildProcess child(spec);
    return run_to_end(child, events);
  }
  /// Waits until the child says so.
  static void wait_for(ChildProcess& child, const std::string& wanted) {
    bool seen = false;
    while (!seen) {
      const auto outcome = child.poll(
          seconds(60), [&](const std::string& type, const std::string&) { seen = seen || type == wanted; });
      ASSERT_FALSE(outcome) << outcome->error->what();
    }
  }
  /// A pipe; the end of its reading says that every holder of the writing end has gone.
  struct Witness {
    Witness() {
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "pipe");
      read = FileDescriptor(ends[0]);
      write = FileDescriptor(ends[1]);
    }
    bool all_gone() {
      write = FileDescriptor();
      char byte = 0;
      return ::read(read.get(), &byte, 1) == 0;
    }
    FileDescriptor read;
    FileDescriptor write;
  };

  storage::TemporaryFolder folder_;
};

TEST_F(ChildProcessTest, GetsWhatItIsGivenAndNothingElse) {
  const FileDescriptor input(::memfd_create("input", MFD_CLOEXEC));
  write_all(input.get(), "the model", "input");
  const FileDescriptor log(::memfd_create("log", MFD_CLOEXEC));
  const FileDescriptor leaked(::open("/dev/null", O_RDONLY));
  ChildSpec wanted = spec("child-echo", {"a b", ""});
  wanted.descriptors = {input.get()};
  wanted.log_fd = log.get();
  wanted.limits.confine = false;  // it looks at its process group
  const ChildOutcome outcome = run(wanted);
  ASSERT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
  const Json result = parse_json(outcome.result);
  EXPECT_EQ(result.at("arguments"), Json({"a b", ""}));
  EXPECT_EQ(result.at("input"), "the model");
  EXPECT_EQ(result.at("descriptors"), 6) << "0 to 4 and the one that was passed";
  EXPECT_EQ(result.at("group"), true);
  EXPECT_EQ(result.at("variables"), true);
  EXPECT_GT(outcome.max_resident_bytes, 0);
  std::string text(16, '\0');
  text.resize(static_cast<size_t>(::pread(log.get(), text.data(), text.size(), 0)));
  EXPECT_EQ(text, "to the log\n");
}

TEST_F(ChildProcessTest, EventsComeInOrder) {
  Events events;
  EXPECT_EQ(run(spec("child-report", {"1000"}), &events).end, ChildEnd::kOk);
  ASSERT_EQ(events.size(), 1001U);
  EXPECT_EQ(events[0].first, "confined");
  for (int i = 1; i <= 1000; ++i) EXPECT_EQ(parse_json(events[static_cast<size_t>(i)].second).at("done"), i);
}

TEST_F(ChildProcessTest, AUsersErrorComesBackWhole) {
  const ChildOutcome outcome = run(spec("child-user-error"));
  EXPECT_EQ(outcome.end, ChildEnd::kUserError);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kOperatorNotImplemented);
  EXPECT_EQ(outcome.error->message(), "2 operators are not implemented");
  ASSERT_EQ(outcome.error->details().size(), 1U);
  EXPECT_EQ(outcome.error->details()[0].detail, "Foo");
  EXPECT_EQ(outcome.error->extra_json(), "{\"inputs\":[]}");
}

TEST_F(ChildProcessTest, EndsAreToldApart) {
  const ChildOutcome bug = run(spec("child-internal-error"));
  EXPECT_EQ(bug.end, ChildEnd::kInternalError);
  EXPECT_EQ(bug.error->code(), ErrorCode::kInternal);
  EXPECT_THAT(bug.error->message(), HasSubstr("on purpose"));

  const ChildOutcome crash = run(spec("child-crash"));
  EXPECT_EQ(crash.end, ChildEnd::kSignal);
  EXPECT_EQ(crash.signal, SIGABRT);
  EXPECT_EQ(crash.error->code(), ErrorCode::kJobFailed);

  for (const char* command : {"child-bad-line", "child-no-result"}) {
    const ChildOutcome broken = run(spec(command));
    EXPECT_EQ(broken.end, ChildEnd::kInternalError) << command;
    EXPECT_EQ(broken.error->code(), ErrorCode::kInternal) << command;
  }

  ChildSpec slow = spec("child-hang");
  slow.time_limit = milliseconds(50);
  const ChildOutcome timeout = run(slow);
  EXPECT_EQ(timeout.end, ChildEnd::kTimeout);
  EXPECT_EQ(timeout.error->code(), ErrorCode::kDeadlineExceeded);

  ChildSpec busy = spec("child-spin");
  busy.limits.cpu_seconds = 1;
  const ChildOutcome cpu = run(busy);
  EXPECT_EQ(cpu.end, ChildEnd::kCpuLimit);
  EXPECT_EQ(cpu.error->code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(cpu.error->message(), HasSubstr("CPU"));
}

// A sanitizer's shadow is private memory, so there is no such limit under one.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ChildProcessTest, AMemoryLimitIsItsOwnEnd) {
  ChildSpec hungry = spec("child-memory");
  hungry.limits.data_bytes = uint64_t{256} << 20;
  hungry.max_output_bytes = 1 << 20;
  const ChildOutcome outcome = run(hungry);
  EXPECT_EQ(outcome.end, ChildEnd::kOutOfMemory);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kMemoryBudget);
  EXPECT_THAT(outcome.error->message(), HasSubstr("268435456"));
}
#endif

TEST_F(ChildProcessTest, AFloodIsCutOff) {
  ChildSpec loud = spec("child-flood");
  loud.max_output_bytes = 100'000;
  const ChildOutcome outcome = run(loud);
  EXPECT_EQ(outcome.end, ChildEnd::kInternalError);
  EXPECT_THAT(outcome.error->message(), HasSubstr("too much"));
}

TEST_F(ChildProcessTest, CancelKillsTheWholeGroup) {
  Witness witness;
  ChildSpec wanted = spec("child-orphan");
  wanted.limits.confine = false;
  wanted.descriptors = {witness.write.get()};
  ChildProcess child(wanted);
  wait_for(child, "log");
  child.cancel();
  EXPECT_EQ(run_to_end(child).end, ChildEnd::kCancelled);
  EXPECT_TRUE(witness.all_gone());
}

TEST_F(ChildProcessTest, OrphansOfTheGroupAreReaped) {
  become_subreaper();
  ChildSpec wanted = spec("child-orphan");
  wanted.limits.confine = false;
  {
    ChildProcess child(wanted);
    wait_for(child, "log");
    child.cancel();
    EXPECT_EQ(run_to_end(child).end, ChildEnd::kCancelled);
  }
  // Neither a process nor the remains of one is left to this one.
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ChildProcessTest, NothingOutlivesTheObject) {
  Witness witness;
  {
    ChildSpec wanted = spec("child-hang");
    wanted.descriptors = {witness.write.get()};
    ChildProcess child(wanted);
    wait_for(child, "log");
  }
  EXPECT_TRUE(witness.all_gone());
}

TEST_F(ChildProcessTest, TheEndOfTheLifeLineEndsTheChild) {
  ChildProcess child(spec("child-hang"));
  wait_for(child, "log");
  child.close_life_line();
  EXPECT_EQ(run_to_end(child).end, ChildEnd::kInternalError);
}

TEST_F(ChildProcessTest, TheDeathOfTheParentEndsTheChild) {
  Witness witness;
  ChildSpec wanted = spec("child-dying-parent");
  wanted.limits.open_files = 0;
  wanted.limits.confine = false;
  wanted.descriptors = {witness.write.get()};
  const ChildOutcome outcome = run(wanted);
  EXPECT_EQ(outcome.end, ChildEnd::kSignal);
  EXPECT_TRUE(witness.all_gone());
}

TEST_F(ChildProcessTest, TheWallsHold) {
  Events events;
  const storage::TemporaryFolder outside;
  const std::string file = outside.path() + "/catalog";
  write_file(file, "what is kept");
  ChildSpec walled = spec("child-walls", {file});
  walled.limits.kind = ChildKind::kImport;
  walled.limits.data_bytes = uint64_t{1} << 30;
  const ChildOutcome outcome = run(walled, &events);
  ASSERT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
  const Json result = parse_json(outcome.result);
  EXPECT_EQ(result.at("thread"), 0);
  EXPECT_EQ(result.at("inside"), 0);
  const std::string walls = events.at(0).second;
  RecordProperty("walls", walls);
  EXPECT_EQ(read_file(file), "what is kept");
  if (confinement_from_text(parse_json(walls).get<std::string>()).landlock != 0) {
    EXPECT_EQ(result.at("outside"), EACCES);
  }
  const bool filtered = walls.find("seccomp=1") != std::string::npos;
  EXPECT_EQ(filtered, kernel_has_seccomp()) << walls;
  for (const char* wall : {"socket", "exec", "kill", "fork", "setsid", "truncate", "chmod", "setxattr",
                           "unlink", "rename", "link"}) {
    if (filtered) {
      EXPECT_EQ(result.at(wall), EPERM) << wall;
    }
  }
}

TEST_F(ChildProcessTest, APriorityIsLoweredAndNeverRaised) {
  const auto of_child = [&](const char* parent, const char* wanted) {
    ChildSpec low = spec("child-low-parent", {parent, wanted});
    low.limits.nice = 0;
    low.limits.confine = false;
    low.limits.open_files = 0;
    const ChildOutcome outcome = run(low);
    EXPECT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
    return outcome.result;
  };
  EXPECT_EQ(of_child("15", "5"), "15");
  EXPECT_EQ(of_child("15", "0"), "15");
  EXPECT_EQ(of_child("15", "17"), "17");
}

TEST_F(ChildProcessTest, AChildWithoutFilesOpensNone) {
  ChildSpec closed = spec("child-walls");
  Events events;
  const ChildOutcome outcome = run(closed, &events);
  ASSERT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
  const bool filtered = events.at(0).second.find("seccomp=1") != std::string::npos;
  EXPECT_EQ(filtered, kernel_has_seccomp()) << events.at(0).second;
  if (filtered) {
    EXPECT_EQ(parse_json(outcome.result).at("inside"), EPERM);
    EXPECT_EQ(parse_json(outcome.result).at("outside"), EPERM);
  }
}

TEST_F(ChildProcessTest, WhoReadsOrRunsWhatAStrangerMadeHasABoundOfMemory) {
  for (const ChildKind kind : kChildKinds) {
    if (needs_of(kind) == 0) continue;
    ChildSpec unbounded = spec("child-echo");
    unbounded.limits.kind = kind;
    EXPECT_THROW(ChildProcess{unbounded}, InternalError) << child_kind_name(kind);
  }
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereIsAnError) {
  ChildSpec wrong = spec("child-echo");
  wrong.program = "/nowhere/program";
  EXPECT_ERROR(ChildProcess{wrong}, ErrorCode::kIo);
}

TEST(LimitsTest, TravelAsText) {
  const ChildLimits limits{1, 2, 3, 4, 5, false, ChildKind::kMeasure, true, 6};
  const ChildLimits back = limits_from_text(to_text(limits));
  EXPECT_EQ(to_text(back), to_text(limits));
  EXPECT_EQ(back.file_bytes, 3U);
  EXPECT_FALSE(back.confine);
  EXPECT_EQ(back.kind, ChildKind::kMeasure);
  EXPECT_TRUE(back.require_confinement);
  EXPECT_THROW(limits_from_text("1,2"), InternalError);
  EXPECT_THROW(limits_from_text("1,2,3,4,5,1,0,1,x"), InternalError);
  EXPECT_THROW(limits_from_text("1,2,3,4,5,1,99,1,0"), InternalError);
}

}  // namespace
}  // namespace tensormill::jobs
