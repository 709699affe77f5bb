#include "server/jobs/memory_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
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

struct Resident {
  uint64_t anonymous = 0;  ///< private
  uint64_t shared = 0;     ///< mapped: shared anonymous memory and memory files
};

/// The number after `name` at the start of a line, which is in KiB.
uint64_t kibibytes(const std::string& line, std::string_view name) {
  if (line.compare(0, name.size(), name) != 0) return 0;
  const size_t digit = line.find_first_of("0123456789", name.size());
  uint64_t value = 0;
  if (digit != std::string::npos) std::from_chars(line.data() + digit, line.data() + line.size(), value);
  return value << 10;
}

/// Sums of the lines of a file of /proc that begin with these names; zeros for a process that has ended.
Resident read_resident(const std::string& path, std::string_view anonymous, std::string_view shared) {
  Resident resident;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    resident.anonymous += kibibytes(line, anonymous);
    resident.shared += kibibytes(line, shared);
  }
  return resident;
}

uint64_t stored_bytes(const struct stat& status) { return static_cast<uint64_t>(status.st_blocks) * 512; }

}  // namespace

MemoryWatch::MemoryWatch(uint64_t limit_bytes, std::span<const int> given) : limit_bytes_(limit_bytes) {
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

/// Memory files that it has made itself, mapped or not. A process of another user shows them to few; then
/// what is mapped counts.
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
  const uint64_t given = given_bytes();
  const uint64_t grown = given > given_at_start_ ? given - given_at_start_ : 0;
  // What is mapped of the given files counts as their growth; of its own, as what it has mapped or made.
  const auto sum = [&](const Resident& resident) {
    const uint64_t mapped = resident.shared > given ? resident.shared - given : 0;
    return resident.anonymous + grown + std::max(mapped, own_memory_files(process));
  };
  const uint64_t rough = sum(read_resident(folder + "/status", "RssAnon:", "RssShmem:"));
  if (rough <= limit_bytes_) return rough;
  // Pages that are mapped twice count twice there. This count is exact, costs more, and is shown to the same
  // user.
  const Resident exact = read_resident(folder + "/smaps_rollup", "Pss_Anon:", "Pss_Shmem:");
  return exact.anonymous + exact.shared == 0 ? rough : sum(exact);
}

bool MemoryWatch::is_past(pid_t process) const { return held(process) > limit_bytes_; }

}  // namespace tensormill::jobs
