#include "storage/catalog/migrations.h"

#include <gtest/gtest.h>

#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

int64_t fixed_clock() { return 1'700'000'000'000; }

void run_sql(Env& env, const std::string& sql) {
  SqliteDb db(env, "/c.db", fixed_clock, 1000);
  db.execute(sql);
}

int64_t read_number(Env& env, const std::string& sql) {
  SqliteDb db(env, "/c.db", fixed_clock, 1000);
  const auto row = db.query(sql);
  return row->step() ? row->integer(0) : -1;
}

TEST(MigrationsTest, AnEmptyFileBecomesTheNewestVersion) {
  MemoryEnv env;
  { const SqliteCatalog catalog(env, "/c.db"); }
  EXPECT_EQ(read_number(env, "PRAGMA user_version"), static_cast<int64_t>(catalog_migrations().size()));
  { const SqliteCatalog again(env, "/c.db"); }
  EXPECT_EQ(read_number(env, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'jobs'"), 1);
}

TEST(MigrationsTest, ANewerCatalogIsRefusedByName) {
  MemoryEnv env;
  { const SqliteCatalog catalog(env, "/c.db"); }
  run_sql(env, "PRAGMA user_version = 999");
  try {
    const SqliteCatalog catalog(env, "/c.db");
    FAIL() << "a newer catalog was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_STREQ(error.what(), "the catalog has version 999, this program knows versions up to 1");
  }
  EXPECT_EQ(read_number(env, "PRAGMA user_version"), 999);
}

TEST(MigrationsTest, AnotherProgramsDatabaseIsRefused) {
  MemoryEnv env;
  run_sql(env, "CREATE TABLE t(x); PRAGMA application_id = 5; PRAGMA user_version = 1");
  EXPECT_ERROR(SqliteCatalog(env, "/c.db"), ErrorCode::kNotSupported);
}

TEST(MigrationsTest, AFileThatIsNoDatabaseIsCorrupt) {
  MemoryEnv env;
  env.open("/c.db", OpenMode::kCreate)->write(0, std::string(8192, 'x'));
  EXPECT_ERROR(SqliteCatalog(env, "/c.db"), ErrorCode::kCorrupt);
}

TEST(MigrationsTest, ACatalogIsOpenOnce) {
  MemoryEnv env;
  const SqliteCatalog catalog(env, "/c.db");
  EXPECT_ERROR(SqliteCatalog(env, "/c.db"), ErrorCode::kInUse);
}

}  // namespace
}  // namespace tensormill::storage
