// Readers beside a writer: they wait for no commit, and see what was committed when they began.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "storage/catalog/sqlite_catalog.h"
#include "tests/storage/slow_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

constexpr std::chrono::seconds kPatience{60};

ModelRow model(const std::string& text) { return {Digest::of(text), {Digest::of(text)}, "{}"}; }

TEST(CatalogReadersTest, AReaderWaitsForNoCommit) {
  SlowEnv env;
  SqliteCatalog catalog(env, "/c.db");
  catalog.put_model(model("before"), std::nullopt);
  int asked = 0;
  env.on_sync = [&] {
    ++asked;
    auto read = std::async(std::launch::async, [&] {
      EXPECT_TRUE(catalog.find_model(Digest::of("before")));
      EXPECT_FALSE(catalog.find_model(Digest::of("during"))) << "it is not committed yet";
      EXPECT_EQ(catalog.list_models({}).items.size(), 1U);
      EXPECT_EQ(catalog.referenced_blobs().size(), 1U);
      EXPECT_EQ(catalog.count_jobs(JobState::kQueued), 0);
    });
    ASSERT_EQ(read.wait_for(kPatience), std::future_status::ready) << "a read waits for a commit";
  };
  catalog.put_model(model("during"), std::nullopt);
  env.on_sync = nullptr;
  EXPECT_GT(asked, 0);
  EXPECT_TRUE(catalog.find_model(Digest::of("during"))) << "what was acknowledged is seen by all";
}

TEST(CatalogReadersTest, ReadersSeeWholeCommitsWhileTheLogIsFolded) {
  MemoryEnv env;
  SqliteCatalog catalog(env, "/c.db", {.checkpoint_pages = 4});
  constexpr int kRounds = 200;
  std::atomic<bool> done{false};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&] {
      size_t last = 0;
      while (!done) {
        const size_t models = catalog.list_models({0, 1000}).items.size();
        EXPECT_GE(models, last);
        last = models;
        for (const NameRow& name : catalog.list_names("model")) EXPECT_TRUE(catalog.find_model(name.id));
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = "model " + std::to_string(i);
    catalog.put_model(model(text), NameChange{"model", std::to_string(i), true});
    EXPECT_EQ(catalog.find_name("model", std::to_string(i)), Digest::of(text)) << "own writes are read";
  }
  done = true;
  readers.clear();
  EXPECT_EQ(catalog.list_models({0, 1000}).items.size(), static_cast<size_t>(kRounds));
  EXPECT_EQ(catalog.check(), std::vector<std::string>());
}

TEST(CatalogReadersTest, TheLogIsFoldedWhenTheCatalogClosesThoughReadersWereOpen) {
  MemoryEnv env;
  {
    SqliteCatalog catalog(env, "/c.db");
    catalog.put_model(model("a"), std::nullopt);
    EXPECT_TRUE(catalog.find_model(Digest::of("a")));
    EXPECT_TRUE(env.exists("/c.db-wal"));
  }
  EXPECT_FALSE(env.exists("/c.db-wal"));
  SqliteCatalog again(env, "/c.db");
  EXPECT_TRUE(again.find_model(Digest::of("a")));
}

}  // namespace
}  // namespace tensormill::storage
