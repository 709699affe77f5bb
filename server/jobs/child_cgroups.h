/// Control groups (version 2) of children: the kernel's own bound on everything that a child holds, shared
/// memory and memory files included, where this process' group is its own to divide. Thread-safety: all
/// methods from many threads; a Group belongs to one.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill::jobs {

/// The files of a hierarchy of groups. Methods return whether it worked, and never throw: a kernel that
/// refuses has groups of another owner, or none. Thread-safety: all methods from many threads.
class CgroupFiles {
public:
  virtual ~CgroupFiles() = default;
  /// "" where it cannot be read.
  virtual std::string read(const std::string& path) = 0;
  virtual bool write(const std::string& path, std::string_view text) = 0;
  /// True as well where it is there already.
  virtual bool make_group(const std::string& path) = 0;
  /// A group that is empty: its files go with it.
  virtual bool remove_group(const std::string& path) = 0;
  /// Names of the groups below.
  virtual std::vector<std::string> groups(const std::string& path) = 0;
};

/// Those of the kernel.
std::shared_ptr<CgroupFiles> system_cgroup_files();

class ChildCgroups {
public:
  /// A child's group. It must have ended, and been waited for, when this goes.
  class Group {
  public:
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    /// False where it could not be moved: it is bounded as without a group.
    bool add(pid_t process);
    /// Whether the kernel ended a process of it because of the bound.
    bool was_out_of_memory() const;

  private:
    friend class ChildCgroups;
    Group(std::shared_ptr<CgroupFiles> files, std::string path)
        : files_(std::move(files)), path_(std::move(path)) {}
    const std::shared_ptr<CgroupFiles> files_;
    const std::string path_;
  };

  /// Makes this process' group one that has groups below: the process moves to one named "server", since the
  /// kernel lets no group have both. Null, and all is as before, where the process has no group of version 2
  /// below `root`, others are in it, it has no bound of memory to give, or somebody else owns it.
  /// `membership`: the text of /proc/self/cgroup.
  static std::shared_ptr<ChildCgroups> divide(std::shared_ptr<CgroupFiles> files,
                                              const std::string& membership,
                                              const std::string& root = "/sys/fs/cgroup");
  /// With the bound `memory_bytes` on what the kernel counts, and no swap; whoever passes it is ended with
  /// all of its group. Null where it cannot be made now.
  std::unique_ptr<Group> make(uint64_t memory_bytes);

private:
  ChildCgroups(std::shared_ptr<CgroupFiles> files, std::string path)
      : files_(std::move(files)), path_(std::move(path)) {}
  const std::shared_ptr<CgroupFiles> files_;
  const std::string path_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace tensormill::jobs
