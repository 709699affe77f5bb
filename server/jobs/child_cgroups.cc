#include "server/jobs/child_cgroups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/base/file.h"

namespace tensormill::jobs {
namespace {

constexpr std::string_view kServer = "server", kChild = "child-";

class SystemFiles final : public CgroupFiles {
public:
  std::string read(const std::string& path) override {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    std::array<char, 4096> piece;
    while (file.valid()) {
      const ssize_t count = ::read(file.get(), piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      text.append(piece.data(), static_cast<size_t>(count));
    }
    return text;
  }
  bool write(const std::string& path, std::string_view text) override {
    // One call: each is an order of its own to the kernel.
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return file.valid() && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  bool make_group(const std::string& path) override {
    return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST;
  }
  bool remove_group(const std::string& path) override { return ::rmdir(path.c_str()) == 0; }
  std::vector<std::string> groups(const std::string& path) override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(path, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::error_code gone;
      if (entry->is_directory(gone)) names.push_back(entry->path().filename().string());
    }
    return names;
  }
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The line of version 2, "0::/path"; nothing where there is none.
std::optional<std::string> own_group(const std::string& membership) {
  std::istringstream stream(membership);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("0::/")) return line.substr(line.size() == 4 ? 4 : 3);
  }
  return std::nullopt;
}

bool has_word(const std::string& text, std::string_view word) {
  const std::vector<std::string> words = words_of(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::shared_ptr<CgroupFiles> system_cgroup_files() { return std::make_shared<SystemFiles>(); }

std::shared_ptr<ChildCgroups> ChildCgroups::divide(std::shared_ptr<CgroupFiles> files,
                                                   const std::string& membership, const std::string& root) {
  const std::optional<std::string> own = own_group(membership);
  if (!own) return nullptr;
  const std::string path = root + *own, server = path + "/" + std::string(kServer);
  // The group of all processes of a machine has no events, and is nobody's to divide.
  if (files->read(path + "/cgroup.events").empty()) return nullptr;
  if (!has_word(files->read(path + "/cgroup.controllers"), "memory")) return nullptr;
  const std::string self = std::to_string(::getpid());
  if (words_of(files->read(path + "/cgroup.procs")) != std::vector<std::string>{self}) return nullptr;
  if (!files->make_group(server)) return nullptr;
  const bool moved = files->write(server + "/cgroup.procs", self);
  if (!moved || !files->write(path + "/cgroup.subtree_control", "+memory")) {
    if (moved) files->write(path + "/cgroup.procs", self);
    files->remove_group(server);
    return nullptr;
  }
  // Of a process before this one in the same group, whose children have gone with it.
  for (const std::string& name : files->groups(path)) {
    if (name.starts_with(kChild)) files->remove_group(path + "/" + name);
  }
  return std::shared_ptr<ChildCgroups>(new ChildCgroups(std::move(files), path));
}

std::unique_ptr<ChildCgroups::Group> ChildCgroups::make(uint64_t memory_bytes) {
  const std::string path = path_ + "/" + std::string(kChild) + std::to_string(next_++);
  if (!files_->make_group(path)) return nullptr;
  std::unique_ptr<Group> group(new Group(files_, path));
  if (!files_->write(path + "/memory.max", std::to_string(memory_bytes))) return nullptr;
  // Where there is no swap there is no such file; where a child is one process the second changes nothing.
  files_->write(path + "/memory.swap.max", "0");
  files_->write(path + "/memory.oom.group", "1");
  return group;
}

ChildCgroups::Group::~Group() { files_->remove_group(path_); }

bool ChildCgroups::Group::add(pid_t process) {
  return files_->write(path_ + "/cgroup.procs", std::to_string(process));
}

bool ChildCgroups::Group::was_out_of_memory() const {
  const std::vector<std::string> words = words_of(files_->read(path_ + "/memory.events"));
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] != "oom_kill") continue;
    uint64_t count = 0;
    std::from_chars(words[i + 1].data(), words[i + 1].data() + words[i + 1].size(), count);
    return count > 0;
  }
  return false;
}

}  // namespace tensormill::jobs
