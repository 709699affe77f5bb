/// Control groups of children, by the kernel's own files: where a group of version 2 that bounds memory can
/// be made, it bounds; where none can, nothing is divided and the parent's watch bounds alone.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/base/file.h"
#include "server/jobs/child_cgroups.h"
#include "server/jobs/child_process.h"
#include "server/jobs/confine.h"
#include "tests/jobs/runners.h"

namespace tensormill::jobs::kernel_cgroups {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string membership() {
  std::ifstream file("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The path of this process' group of version 2 below where such groups are mounted alone; "" without one.
std::string own_group() {
  const std::string text = membership();
  const size_t line = text.starts_with("0::/") ? 0 : text.find("\n0::/");
  if (line == std::string::npos) return "";
  const size_t start = text.find("::/", line) + 2;
  const std::string path = text.substr(start, text.find('\n', start) - start);
  return "/sys/fs/cgroup" + (path == "/" ? "" : path);
}

/// A new group that bounds memory beside this process' own, or below the one of all; it goes with this.
class NewGroup {
public:
  static std::optional<std::string> make(CgroupFiles& files) {
    const std::string own = own_group();
    for (const std::string& parent : {own.substr(0, own.rfind('/')), own}) {
      const std::string path = parent + "/tensormill-test-" + std::to_string(::getpid());
      if (!parent.starts_with("/sys/fs/cgroup") || !files.make_group(path)) continue;
      if (!files.read(path + "/memory.max").empty()) return path;
      files.remove_group(path);
    }
    return std::nullopt;
  }
  NewGroup() : path_(make(*files_)) {}
  ~NewGroup() {
    if (!path_) return;
    files_->remove_group(*path_ + "/server");
    EXPECT_TRUE(files_->remove_group(*path_)) << *path_ << " stays";
  }
  NewGroup(const NewGroup&) = delete;
  NewGroup& operator=(const NewGroup&) = delete;
  /// Whether the calling process, which was alone nowhere, is alone in it now.
  bool enter() const { return path_ && files_->write(*path_ + "/cgroup.procs", std::to_string(::getpid())); }

private:
  const std::shared_ptr<CgroupFiles> files_ = system_cgroup_files();
  const std::optional<std::string> path_;
};

/// The status with which a process ends that does `body`; what it expects is told here.
int status_of(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process == 0) {
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(process, &status, 0);
  return status;
}

/// What becomes of a process of that group that takes 256 MiB of memory of the kind that no limit of its own
/// counts, and that nobody watches.
int status_of_eater(ChildCgroups::Group& group) {
  std::array<int, 2> line{};
  if (::pipe(line.data()) != 0) return -1;
  const FileDescriptor go(line[0]);
  FileDescriptor let_go(line[1]);
  const pid_t process = ::fork();
  if (process == 0) {
    char letter = 0;
    if (::read(go.get(), &letter, 1) != 1) ::_exit(2);
    void* const memory =
        ::mmap(nullptr, 256 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) ::_exit(2);
    std::memset(memory, 1, 256 * kMiB);
    ::_exit(0);
  }
  EXPECT_TRUE(group.add(process));
  EXPECT_EQ(::write(let_go.get(), "x", 1), 1);
  int status = -1;
  ::waitpid(process, &status, 0);
  return status;
}

void expect_the_kernel_ends_who_passes() {
  const auto cgroups = ChildCgroups::divide(system_cgroup_files(), membership());
  ASSERT_NE(cgroups, nullptr);
  const auto narrow = cgroups->make(64 * kMiB), wide = cgroups->make(1024 * kMiB);
  ASSERT_TRUE(narrow && wide);
  const int ended = status_of_eater(*narrow);
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL) << ended;
  EXPECT_TRUE(narrow->was_out_of_memory());
  EXPECT_EQ(status_of_eater(*wide), 0);
  EXPECT_FALSE(wide->was_out_of_memory());
}

/// That of a child which takes shared memory for ever, under a server's policy; the filter would refuse it.
ChildOutcome outcome_of_hungry(std::shared_ptr<ChildCgroups> cgroups) {
  ChildPolicy policy;
  policy.cgroups = std::move(cgroups);
  ChildSpec spec = child("child-shared-memory", {"mapped"});
  spec.limits.confine = false;
  spec.limits.data_bytes = 128 * kMiB;
  spec.policy = std::make_shared<const ChildPolicy>(policy);
  ChildProcess process(spec);
  std::optional<ChildOutcome> outcome;
  while (!outcome) outcome = process.poll(kPatience, [](const std::string&, const std::string&) {});
  return *std::move(outcome);
}

/// The caller shares its group with the test that started it: nobody's to divide, whatever the kernel has.
void expect_the_watch_ends_who_passes() {
  const std::string before = membership();
  const auto cgroups = ChildCgroups::divide(system_cgroup_files(), before);
  EXPECT_EQ(cgroups, nullptr);
  EXPECT_EQ(membership(), before);
  const ChildOutcome outcome = outcome_of_hungry(cgroups);
  EXPECT_EQ(outcome.end, ChildEnd::kOutOfMemory);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kMemoryBudget);
}

TEST(KernelCgroups, BoundAChildWhereTheyCanBeMade) {
  const NewGroup group;
  EXPECT_EQ(status_of([&] {
              if (group.enter()) {
                expect_the_kernel_ends_who_passes();
              } else {
                expect_the_watch_ends_who_passes();
              }
            }),
            0);
}

TEST(KernelCgroups, AProcessThatSharesItsGroupLeavesTheBoundToTheWatch) {
  EXPECT_EQ(status_of(expect_the_watch_ends_who_passes), 0);
}

}  // namespace
}  // namespace tensormill::jobs::kernel_cgroups
