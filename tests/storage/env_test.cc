#include "storage/env/env.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "storage/env/memory_env.h"
#include "storage/env/posix_env.h"
#include "storage/env/power_cut_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

/// What every Env does.
class EnvTest : public testing::TestWithParam<int> {
protected:
  EnvTest() {
    if (GetParam() == 0) env_ = std::make_unique<PosixEnv>();
    if (GetParam() == 1) env_ = std::make_unique<MemoryEnv>();
    if (GetParam() == 2) env_ = std::make_unique<PowerCutEnv>();
    base_ = GetParam() == 0 ? folder_.path() : "/base";
    env_->make_folder(base_);
  }
  void put(const std::string& path, std::string_view bytes) {
    env_->open(path, OpenMode::kCreate)->write(0, bytes);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Env> env_;
  std::string base_;
};

INSTANTIATE_TEST_SUITE_P(Envs, EnvTest, testing::Values(0, 1, 2));

TEST_P(EnvTest, AFileReadsBackAtAnyOffset) {
  const auto file = env_->open(base_ + "/f", OpenMode::kCreateNew);
  file->write(0, "hello");
  file->write(8, "world");
  file->sync();
  EXPECT_EQ(file->size(), 13U);
  EXPECT_EQ(read_all(*env_, base_ + "/f"), std::string("hello\0\0\0world", 13));
  file->truncate(3);
  EXPECT_EQ(read_all(*env_, base_ + "/f"), "hel");
  std::byte buffer[8];
  EXPECT_EQ(file->read(1, buffer), 2U);
  EXPECT_EQ(file->read(9, buffer), 0U);
}

TEST_P(EnvTest, ModesSayWhatMustExist) {
  EXPECT_ERROR(env_->open(base_ + "/f", OpenMode::kRead), ErrorCode::kNotFound);
  EXPECT_ERROR(env_->open(base_ + "/f", OpenMode::kWrite), ErrorCode::kNotFound);
  put(base_ + "/f", "x");
  EXPECT_ERROR(env_->open(base_ + "/f", OpenMode::kCreateNew), ErrorCode::kConflict);
  EXPECT_EQ(env_->open(base_ + "/f", OpenMode::kCreate)->size(), 1U);
  EXPECT_ERROR(env_->open(base_ + "/none/f", OpenMode::kCreate), ErrorCode::kNotFound);
}

TEST_P(EnvTest, NamesAreListedSortedRenamedAndRemoved) {
  put(base_ + "/b", "1");
  put(base_ + "/a", "2");
  EXPECT_TRUE(env_->make_folder(base_ + "/c"));
  EXPECT_FALSE(env_->make_folder(base_ + "/c"));
  env_->rename(base_ + "/a", base_ + "/c/d");
  env_->rename(base_ + "/b", base_ + "/c/d");
  env_->sync_folder(base_ + "/c");
  EXPECT_EQ(read_all(*env_, base_ + "/c/d"), "1");
  ASSERT_EQ(env_->list(base_).size(), 1U);
  EXPECT_TRUE(env_->list(base_)[0].is_folder);
  EXPECT_EQ(env_->file_size(base_ + "/c/d"), 1U);
  EXPECT_FALSE(env_->remove_file(base_ + "/none"));
  EXPECT_ERROR(env_->remove_folder(base_ + "/c"), ErrorCode::kIo);
  remove_tree(*env_, base_ + "/c");
  EXPECT_FALSE(env_->exists(base_ + "/c"));
  EXPECT_ERROR(env_->rename(base_ + "/none", base_ + "/x"), ErrorCode::kNotFound);
}

TEST_P(EnvTest, ADescriptorReadsTheBytes) {
  put(base_ + "/f", "bytes");
  const FileDescriptor fd = env_->open_descriptor(base_ + "/f");
  char buffer[8] = {};
  EXPECT_EQ(::read(fd.get(), buffer, sizeof(buffer)), 5);
  EXPECT_STREQ(buffer, "bytes");
}

TEST_P(EnvTest, ALockIsExclusiveWhileHeld) {
  {
    const auto lock = env_->lock(base_ + "/lock");
    EXPECT_ERROR(env_->lock(base_ + "/lock"), ErrorCode::kInUse);
  }
  EXPECT_NE(env_->lock(base_ + "/lock"), nullptr);
}

TEST(PowerCutEnvTest, BytesAndNamesAreLostApart) {
  PowerCutEnv env;
  const auto unsynced = env.open("/unsynced", OpenMode::kCreate);
  unsynced->write(0, "lost");
  const auto bytes_only = env.open("/bytes-only", OpenMode::kCreate);
  bytes_only->write(0, "kept, but without a name");
  env.sync_folder("/");
  const auto no_name = env.open("/no-name", OpenMode::kCreate);
  no_name->write(0, "bytes");
  no_name->sync();
  bytes_only->sync();
  bytes_only->write(0, "KEPT");
  env.reboot(Survival::kNothing);
  EXPECT_EQ(read_all(env, "/unsynced"), "");
  EXPECT_EQ(read_all(env, "/bytes-only"), "kept, but without a name");
  EXPECT_FALSE(env.exists("/no-name"));
}

TEST(PowerCutEnvTest, AnUnsyncedRenameOrRemovalComesUndone) {
  PowerCutEnv env;
  env.open("/a", OpenMode::kCreate);
  env.open("/b", OpenMode::kCreate);
  env.sync_folder("/");
  env.rename("/a", "/c");
  env.remove_file("/b");
  env.reboot(Survival::kNothing);
  EXPECT_TRUE(env.exists("/a"));
  EXPECT_TRUE(env.exists("/b"));
  EXPECT_FALSE(env.exists("/c"));
}

TEST(PowerCutEnvTest, APartOfTheUnsyncedStateMaySurvive) {
  int with_first = 0;
  int with_second = 0;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    PowerCutEnv env;
    const auto file = env.open("/f", OpenMode::kCreate);
    env.sync_folder("/");
    file->write(0, std::string(512, 'a') + std::string(512, 'b'));
    env.reboot(Survival::kPart, seed);
    const std::string bytes = read_all(env, "/f");
    with_first += bytes.starts_with('a') ? 1 : 0;
    with_second += bytes.ends_with('b') ? 1 : 0;
  }
  EXPECT_GT(with_first, 16);
  EXPECT_LT(with_first, 48);
  EXPECT_GT(with_second, 16);
  EXPECT_LT(with_second, 48);
}

TEST(PowerCutEnvTest, CutsFailsAndIgnoresWhereAsked) {
  PowerCutEnv env;
  const auto file = env.open("/f", OpenMode::kCreate);
  env.sync_folder("/");
  env.fail_operations(2, 1, ENOSPC);
  file->write(0, "1");
  EXPECT_ERROR(file->write(1, "2"), ErrorCode::kDiskFull);
  file->write(1, "2");
  env.ignore_sync(2);
  file->sync();
  env.cut_after(1);
  file->write(2, "3");
  EXPECT_ERROR(file->write(3, "4"), ErrorCode::kIo);
  EXPECT_TRUE(env.is_off());
  EXPECT_ERROR(env.exists("/f"), ErrorCode::kIo);
  env.reboot(Survival::kNothing);
  EXPECT_EQ(read_all(env, "/f"), "");
  ASSERT_EQ(env.syncs().size(), 2U);
  EXPECT_EQ(env.syncs()[1].path, "/f");
}

}  // namespace
}  // namespace tensormill::storage
