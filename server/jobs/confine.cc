#include "server/jobs/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::jobs {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

void set_limit(__rlimit_resource resource, uint64_t value, const char* name, uint64_t grace = 0) {
  const rlimit limit{value, value + grace};
  if (::setrlimit(resource, &limit) != 0) throw_errno(errno, std::string("cannot limit ") + name);
}

void set_limits(const ChildLimits& limits) {
  set_limit(RLIMIT_CORE, 0, "core dumps");
  if (limits.data_bytes != 0 && !kSanitized) set_limit(RLIMIT_DATA, limits.data_bytes, "memory");
  // At the soft limit comes SIGXCPU, which says why; at the hard one SIGKILL.
  if (limits.cpu_seconds != 0) set_limit(RLIMIT_CPU, limits.cpu_seconds, "CPU time", 1);
  if (limits.file_bytes != 0) set_limit(RLIMIT_FSIZE, limits.file_bytes, "file size");
  if (limits.open_files != 0) set_limit(RLIMIT_NOFILE, limits.open_files, "open files");
}

/// What no child needs. io_uring is here because it does file and socket work past any filter.
constexpr int kForbidden[] = {SCMP_SYS(socket),
                              SCMP_SYS(socketpair),
                              SCMP_SYS(connect),
                              SCMP_SYS(accept),
                              SCMP_SYS(accept4),
                              SCMP_SYS(bind),
                              SCMP_SYS(listen),
                              SCMP_SYS(execve),
                              SCMP_SYS(execveat),
                              SCMP_SYS(fork),
                              SCMP_SYS(vfork),
                              SCMP_SYS(ptrace),
                              SCMP_SYS(kill),
                              SCMP_SYS(tkill),
                              SCMP_SYS(rt_sigqueueinfo),
                              SCMP_SYS(pidfd_open),
                              SCMP_SYS(pidfd_getfd),
                              SCMP_SYS(pidfd_send_signal),
                              SCMP_SYS(process_vm_readv),
                              SCMP_SYS(process_vm_writev),
                              SCMP_SYS(setsid),
                              SCMP_SYS(setpgid),
                              SCMP_SYS(setuid),
                              SCMP_SYS(setgid),
                              SCMP_SYS(setreuid),
                              SCMP_SYS(setregid),
                              SCMP_SYS(setresuid),
                              SCMP_SYS(setresgid),
                              SCMP_SYS(setgroups),
                              SCMP_SYS(capset),
                              SCMP_SYS(mount),
                              SCMP_SYS(umount2),
                              SCMP_SYS(pivot_root),
                              SCMP_SYS(chroot),
                              SCMP_SYS(unshare),
                              SCMP_SYS(setns),
                              SCMP_SYS(bpf),
                              SCMP_SYS(perf_event_open),
                              SCMP_SYS(userfaultfd),
                              SCMP_SYS(keyctl),
                              SCMP_SYS(add_key),
                              SCMP_SYS(request_key),
                              SCMP_SYS(io_uring_setup),
                              SCMP_SYS(open_by_handle_at),
                              SCMP_SYS(mknod),
                              SCMP_SYS(mknodat),
                              SCMP_SYS(setrlimit),
                              SCMP_SYS(init_module),
                              SCMP_SYS(finit_module),
                              SCMP_SYS(delete_module),
                              SCMP_SYS(kexec_load),
                              SCMP_SYS(reboot),
                              SCMP_SYS(shmget),
                              SCMP_SYS(msgget),
                              SCMP_SYS(semget),
                              SCMP_SYS(sched_setaffinity),
                              SCMP_SYS(process_madvise)};

/// What opens or changes names; forbidden to a child that works on descriptors alone.
constexpr int kFileCalls[] = {SCMP_SYS(open),      SCMP_SYS(openat),
                              SCMP_SYS(openat2),   SCMP_SYS(creat),
                              SCMP_SYS(rename),    SCMP_SYS(renameat),
                              SCMP_SYS(renameat2), SCMP_SYS(unlink),
                              SCMP_SYS(unlinkat),  SCMP_SYS(mkdir),
                              SCMP_SYS(mkdirat),   SCMP_SYS(rmdir),
                              SCMP_SYS(link),      SCMP_SYS(linkat),
                              SCMP_SYS(symlink),   SCMP_SYS(symlinkat),
                              SCMP_SYS(chdir),     SCMP_SYS(fchdir),
                              SCMP_SYS(chmod),     SCMP_SYS(fchmodat),
                              SCMP_SYS(truncate),  SCMP_SYS(name_to_handle_at)};

bool add_rules(scmp_filter_ctx filter, const ChildLimits& limits) {
  bool ok = true;
  const auto forbid = [&](int call) {
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0) == 0;
  };
  for (const int call : kForbidden) forbid(call);
  if (!limits.files) {
    for (const int call : kFileCalls) forbid(call);
  }
  // Threads yes, processes no. The C library falls back to clone when clone3, whose flags no filter can see,
  // is not there.
  ok = ok && seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
  ok = ok && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)) == 0;
  // Reading its own limits is what thread creation does; setting them is not.
  ok = ok &&
       seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_NE, 0)) == 0;
  // abort() signals its own thread group; nobody else's.
  ok = ok && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1,
                              SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(::getpid()))) == 0;
  return ok;
}

bool load_seccomp(const ChildLimits& limits) {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(seccomp_init(SCMP_ACT_ALLOW),
                                                                &seccomp_release);
  if (!filter) return false;
  // All threads, those that watch the parent included.
  if (seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) != 0) return false;
  return add_rules(filter.get(), limits) && seccomp_load(filter.get()) == 0;
}

/// Only the current folder stays open to path names. Version 1 of the interface is enough: what it lacks
/// (moving files between folders, truncating) has no target outside.
bool load_landlock() {
  constexpr uint64_t kAllAccess = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kAllAccess;
  const FileDescriptor ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  if (!ruleset.valid()) return false;
  const FileDescriptor folder(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return false;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = kAllAccess & ~uint64_t{LANDLOCK_ACCESS_FS_EXECUTE};
  rule.parent_fd = folder.get();
  if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return false;
  return ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0;
}

}  // namespace

void lower_priority(pid_t process, int nice) {
  errno = 0;
  const int present = ::getpriority(PRIO_PROCESS, static_cast<id_t>(process));
  if (errno == ESRCH) return;
  if (errno != 0) throw_errno(errno, "cannot read the priority");
  if (nice <= present || ::setpriority(PRIO_PROCESS, static_cast<id_t>(process), nice) == 0) return;
  if (errno != ESRCH) throw_errno(errno, "cannot lower the priority");
}

Confinement confine(const ChildLimits& limits) {
  Confinement result;
  // Signals sent by the kernel itself pass the filter below.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw_errno(errno, "cannot tie the child to its parent");
  lower_priority(0, limits.nice);
  set_limits(limits);
  result.memory_limit = limits.data_bytes != 0 && !kSanitized;
  if (!limits.confine) return result;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno(errno, "cannot give up privileges");
  // Landlock binds threads that are made later; the filter below binds all.
  result.landlock = load_landlock();
  result.seccomp = load_seccomp(limits);
  return result;
}

std::string to_text(const Confinement& confinement) {
  return std::string("memory_limit=") + (confinement.memory_limit ? "1" : "0") +
         " seccomp=" + (confinement.seccomp ? "1" : "0") + " landlock=" + (confinement.landlock ? "1" : "0");
}

}  // namespace tensormill::jobs
