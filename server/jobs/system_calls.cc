#include "server/jobs/system_calls.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace tensormill::jobs {
namespace {

/// The numbers after MADV_COLLAPSE; MADV_HWPOISON and its like, which harm the machine, are above.
constexpr uint64_t kLastHarmlessAdvice = 25;
constexpr uint64_t kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
/// Those of a thread, and those that make namespaces, observers or processes.
constexpr uint64_t kCloneFlagsThatMatter = kThreadFlags | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                           CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                                           CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD;

CallCondition masked(unsigned argument, uint64_t mask, uint64_t value) { return {argument, mask, value}; }
CallCondition without(unsigned argument, uint64_t bits) { return {argument, bits, 0}; }
CallCondition equals(unsigned argument, uint64_t value) { return {argument, ~uint64_t{0}, value}; }
/// Of an argument that the kernel takes for 32 bits, whatever is above them.
CallCondition equals_int(unsigned argument, uint32_t value) { return {argument, 0xffffffff, value}; }
CallCondition at_most(unsigned argument, uint64_t value) { return {argument, 0, value, true}; }

bool add_rule(scmp_filter_ctx filter, const CallRule& rule) {
  std::vector<scmp_arg_cmp> comparisons;
  for (const CallCondition& condition : rule.conditions) {
    comparisons.push_back(
        condition.at_most
            ? scmp_arg_cmp{condition.argument, SCMP_CMP_LE, condition.value, 0}
            : scmp_arg_cmp{condition.argument, SCMP_CMP_MASKED_EQ, condition.mask, condition.value});
  }
  const uint32_t action = rule.absent ? SCMP_ACT_ERRNO(ENOSYS) : SCMP_ACT_ALLOW;
  return seccomp_rule_add_array(filter, action, rule.number, static_cast<unsigned>(comparisons.size()),
                                comparisons.data()) == 0;
}

}  // namespace

std::vector<CallRule> call_rules() {
  const auto own_process = static_cast<uint32_t>(::getpid());
  return {
#define TM_CALL(name, needs, ...) {#name, SCMP_SYS(name), needs, {__VA_ARGS__}},
#define TM_CALL_ABSENT(name, number) {#name, number, 0, {}, true},
#include "server/jobs/system_calls.def"
#undef TM_CALL
#undef TM_CALL_ABSENT
#if defined(__SANITIZE_ADDRESS__)
    // The check of virtual tables asks a pipe which memory can be read.
    {"pipe2", SCMP_SYS(pipe2), 0, {}},
#endif
  };
}

bool has_call_filters() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool filter_system_calls(ChildKind kind) {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)),
                                                                &seccomp_release);
  if (!filter) return false;
  // Threads that are there already, too. Calls by the numbers of another interface (i386, x32) are no
  // mistake.
  if (seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) != 0 ||
      seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0)
    return false;
  // Of many rows, a search in a tree.
  (void)seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  for (const CallRule& rule : call_rules()) {
    const bool wanted = rule.needs == 0 || (rule.needs & needs_of(kind)) != 0;
    if (wanted && rule.number >= 0 && !add_rule(filter.get(), rule)) return false;
  }
  return seccomp_load(filter.get()) == 0;
}

}  // namespace tensormill::jobs
