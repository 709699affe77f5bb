// CPUs by control groups' quotas, with groups that a test makes of files.
#include "runtime/base/cpu_count.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "runtime/base/file.h"

namespace tensormill {
namespace {

class Quotas : public testing::Test {
protected:
  void SetUp() override {
    root_ = (std::filesystem::temp_directory_path() / "cgroup-XXXXXX").string();
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    write_file(root_ + path, text);
  }
  int cores(const std::string& groups) const { return quota_cores(root_, groups); }

  std::string root_;
};

TEST_F(Quotas, OfVersion2AreTheLeastOfTheGroupAndThoseAboveIt) {
  EXPECT_EQ(cores("0::/a/b\n"), 0) << "nothing there limits nothing";
  put("/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 0);
  put("/a/cpu.max", "350000 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 4) << "a part of one counts as one";
  put("/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 1);
  EXPECT_EQ(cores("0::/a\n"), 4);
  put("/cpu.max", "200000 100000\n");
  EXPECT_EQ(cores("0::/\n"), 2) << "a container sees its own group as the root";
  EXPECT_EQ(cores("0::/../outside\n"), 2);
}

TEST_F(Quotas, OfVersion1StandInTwoFiles) {
  put("/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  put("/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  const std::string groups = "12:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n3:cpuset:/\n";
  EXPECT_EQ(cores(groups), 0);
  put("/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cores(groups), 2);
  EXPECT_EQ(cores("5:cpuset,memory:/docker/x\n"), 0) << "cpuset is not cpu";
  put("/cpu/cpu.cfs_quota_us", "100000\n");
  put("/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("4:cpu,cpuacct:/path/of/the/host\n"), 1) << "the mount is the container's own group";
}

TEST_F(Quotas, ThatMakeNoSenseLimitNothing) {
  for (const char* text : {"", "x", "100000", "0 100000", "100000 0", "-5 100000", "1e5 x"}) {
    put("/cpu.max", text);
    EXPECT_EQ(cores("0::/\n"), 0) << text;
  }
  put("/cpu.max", "9223372036854775807 1\n");
  EXPECT_GT(cores("0::/\n"), 0);
  std::filesystem::remove(root_ + "/cpu.max");
  EXPECT_EQ(cores("rubbish\n::\n"), 0);
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace tensormill
