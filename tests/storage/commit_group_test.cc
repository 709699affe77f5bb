// Writers that come together: one sync for all, each whole or undone by itself, none told before it is
// durable.
#include "storage/catalog/commit_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "tests/storage/slow_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

constexpr int kWriters = 6;
constexpr int kRefused = 2;

/// One writer whose commit is on its way to the disk, and others that came meanwhile.
class CommitGroupTest : public testing::Test {
protected:
  CommitGroupTest()
      : db_(
            env_, "/c.db", [] { return int64_t{0}; }, 1000),
        group_(db_) {
    db_.execute("CREATE TABLE t(x INTEGER PRIMARY KEY)");
  }
  static CommitGroup::Work insert(int64_t value) {
    return [value](SqlDb& db) { db.post("INSERT INTO t VALUES(?)", value); };
  }
  /// Runs insert(0) and, while that is synced, `works` on threads of their own; what each threw, "" for
  /// nothing. `on_sync` is called at the syncs after the first.
  std::vector<std::string> run_beside(const std::vector<CommitGroup::Work>& works,
                                      const std::function<void()>& on_sync) {
    std::vector<std::string> thrown(works.size());
    std::vector<std::jthread> threads;
    env_.on_sync = [&] {
      if (!threads.empty()) return on_sync();
      for (size_t i = 0; i < works.size(); ++i) {
        threads.emplace_back([&, i] {
          try {
            group_.run(works[i]);
          } catch (const std::exception& error) {
            thrown[i] = error.what();
          }
          ++returned_;
        });
      }
      while (group_.waiting() < works.size()) std::this_thread::yield();
    };
    group_.run(insert(0));
    threads.clear();
    env_.on_sync = nullptr;
    return thrown;
  }
  std::vector<CommitGroup::Work> writers() {
    std::vector<CommitGroup::Work> works;
    for (int i = 1; i <= kWriters; ++i) works.push_back(insert(i));
    return works;
  }
  std::vector<int64_t> rows() {
    const auto row = db_.query("SELECT x FROM t ORDER BY x");
    std::vector<int64_t> found;
    while (row->step()) found.push_back(row->integer(0));
    return found;
  }

  SlowEnv env_;
  SqliteDb db_;
  CommitGroup group_;
  std::atomic<int> returned_{0};
};

TEST_F(CommitGroupTest, ThoseThatWaitAreOneCommitAndNoneIsToldBefore) {
  int syncs = 0;
  const std::vector<std::string> thrown = run_beside(writers(), [&] {
    ++syncs;
    EXPECT_EQ(returned_, 0) << "what it wrote is not durable yet";
  });
  EXPECT_EQ(thrown, std::vector<std::string>(kWriters));
  EXPECT_EQ(syncs, 1);
  EXPECT_EQ(rows(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(CommitGroupTest, AnErrorUndoesTheOneThatHadIt) {
  std::vector<CommitGroup::Work> works = writers();
  works[kRefused] = [](SqlDb& db) {
    db.post("INSERT INTO t VALUES(100)");
    throw Error(ErrorCode::kConflict, "not this one");
  };
  const std::vector<std::string> thrown = run_beside(works, [] {});
  for (int i = 0; i < kWriters; ++i) EXPECT_EQ(thrown[i], i == kRefused ? "not this one" : "") << i;
  EXPECT_EQ(rows(), (std::vector<int64_t>{0, 1, 2, 4, 5, 6}));
}

TEST_F(CommitGroupTest, WhatEndsTheTransactionIsRunAlone) {
  std::vector<CommitGroup::Work> works = writers();
  // As a disk that is full ends it.
  works[kRefused] = [](SqlDb& db) {
    db.post("INSERT INTO t VALUES(100)");
    static_cast<SqliteDb&>(db).execute("ROLLBACK");
    throw Error(ErrorCode::kDiskFull, "full");
  };
  const std::vector<std::string> thrown = run_beside(works, [] {});
  for (int i = 0; i < kWriters; ++i) EXPECT_EQ(thrown[i], i == kRefused ? "full" : "") << i;
  EXPECT_EQ(rows(), (std::vector<int64_t>{0, 1, 2, 4, 5, 6}));
}

TEST_F(CommitGroupTest, ACommitThatFailsIsTriedForEachAlone) {
  int syncs = 0;
  // The commit for all, and then that of whoever is the first.
  const std::vector<std::string> thrown = run_beside(writers(), [&] {
    if (++syncs <= 2) throw Error(ErrorCode::kIo, "the disk is away");
  });
  int failed = 0;
  for (const std::string& text : thrown) failed += text.find("the disk is away") != std::string::npos ? 1 : 0;
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(rows().size(), kWriters) << "one of them is not there";
}

}  // namespace
}  // namespace tensormill::storage
