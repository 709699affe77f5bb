#include "storage/blob/folder_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "runtime/base/error.h"
#include "storage/env/memory_env.h"
#include "storage/env/power_cut_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage::folder_blob_store_test {
namespace {

const std::string kText = "the quick brown fox jumps over the lazy dog, again and again and again and again";

TEST(FolderBlobStoreTest, AStartRemovesWhatAnEarlierProcessLeft) {
  MemoryEnv env;
  { const FolderBlobStore store(env, "/s"); }
  env.open("/s/tmp/blob-0", OpenMode::kCreateNew)->write(0, "half");
  const FolderBlobStore again(env, "/s");
  EXPECT_TRUE(env.list("/s/tmp").empty());
}

/// Memory in which something else happens just before a file is opened, measured or renamed.
class BusyEnv : public MemoryEnv {
public:
  FileDescriptor open_descriptor(const std::string& path) override {
    meanwhile();
    return MemoryEnv::open_descriptor(path);
  }
  uint64_t file_size(const std::string& path) override {
    meanwhile();
    return MemoryEnv::file_size(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    meanwhile();
    MemoryEnv::rename(from, to);
  }
  std::function<void()> next;

private:
  void meanwhile() {
    if (next) std::exchange(next, nullptr)();
  }
};

TEST(BlobRaceTest, ABlobCanBeOpenedWhileItsPlainFormTakesThePlaceOfItsCompressedOne) {
  BusyEnv env;
  FolderBlobStore store(env, "/s");
  const Digest digest = store.put(kText, {.form = BlobForm::kCompressed});
  env.next = [&] { store.put(kText, {.form = BlobForm::kPlain}); };
  EXPECT_EQ(store.open(digest)->text(), kText);
  EXPECT_EQ(store.list().at(0).form, BlobForm::kPlain) << "the plain form came between";
}

TEST(BlobRaceTest, ABlobThatIsRemovedWhileItIsOpenedIsNotFound) {
  for (const BlobForm form : {BlobForm::kPlain, BlobForm::kCompressed}) {
    BusyEnv env;
    FolderBlobStore store(env, "/s");
    const Digest digest = store.put(kText, {.form = form});
    env.next = [&] { store.remove(digest); };
    EXPECT_THAT([&] { store.open(digest); },
                testing::Throws<Error>(testing::Property(&Error::code, ErrorCode::kNotFound)));
  }
}

TEST(BlobRaceTest, ACollectionWhileABlobIsStoredLeavesItToTheNext) {
  for (const bool all : {true, false}) {
    BusyEnv env;
    FolderBlobStore store(env, "/s");
    store.keep_roots([] { return std::vector<Digest>{}; });
    env.next = [&] { all ? store.collect() : store.collect_released(); };
    store.put(kText);
    EXPECT_EQ(store.usage().blobs, 1U) << "it was not there to be collected";
    EXPECT_EQ(store.collect_released().blobs, 1U) << "no row names it, and it was stored since";
    EXPECT_EQ(store.usage().blobs, 0U);
  }
}

TEST(BlobFaultTest, AFullDiskOrAFailedSyncLeavesNothingHalfWritten) {
  for (const int error_number : {ENOSPC, EIO}) {
    for (uint64_t k = 1; k <= 8; ++k) {
      PowerCutEnv env;
      FolderBlobStore store(env, "/s");
      env.fail_operations(k, 1, error_number);
      const uint64_t before = env.operations();
      bool failed = false;
      try {
        store.put(kText);
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.code(), error_number == ENOSPC ? ErrorCode::kDiskFull : ErrorCode::kIo);
      }
      EXPECT_EQ(failed, env.operations() - before >= k);
      env.fail_operations(1, 0, 0);
      EXPECT_TRUE(env.list("/s/tmp").empty());
      EXPECT_EQ(store.open(store.put(kText))->text(), kText);
    }
  }
}

}  // namespace
}  // namespace tensormill::storage::folder_blob_store_test
