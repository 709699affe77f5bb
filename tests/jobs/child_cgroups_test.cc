/// Control groups of children, by a stand-in for the kernel's files that keeps its rules.
#include "server/jobs/child_cgroups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "server/jobs/child_process.h"
#include "server/jobs/confine.h"
#include "tests/jobs/runners.h"

namespace tensormill::jobs::cgroups {
namespace {

/// Groups by path, as /sys/fs/cgroup has them: no group has both processes and groups that get controllers,
/// and only groups whose parent gives them the controller of memory have its files.
class FakeGroups final : public CgroupFiles {
public:
  struct Group {
    std::set<std::string> processes;
    bool divides = false;
    std::map<std::string, std::string> files;  ///< of memory
  };

  FakeGroups() {
    groups_["/cg"] = {};
    groups_["/cg/unit"].processes = {std::to_string(::getpid())};
    groups_["/cg"].divides = true;
  }
  std::string read(const std::string& path) override {
    const auto [group, file] = split(path);
    if (!groups_.contains(group)) return "";
    if (file == "cgroup.events") return group == "/cg" ? "" : "populated 1\nfrozen 0\n";
    if (file == "cgroup.controllers") return is_given(group) ? controllers : "";
    if (file == "memory.events") return is_given(group) ? groups_[group].files[file] : "";
    if (file != "cgroup.procs") return "";
    std::string text;
    for (const std::string& process : groups_[group].processes) text += process + "\n";
    return text;
  }
  bool write(const std::string& path, std::string_view text) override {
    const auto [group, file] = split(path);
    if (!groups_.contains(group) || refuses.contains(file)) return false;
    Group& found = groups_[group];
    if (file == "cgroup.procs") {
      if (found.divides) return false;
      for (auto& [name, other] : groups_) other.processes.erase(std::string(text));
      found.processes.emplace(text);
      if (found.files.contains("memory.max")) placed[std::string(text)] = found.files;
      return true;
    }
    if (file == "cgroup.subtree_control")
      return found.processes.empty() && (found.divides = text == "+memory");
    if (!is_given(group) || !file.starts_with("memory.")) return false;
    found.files[file] = text;
    if (file == "memory.max") found.files["memory.events"] = events;
    return true;
  }
  bool make_group(const std::string& path) override {
    if (refuses.contains("mkdir")) return false;
    groups_[path];
    return true;
  }
  bool remove_group(const std::string& path) override {
    for (auto& [name, group] : groups_) {
      if (name != path && name.starts_with(path + "/")) return false;
    }
    // A process that has ended and been waited for is in no group.
    if (groups_.contains(path) && groups_[path].processes.contains(std::to_string(::getpid()))) return false;
    return groups_.erase(path) == 1;
  }
  std::vector<std::string> groups(const std::string& path) override {
    std::vector<std::string> names;
    for (const auto& [name, group] : groups_) {
      if (name.starts_with(path + "/")) names.push_back(name.substr(path.size() + 1));
    }
    return names;
  }
  Group& at(const std::string& path) { return groups_.at(path); }
  bool contains(const std::string& path) const { return groups_.contains(path); }
  void add(const std::string& path) { groups_[path]; }

  std::string controllers = "cpu io memory pids\n";
  std::string events = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n";
  std::set<std::string> refuses;                                     ///< files, or "mkdir"
  std::map<std::string, std::map<std::string, std::string>> placed;  ///< bounds by process

private:
  static std::pair<std::string, std::string> split(const std::string& path) {
    const size_t slash = path.rfind('/');
    return {path.substr(0, slash), path.substr(slash + 1)};
  }
  bool is_given(const std::string& group) {
    const auto parent = groups_.find(group.substr(0, group.rfind('/')));
    return parent != groups_.end() && parent->second.divides;
  }
  std::map<std::string, Group> groups_;
};

ChildOutcome run_to_end(const ChildSpec& spec) {
  ChildProcess process(spec);
  std::optional<ChildOutcome> outcome;
  while (!outcome) outcome = process.poll(kPatience, [](const std::string&, const std::string&) {});
  return *std::move(outcome);
}

constexpr const char* kMembership = "1:name=systemd:/old\n0::/unit\n";

class Cgroups : public testing::Test {
protected:
  std::shared_ptr<ChildCgroups> divide(const std::string& membership = kMembership) {
    return ChildCgroups::divide(files_, membership, "/cg");
  }
  bool is_in(const std::string& group) {
    return files_->at(group).processes.contains(std::to_string(::getpid()));
  }
  std::shared_ptr<FakeGroups> files_ = std::make_shared<FakeGroups>();
};

TEST_F(Cgroups, TheServerMakesRoomAndEachChildHasABound) {
  files_->add("/cg/unit/child-7");  // of a process before
  const auto cgroups = divide();
  ASSERT_NE(cgroups, nullptr);
  EXPECT_TRUE(is_in("/cg/unit/server"));
  EXPECT_TRUE(files_->at("/cg/unit").divides);
  EXPECT_FALSE(files_->contains("/cg/unit/child-7"));
  {
    const auto one = cgroups->make(5000), other = cgroups->make(6000);
    ASSERT_TRUE(one && other);
    EXPECT_TRUE(one->add(41));
    EXPECT_TRUE(other->add(42));
    EXPECT_EQ(files_->placed["41"]["memory.max"], "5000");
    EXPECT_EQ(files_->placed["42"]["memory.max"], "6000");
    EXPECT_EQ(files_->placed["42"]["memory.swap.max"], "0");
    EXPECT_EQ(files_->placed["42"]["memory.oom.group"], "1");
    EXPECT_FALSE(one->was_out_of_memory());
    EXPECT_EQ(files_->groups("/cg/unit").size(), 3U);
  }
  EXPECT_EQ(files_->groups("/cg/unit"), std::vector<std::string>{"server"})
      << "groups go with their children";
}

TEST_F(Cgroups, WhereTheGroupIsNotItsOwnNothingChanges) {
  const auto expect_as_before = [&](const char* why) {
    EXPECT_EQ(divide(), nullptr) << why;
    EXPECT_TRUE(is_in("/cg/unit")) << why;
    EXPECT_FALSE(files_->contains("/cg/unit/server")) << why;
  };
  EXPECT_EQ(divide("12:memory:/unit\n"), nullptr) << "groups of version 1";
  EXPECT_EQ(divide(""), nullptr);
  EXPECT_EQ(divide("0::/elsewhere\n"), nullptr);
  EXPECT_EQ(divide("0::/\n"), nullptr) << "that of all processes";
  for (const char* file : {"mkdir", "cgroup.procs", "cgroup.subtree_control"}) {
    files_->refuses = {file};
    expect_as_before(file);
  }
  files_->refuses.clear();
  files_->controllers = "cpu pids\n";
  expect_as_before("no controller of memory");
  files_->controllers = "memory\n";
  files_->at("/cg/unit").processes.insert("1");
  expect_as_before("another process is in it");
}

TEST_F(Cgroups, AChildWithoutAGroupRunsAsWithoutGroups) {
  const auto cgroups = divide();
  ASSERT_NE(cgroups, nullptr);
  files_->refuses = {"memory.max"};
  EXPECT_EQ(cgroups->make(5000), nullptr);
  EXPECT_EQ(files_->groups("/cg/unit"), std::vector<std::string>{"server"}) << "what was begun goes";
  ChildPolicy policy;
  policy.cgroups = cgroups;
  ChildSpec spec = child("child-echo");
  spec.policy = std::make_shared<const ChildPolicy>(policy);
  spec.limits.data_bytes = uint64_t{256} << 20;
  const ChildOutcome outcome = run_to_end(spec);
  EXPECT_NE(outcome.end, ChildEnd::kOutOfMemory);
}

TEST_F(Cgroups, WhoTheKernelEndsForItsMemoryIsToldSo) {
  files_->events = "oom 1\noom_kill 1\n";
  ChildPolicy policy;
  policy.cgroups = divide();
  ASSERT_NE(policy.cgroups, nullptr);
  ChildSpec spec = child("child-crash");  // by a signal
  spec.policy = std::make_shared<const ChildPolicy>(policy);
  spec.limits.data_bytes = uint64_t{256} << 20;
  const ChildOutcome outcome = run_to_end(spec);
  EXPECT_EQ(outcome.end, ChildEnd::kOutOfMemory);
  EXPECT_EQ(outcome.error->code(), ErrorCode::kMemoryBudget);
  ASSERT_EQ(files_->placed.size(), 1U);
  EXPECT_EQ(files_->placed.begin()->second["memory.max"], std::to_string(uint64_t{320} << 20));
  EXPECT_EQ(files_->groups("/cg/unit"), std::vector<std::string>{"server"});
}

}  // namespace
}  // namespace tensormill::jobs::cgroups
