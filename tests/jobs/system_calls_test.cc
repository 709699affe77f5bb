// What children of each kind may ask of the kernel: every number is tried from inside, with arguments that
// the rules name and with others; so are the calls by which a child could reach files, processes or the
// machine.
#include "server/jobs/system_calls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <set>

#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "server/jobs/child_process.h"
#include "tests/jobs/probe.h"
#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
/// Number and five arguments.
using Call = std::array<uint64_t, 6>;

constexpr int kNumbers = 1024;  // the kernel's end below 500

class SystemCallsTest : public testing::Test {
protected:
  void SetUp() override {
    if (!has_call_filters()) GTEST_SKIP() << "this kernel takes no filters of system calls";
  }
  ChildSpec spec(const std::string& command, ChildKind kind) const {
    ChildSpec spec;
    spec.command = command;
    spec.folder = folder_.path();
    spec.limits.kind = kind;
    spec.limits.data_bytes = uint64_t{1} << 30;
    return spec;
  }
  static ChildOutcome run(const ChildSpec& spec) {
    ChildProcess child(spec);
    while (true) {
      const auto outcome = child.poll(seconds(60), [](const std::string&, const std::string&) {});
      if (outcome) return *outcome;
    }
  }
  /// The errno of each call; none of them is made.
  std::vector<int> probe(ChildKind kind, const std::vector<Call>& calls) const {
    const FileDescriptor file = memory_file("calls", Json(calls).dump());
    ChildSpec wanted = spec("child-probe", kind);
    wanted.descriptors = {file.get()};
    const ChildOutcome outcome = run(wanted);
    EXPECT_EQ(outcome.end, ChildEnd::kOk) << outcome.error->what();
    return parse_json(outcome.result).get<std::vector<int>>();
  }

  storage::TemporaryFolder folder_;
};

bool holds(const CallCondition& condition, const Call& call) {
  const uint64_t value = call[condition.argument + 1];
  return condition.at_most ? value <= condition.value : (value & condition.mask) == condition.value;
}

/// What the table says of a call.
int expected(const std::vector<CallRule>& rules, ChildKind kind, const Call& call) {
  for (const CallRule& rule : rules) {
    if (rule.number < 0 || static_cast<uint64_t>(rule.number) != call[0]) continue;
    if (rule.absent) return ENOSYS;
    if (rule.needs != 0 && (rule.needs & needs_of(kind)) == 0) continue;
    const auto& all = rule.conditions;
    if (std::all_of(all.begin(), all.end(), [&](const auto& one) { return holds(one, call); }))
      return kPassed;
  }
  return EPERM;
}

/// uretprobe and uprobe of newer kernels, which no filter sees: they are for the kernel's own trampolines,
/// and end whoever else calls them.
bool is_probes_own(uint64_t number) {
#if defined(__x86_64__)
  return number == 335 || number == 336;
#else
  return number >= kNumbers;
#endif
}

/// Every number without arguments; for each rule with conditions, arguments that meet all of them and such
/// that miss one by one bit.
std::vector<Call> calls_to_try(const std::vector<CallRule>& rules) {
  std::vector<Call> calls;
  for (uint64_t number = 0; number < kNumbers; ++number) {
    if (!is_probes_own(number)) calls.push_back({number});
  }
  for (const CallRule& rule : rules) {
    if (rule.number < 0) continue;
    Call met = {static_cast<uint64_t>(rule.number)};
    for (const CallCondition& condition : rule.conditions) met[condition.argument + 1] = condition.value;
    calls.push_back(met);
    for (const CallCondition& condition : rule.conditions) {
      for (int bit = 0; bit < 64; ++bit) {
        Call other = met;
        other[condition.argument + 1] ^= uint64_t{1} << bit;
        calls.push_back(other);
      }
      Call other = met;
      other[condition.argument + 1] = ~uint64_t{0};
      calls.push_back(other);
    }
  }
  return calls;
}

TEST_F(SystemCallsTest, EachKindGetsWhatTheTableSaysAndNothingElse) {
  for (const ChildKind kind : kChildKinds) {
    SCOPED_TRACE(child_kind_name(kind));
    std::vector<CallRule> rules = call_rules();
    // The number of the child, which the rule about signals names, is not this process's.
    std::erase_if(rules, [](const CallRule& rule) { return rule.name == "tgkill"; });
    std::vector<Call> calls = calls_to_try(rules);
    std::erase_if(calls, [](const Call& call) { return call[0] == SYS_tgkill; });
    const std::vector<int> answers = probe(kind, calls);
    ASSERT_EQ(answers.size(), calls.size());
    int passed = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      passed += answers[i] == kPassed ? 1 : 0;
      EXPECT_EQ(answers[i], expected(rules, kind, calls[i])) << Json(calls[i]);
    }
    EXPECT_GT(passed, 40);
  }
}

#define TM_NUMBERS(...) \
  { __VA_ARGS__ }
/// By them a child would reach beyond itself: files by name, processes, users, the machine. Not one is
/// anybody's.
const std::vector<int> kNobodys = TM_NUMBERS(
    SCMP_SYS(truncate), SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), 452 /* fchmodat2 */,
    SCMP_SYS(chown), SCMP_SYS(fchown), SCMP_SYS(lchown), SCMP_SYS(fchownat), SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr), SCMP_SYS(fsetxattr), SCMP_SYS(removexattr), SCMP_SYS(fremovexattr),
    463 /* setxattrat */, 466 /* removexattrat */, 469 /* file_setattr */, SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rmdir),
    SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(symlink), SCMP_SYS(symlinkat), SCMP_SYS(mknod),
    SCMP_SYS(mknodat), SCMP_SYS(creat), SCMP_SYS(utimensat), SCMP_SYS(utimes), SCMP_SYS(futimesat),
    SCMP_SYS(fallocate), SCMP_SYS(flock), SCMP_SYS(chdir), SCMP_SYS(fchdir), SCMP_SYS(chroot),
    SCMP_SYS(umask), SCMP_SYS(name_to_handle_at), SCMP_SYS(open_by_handle_at), SCMP_SYS(inotify_init1),
    SCMP_SYS(fanotify_init), SCMP_SYS(quotactl), SCMP_SYS(quotactl_fd), SCMP_SYS(sync), SCMP_SYS(syncfs),
    SCMP_SYS(ioctl), SCMP_SYS(splice), SCMP_SYS(vmsplice), SCMP_SYS(tee), SCMP_SYS(sendfile),
    SCMP_SYS(copy_file_range),
    // processes
    SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo),
    SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal), SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
    SCMP_SYS(process_mrelease), SCMP_SYS(kcmp), SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork),
    SCMP_SYS(vfork), SCMP_SYS(setsid), SCMP_SYS(setpgid), SCMP_SYS(setpriority), SCMP_SYS(ioprio_set),
    SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr),
    SCMP_SYS(sched_setaffinity), SCMP_SYS(setrlimit), SCMP_SYS(timer_create), SCMP_SYS(setitimer),
    SCMP_SYS(personality), SCMP_SYS(move_pages), SCMP_SYS(migrate_pages), SCMP_SYS(mbind),
    SCMP_SYS(modify_ldt), SCMP_SYS(remap_file_pages), SCMP_SYS(pkey_mprotect), SCMP_SYS(mlock),
    SCMP_SYS(mlockall), SCMP_SYS(memfd_secret), SCMP_SYS(userfaultfd), SCMP_SYS(seccomp),
    // sockets and messages
    SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen),
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(sendto), SCMP_SYS(recvfrom), SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg), SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(semget), SCMP_SYS(msgget),
    SCMP_SYS(mq_open), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    SCMP_SYS(io_setup), SCMP_SYS(io_submit), SCMP_SYS(eventfd2), SCMP_SYS(signalfd4),
    SCMP_SYS(timerfd_create),
    // users and keys
    SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setreuid), SCMP_SYS(setregid), SCMP_SYS(setresuid),
    SCMP_SYS(setresgid), SCMP_SYS(setfsuid), SCMP_SYS(setfsgid), SCMP_SYS(setgroups), SCMP_SYS(capset),
    SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
    // the machine
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(move_mount),
    SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(mount_setattr),
    SCMP_SYS(pivot_root), SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(init_module), SCMP_SYS(finit_module),
    SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot),
    SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(syslog), SCMP_SYS(acct), SCMP_SYS(swapon),
    SCMP_SYS(swapoff), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(vhangup), SCMP_SYS(lookup_dcookie));

TEST_F(SystemCallsTest, CallsThatReachBeyondTheChildAreNobodys) {
  std::vector<Call> calls;
  for (const int number : kNobodys) {
    if (number < 0) continue;  // not on this machine
    calls.push_back({static_cast<uint64_t>(number)});
    calls.push_back({static_cast<uint64_t>(number), 1, 2, 3, 4, 5});
    calls.push_back(
        {static_cast<uint64_t>(number), ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0});
  }
  for (const ChildKind kind : kChildKinds) {
    const std::vector<int> answers = probe(kind, calls);
    for (size_t i = 0; i < calls.size(); ++i)
      EXPECT_EQ(answers[i], EPERM) << child_kind_name(kind) << " " << Json(calls[i]);
  }
}

TEST_F(SystemCallsTest, OfCallsWithManyUsesOnlyTheHarmlessOnesPass) {
  std::vector<Call> calls = {
      {SYS_fcntl, 0, F_SETOWN, 1},
      {SYS_fcntl, 0, F_SETOWN_EX, 1},
      {SYS_fcntl, 0, F_SETSIG, SIGKILL},
      {SYS_fcntl, 0, F_SETFL, O_ASYNC},
      {SYS_fcntl, 0, F_SETLK, 0},
      {SYS_fcntl, 0, F_SETLEASE, F_WRLCK},
      {SYS_fcntl, 0, F_NOTIFY, 0},
      {SYS_fcntl, 0, F_SETPIPE_SZ, 1 << 20},
      {SYS_fcntl, 0, F_ADD_SEALS, F_SEAL_WRITE},
      {SYS_ioctl, 0, TIOCSTI, 0},
      {SYS_ioctl, 0, FIONBIO, 0},
      {SYS_prlimit64, 0, RLIMIT_NOFILE, 1, 0},
      {SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 1},
      {SYS_tgkill, 1, 1, SIGKILL},
      {SYS_clone, SIGCHLD},
      {SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD},
      {SYS_clone, CLONE_NEWUSER | SIGCHLD},
      {SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET},
      {SYS_madvise, 0, 4096, 100 /* MADV_HWPOISON */},
      {SYS_madvise, 0, 4096, 101 /* MADV_SOFT_OFFLINE */},
      {SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 0},
      {SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, 5}};
  for (uint64_t option = 0; option < 100; ++option) {
    if (option != PR_SET_NAME) calls.push_back({SYS_prctl, option, 1});
  }
  for (const ChildKind kind : kChildKinds) {
    SCOPED_TRACE(child_kind_name(kind));
    const std::vector<int> answers = probe(kind, calls);
    for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(answers[i], EPERM) << Json(calls[i]);
    const int executable = (needs_of(kind) & kRunsCode) != 0 ? kPassed : EPERM;
    const int named = (needs_of(kind) & (kMakesFiles | kLinks)) != 0 ? kPassed : EPERM;
    EXPECT_EQ(probe(kind, {{SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, 0},
                           {SYS_mprotect, 4096, 4096, PROT_READ | PROT_EXEC},
                           {SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 5},
                           {SYS_openat, 0, 0, 0},
                           {SYS_clone3, 0, 0},
                           {SYS_futex, 0, 0}}),
              (std::vector<int>{executable, executable, EPERM, named, ENOSYS, kPassed}));
  }
}

#if defined(__x86_64__)
TEST_F(SystemCallsTest, ACallByAnotherInterfaceEndsTheChild) {
  for (const ChildKind kind : kChildKinds) {
    for (const char* const command : {"child-call-i386", "child-call-x32"}) {
      const ChildOutcome outcome = run(spec(command, kind));
      EXPECT_EQ(outcome.end, ChildEnd::kSignal) << command;
      EXPECT_EQ(outcome.signal, SIGSYS) << command;
    }
  }
}
#endif

}  // namespace
}  // namespace tensormill::jobs
