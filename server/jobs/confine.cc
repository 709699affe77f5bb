#include "server/jobs/confine.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "runtime/base/error.h"
#include "server/jobs/landlock.h"
#include "server/jobs/system_calls.h"

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

using CapabilityData = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

__user_cap_header_struct capability_header() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

bool has_capability(const CapabilityData& data, unsigned number) {
  return (data[number / 32].effective & (1u << (number % 32))) != 0;
}

void give_up_capabilities() {
  __user_cap_header_struct header = capability_header();
  const CapabilityData none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) throw_errno(errno, "cannot give up capabilities");
}

void become(uint32_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
      ::setresuid(user, user, user) != 0)
    throw_errno(errno, "cannot become user " + std::to_string(user));
  // The change makes /proc/self the parent's user's, and the linker names its descriptors by it.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) throw_errno(errno, "cannot open /proc/self");
}

/// Whether a map of /proc/self (first inside, first outside, count) has the number: a namespace may know few.
bool is_mapped(const char* path, uint32_t number) {
  std::ifstream map(path);
  uint64_t inside = 0, outside = 0, count = 0;
  while (map >> inside >> outside >> count) {
    if (number >= inside && number - inside < count) return true;
  }
  return false;
}

bool may_set_groups() {
  std::ifstream file("/proc/self/setgroups");
  std::string word;
  return !(file >> word) || word == "allow";
}

/// The value after "NAME=".
uint32_t value_of(std::string_view text, std::string_view name) {
  const std::string key = std::string(name) + "=";
  const size_t found = text.find(key);
  TM_CHECK(found != std::string_view::npos, "this is no confinement: " + std::string(text));
  uint32_t value = 0;
  const char* const start = text.data() + found + key.size();
  const auto [end, code] = std::from_chars(start, text.data() + text.size(), value);
  TM_CHECK(code == std::errc() && end != start, "this is no confinement: " + std::string(text));
  return value;
}

}  // namespace

std::string to_text(const Confinement& confinement) {
  return std::string("memory_limit=") + (confinement.memory_limit ? "1" : "0") +
         " seccomp=" + (confinement.seccomp ? "1" : "0") +
         " landlock=" + std::to_string(confinement.landlock) + " user=" + std::to_string(confinement.user);
}

Confinement confinement_from_text(std::string_view text) {
  return {value_of(text, "memory_limit") != 0, value_of(text, "seccomp") != 0,
          static_cast<int>(value_of(text, "landlock")), value_of(text, "user")};
}

std::string missing_wall(ChildKind kind, const Confinement& confinement) {
  if (!confinement.seccomp) return "seccomp";
  const bool opens_files = (needs_of(kind) & (kMakesFiles | kLinks)) != 0;
  return opens_files && confinement.landlock == 0 ? "landlock" : "";
}

uint32_t usable_child_user(uint32_t wanted) {
  if (wanted == 0 || ::geteuid() != 0) return 0;
  __user_cap_header_struct header = capability_header();
  CapabilityData data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return 0;
  for (const unsigned needed : {CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN, CAP_DAC_OVERRIDE}) {
    if (!has_capability(data, needed)) return 0;
  }
  const bool known = is_mapped("/proc/self/uid_map", wanted) && is_mapped("/proc/self/gid_map", wanted);
  return known && may_set_groups() ? wanted : 0;
}

Confinement expected_confinement(const ChildPolicy& policy) {
  return {!kSanitized, has_call_filters(), landlock_version(), policy.user};
}

void lower_priority(pid_t process, int nice) {
  errno = 0;
  const int present = ::getpriority(PRIO_PROCESS, static_cast<id_t>(process));
  if (errno == ESRCH) return;
  if (errno != 0) throw_errno(errno, "cannot read the priority");
  if (nice <= present || ::setpriority(PRIO_PROCESS, static_cast<id_t>(process), nice) == 0) return;
  if (errno != ESRCH && errno != EPERM) throw_errno(errno, "cannot lower the priority");
}

Confinement confine(const ChildLimits& limits) {
  Confinement result;
  lower_priority(0, limits.nice);
  set_limits(limits);
  result.memory_limit = limits.data_bytes != 0 && !kSanitized;
  if (limits.confine) {
    if (limits.user != 0) {
      become(limits.user);
      result.user = limits.user;
    }
    give_up_capabilities();
  }
  // A change of user would undo it. Signals that the kernel sends pass the filter below.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw_errno(errno, "cannot tie the child to its parent");
  if (!limits.confine) return result;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno(errno, "cannot give up privileges");
  result.landlock = restrict_path_names((needs_of(limits.kind) & kMakesFiles) != 0);
  result.seccomp = filter_system_calls(limits.kind);
  const std::string missing = missing_wall(limits.kind, result);
  if (limits.require_confinement && !missing.empty()) {
    throw Error(
        ErrorCode::kNotSupported,
        "this kernel has no " + missing + ", and jobs.require_confinement is set: the work was not begun");
  }
  return result;
}

}  // namespace tensormill::jobs
