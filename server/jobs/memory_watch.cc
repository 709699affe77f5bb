#include "server/jobs/memory_watch.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/base/error.h"

namespace tensormill::jobs {
namespace {

/// The number after `name` at the start of a line, which is in KiB.
uint64_t kibibytes(const std::string& line, std::string_view name) {
  if (line.compare(0, name.size(), name) != 0) return 0;
  const size_t digit = line.find_first_of("0123456789", name.size());
  uint64_t value = 0;
  if (digit != std::string::npos) std::from_chars(line.data() + digit, line.data() + line.size(), value);
  return value << 10;
}

/// What the lines of a file of /proc say that begin with these names; zeros for a process that has ended.
template <size_t kNames>
std::array<uint64_t, kNames> read_lines(const std::string& path, const std::string_view (&names)[kNames]) {
  std::array<uint64_t, kNames> values{};
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    for (size_t i = 0; i < kNames; ++i) values[i] += kibibytes(line, names[i]);
  }
  return values;
}

/// While it lives this thread looks at files as that user: the kernel shows what a process has open to its
/// own user, or to who has CAP_SYS_PTRACE. It takes CAP_SETUID and CAP_SETGID, without which no child has a
/// user of its own.
class LookAs {
public:
  explicit LookAs(uint32_t user) : is_other_(user != 0) {
    was_dumpable();  // before the first change
    if (!is_other_) return;
    group_ = ::setfsgid(user);
    user_ = ::setfsuid(user);
  }
  ~LookAs() {
    if (!is_other_) return;
    ::setfsuid(static_cast<uid_t>(user_));
    ::setfsgid(static_cast<gid_t>(group_));
    // The kernel forgets it at each change.
    ::prctl(PR_SET_DUMPABLE, was_dumpable());
  }
  LookAs(const LookAs&) = delete;
  LookAs& operator=(const LookAs&) = delete;

private:
  static int was_dumpable() {
    static const int is_dumpable = ::prctl(PR_GET_DUMPABLE);
    return is_dumpable;
  }
  const bool is_other_;
  int user_ = 0;
  int group_ = 0;
};

uint64_t stored_bytes(const struct stat& status) { return static_cast<uint64_t>(status.st_blocks) * 512; }

}  // namespace

MemoryWatch::MemoryWatch(uint64_t limit_bytes, std::span<const int> given, uint32_t user)
    : limit_bytes_(limit_bytes), user_(user) {
  for (const int fd : given) {
    // Only what lies in memory has seals to ask for.
    if (::fcntl(fd, F_GET_SEALS) < 0) continue;
    struct stat status {};
    FileDescriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid() || ::fstat(fd, &status) != 0) throw_errno(errno, "cannot keep a memory file");
    if (given_ids_.emplace(status.st_dev, status.st_ino).second) given_.push_back(std::move(copy));
  }
  given_at_start_ = given_bytes();
}

uint64_t MemoryWatch::given_bytes() const {
  uint64_t bytes = 0;
  for (const FileDescriptor& file : given_) {
    struct stat status {};
    if (::fstat(file.get(), &status) == 0) bytes += stored_bytes(status);
  }
  return bytes;
}

/// Memory files that it has made itself, mapped or not.
uint64_t MemoryWatch::own_memory_files(pid_t process) const {
  namespace fs = std::filesystem;
  std::error_code gone;  // the process may end meanwhile
  std::set<FileId> seen;
  uint64_t bytes = 0;
  fs::directory_iterator entry("/proc/" + std::to_string(process) + "/fd", gone);
  for (; !gone && entry != fs::directory_iterator(); entry.increment(gone)) {
    std::error_code closed;
    const std::string target = fs::read_symlink(entry->path(), closed).string();
    struct stat status {};
    if (closed || !target.starts_with("/memfd:") || ::stat(entry->path().c_str(), &status) != 0) continue;
    const FileId id{status.st_dev, status.st_ino};
    if (!given_ids_.contains(id) && seen.insert(id).second) bytes += stored_bytes(status);
  }
  return bytes;
}

uint64_t MemoryWatch::held(pid_t process) const {
  const std::string folder = "/proc/" + std::to_string(process);
  const LookAs looking(user_);
  const uint64_t given = given_bytes();
  const uint64_t grown = given > given_at_start_ ? given - given_at_start_ : 0;
  const auto status = read_lines(folder + "/status", {"RssAnon:", "VmSwap:", "VmPTE:", "RssShmem:"});
  // What is mapped of the given files counts as their growth; of its own, as what it has mapped or made.
  const auto sum = [&](uint64_t own, uint64_t in_shared) {
    const uint64_t mapped = in_shared > given ? in_shared - given : 0;
    return own + status[2] + grown + std::max(mapped, own_memory_files(process));
  };
  const uint64_t rough = sum(status[0] + status[1], status[3]);
  if (rough <= limit_bytes_) return rough;
  // Pages that are mapped twice count twice there. This count is exact, and costs more.
  const auto exact = read_lines(folder + "/smaps_rollup", {"Pss_Anon:", "SwapPss:", "Pss_Shmem:"});
  return exact[0] + exact[2] == 0 ? rough : sum(exact[0] + exact[1], exact[2]);
}

bool MemoryWatch::is_past(pid_t process) const { return held(process) > limit_bytes_; }

}  // namespace tensormill::jobs
