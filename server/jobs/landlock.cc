#include "server/jobs/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/file.h"

namespace tensormill::jobs {
namespace {

// The kernel's interface, which only grows: the system's header may be older than the kernel.
struct Ruleset {
  uint64_t files = 0;
  uint64_t net = 0;     ///< from version 4
  uint64_t scopes = 0;  ///< from version 6
};

constexpr uint64_t kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3, kMakeFolder = 1 << 7,
                   kMakeFile = 1 << 8, kTruncate = 1 << 14;
/// Rights on files that version 1, 2 … know: the first 13; moving between folders; truncating; ioctl on
/// devices.
constexpr std::array<uint64_t, 5> kFileRights = {(1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1,
                                                 (1 << 16) - 1};
constexpr uint64_t kBindAndConnect = 3;
constexpr uint64_t kAbstractSocketsAndSignals = 3;

Ruleset ruleset_of(int version) {
  Ruleset rules;
  rules.files = kFileRights[std::min(static_cast<size_t>(version), kFileRights.size()) - 1];
  if (version >= 4) rules.net = kBindAndConnect;
  if (version >= 6) rules.scopes = kAbstractSocketsAndSignals;
  return rules;
}

/// A kernel refuses a structure that is longer than it knows, unless the rest is zero; so none is sent.
size_t size_of(int version) {
  if (version >= 6) return sizeof(Ruleset);
  return version >= 4 ? offsetof(Ruleset, scopes) : offsetof(Ruleset, net);
}

bool open_folder(int ruleset, uint64_t handled) {
  const FileDescriptor folder(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return false;
  landlock_path_beneath_attr rule{};
  rule.allowed_access =
      handled & (kWriteFile | kReadFile | kReadFolder | kMakeFolder | kMakeFile | kTruncate);
  rule.parent_fd = folder.get();
  return ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : static_cast<int>(version);
}

int restrict_path_names(bool in_folder) {
  const int version = landlock_version();
  if (version == 0) return 0;
  const Ruleset rules = ruleset_of(version);
  const FileDescriptor ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size_of(version), 0)));
  if (!ruleset.valid()) return 0;
  if (in_folder && !open_folder(ruleset.get(), rules.files)) return 0;
  return ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0 ? version : 0;
}

}  // namespace tensormill::jobs
