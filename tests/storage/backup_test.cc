// Copies of a store: whole whatever happens to the original meanwhile, and whatever fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "storage/backup/store_copy.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

constexpr int kCheckpointPages = 8;

struct CopiedStore {
  CopiedStore(Env& env, const std::string& root)
      : blobs(env, root),
        catalog(env, root + "/catalog.db", SqliteCatalogOptions{nullptr, kCheckpointPages}) {}
  void add(const std::string& bytes, BlobForm form = BlobForm::kPlain) {
    const Digest id = blobs.put(bytes, {.form = form});
    catalog.put_model({id, {id}, "{}"}, NameChange{"model", bytes.substr(0, 8), true});
  }
  FolderBlobStore blobs;
  SqliteCatalog catalog;
};

/// Opens the copy as a server does; the names of its models.
std::vector<std::string> names_in(Env& env, const std::string& root) {
  CopiedStore store(env, root);
  std::vector<std::string> names;
  for (const NameRow& row : store.catalog.list_names("model")) {
    names.push_back(row.name);
    store.blobs.verify(row.id);
  }
  EXPECT_EQ(store.catalog.check(), std::vector<std::string>());
  for (const Digest& digest : store.catalog.referenced_blobs()) EXPECT_TRUE(store.blobs.exists(digest));
  return names;
}

/// Blobs of a copy that its catalog does not name.
size_t unnamed_in(Env& env, const std::string& root) {
  CopiedStore store(env, root);
  return store.blobs.list().size() - store.catalog.referenced_blobs().size();
}

TEST(StoreCopyTest, CopiesAStoreThatIsOpen) {
  MemoryEnv env;
  CopiedStore store(env, "/a");
  store.add("one");
  store.add("two" + std::string(5000, 'x'), BlobForm::kCompressed);
  const StoreCopy first = copy_store(env, "/a", "/copies/b");
  EXPECT_EQ(first.blobs, 2U);
  EXPECT_EQ(first.copied, 2U);
  EXPECT_EQ(first.bytes, 5006U);
  EXPECT_EQ(names_in(env, "/copies/b"), (std::vector<std::string>{"one", "twoxxxxx"}));
}

TEST(StoreCopyTest, ASecondCopyTakesWhatIsNewAndForgetsWhatWent) {
  MemoryEnv env;
  CopiedStore store(env, "/a");
  store.add("one");
  copy_store(env, "/a", "/b");
  store.add("two");
  store.catalog.remove_name("model", "one");
  store.catalog.remove_model(Digest::of("one"));
  store.blobs.remove(Digest::of("one"));
  const StoreCopy second = copy_store(env, "/a", "/b");
  EXPECT_EQ(second.copied, 1U);
  EXPECT_EQ(unnamed_in(env, "/b"), 0U);
  EXPECT_EQ(names_in(env, "/b"), std::vector<std::string>{"two"});
}

TEST(StoreCopyTest, WhatWasUploadedToTheCopyStays) {
  MemoryEnv env;
  CopiedStore store(env, "/a");
  store.add("one");
  copy_store(env, "/a", "/b");
  {
    CopiedStore served(env, "/b");
    FolderUploadStore uploads(env, "/b", served.blobs, {}, [] { return int64_t{1'700'000'000'000}; });
    const std::string id = uploads.begin().id;
    bool is_read = false;
    uploads.append(id, 0, [&](std::span<std::byte> buffer) -> size_t {
      if (std::exchange(is_read, true)) return 0;
      std::fill_n(buffer.begin(), 3, std::byte{'u'});
      return 3;
    });
    uploads.finish(id, Digest::of("uuu"));
  }
  store.add("two");
  copy_store(env, "/a", "/b");
  EXPECT_EQ(CopiedStore(env, "/b").blobs.open(Digest::of("uuu"))->text(), "uuu");
}

TEST(StoreCopyTest, RefusesWhatIsNoStoreAndWhatIsOpen) {
  MemoryEnv env;
  EXPECT_ERROR(copy_store(env, "/a", "/b"), ErrorCode::kNotFound);
  const CopiedStore store(env, "/a");
  const CopiedStore open(env, "/b");
  EXPECT_ERROR(copy_store(env, "/a", "/b"), ErrorCode::kInUse);
}

TEST(StoreCopyTest, DamageIsNotCopied) {
  MemoryEnv env;
  CopiedStore store(env, "/a");
  store.add("one");
  const std::string hex = Digest::of("one").hex();
  env.open("/a/blobs/sha256/" + hex.substr(0, 2) + "/" + hex, OpenMode::kWrite)->write(0, "b");
  EXPECT_ERROR(copy_store(env, "/a", "/b"), ErrorCode::kCorrupt);
  EXPECT_FALSE(env.exists("/b/catalog.db"));
}

/// Changes the original before each operation that copies from it or to the copy.
class BusyEnv final : public MemoryEnv {
public:
  std::function<void()> change;

protected:
  bool admit(Operation operation, const std::string& path, uint64_t pending) override {
    if (path.starts_with("/b/") && change && ++count_ % 3 == 0) pending_change_ = true;
    return MemoryEnv::admit(operation, path, pending);
  }

public:
  std::unique_ptr<EnvFile> open(const std::string& path, OpenMode mode) override {
    if (pending_change_ && path.starts_with("/b/") && change) {
      pending_change_ = false;
      change();
    }
    return MemoryEnv::open(path, mode);
  }

private:
  uint64_t count_ = 0;
  bool pending_change_ = false;
};

TEST(StoreCopyTest, IsOneMomentOfAStoreThatChanges) {
  BusyEnv env;
  CopiedStore store(env, "/a");
  store.add("first");
  int round = 0;
  // Always two names at once, the later one last: a copy has none without the other's predecessor. Few enough
  // changes for the copy to find a quiet moment, enough for the log to start over more than once.
  env.change = [&] {
    if (round == 12) return;
    const std::string number = std::to_string(100 + ++round);
    store.add("m" + number + std::string(3000, 'm'));
    if (round > 3) {
      const std::string old = "m" + std::to_string(100 + round - 3) + std::string(3000, 'm');
      store.catalog.remove_name("model", old.substr(0, 8));
      store.catalog.remove_model(Digest::of(old));
      store.blobs.remove(Digest::of(old));
    }
  };
  copy_store(env, "/a", "/b");
  env.change = nullptr;
  const std::vector<std::string> names = names_in(env, "/b");
  EXPECT_GT(round, 3);
  EXPECT_EQ(names.front(), "first");
  EXPECT_LE(names.size(), 5U);
}

/// Copies into /b, which has an older copy, with the k-th operation failing or the power cut there.
TEST(StoreCopyTest, WhateverFailsTheCopyIsTheOldOneOrTheNewOne) {
  uint64_t operations = 0;
  for (uint64_t k = 0; k == 0 || k <= operations; ++k) {
    for (const bool cut : {false, true}) {
      PowerCutEnv env;
      {
        CopiedStore store(env, "/a");
        store.add("one");
        copy_store(env, "/a", "/b");
        store.add("two", BlobForm::kCompressed);
      }
      const uint64_t before = env.operations();
      if (k > 0 && cut) env.cut_after(k - 1);
      if (k > 0 && !cut) env.fail_operations(k, 1, ENOSPC);
      bool done = false;
      try {
        copy_store(env, "/a", "/b");
        done = true;
      } catch (const Error& error) {
        EXPECT_TRUE(env.is_off() || error.code() == ErrorCode::kDiskFull) << k << ": " << error.what();
      }
      if (k == 0) operations = env.operations() - before;
      env.fail_operations(1, 0, 0);
      env.reboot(Survival::kNothing);
      const std::vector<std::string> names = names_in(env, "/b");
      const std::vector<std::string> both = {"one", "two"};
      EXPECT_TRUE(names == both || (!done && names == std::vector<std::string>{"one"}))
          << k << " cut " << cut;
      copy_store(env, "/a", "/b");
      EXPECT_EQ(names_in(env, "/b"), both) << k;
      EXPECT_EQ(unnamed_in(env, "/b"), 0U) << k;
    }
  }
  EXPECT_GT(operations, 20U);
}

}  // namespace
}  // namespace tensormill::storage
