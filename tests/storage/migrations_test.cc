#include "storage/catalog/migrations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/file.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

/// The first that has keys, the audit log and submitters.
constexpr int kKeysVersion = 5;

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
    EXPECT_EQ(error.message(), "the catalog has version 999, this program knows versions up to " +
                                   std::to_string(catalog_migrations().size()));
  }
  EXPECT_EQ(read_number(env, "PRAGMA user_version"), 999);
}

/// Every version that was ever written has its fixture: what a server of that version left, as SQL.
class OlderCatalogTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Versions, OlderCatalogTest,
                         testing::Range(1, static_cast<int>(catalog_migrations().size()) + 1));

TEST_P(OlderCatalogTest, IsReadByThisProgram) {
  const std::string path =
      TM_SOURCE_DIR "/tests/storage/fixtures/catalog_v" + std::to_string(GetParam()) + ".sql";
  MemoryEnv env;
  run_sql(env, read_file(path));
  ASSERT_EQ(read_number(env, "PRAGMA user_version"), GetParam());
  SqliteCatalog catalog(env, "/c.db");
  const Page<ModelRow> models = catalog.list_models({});
  ASSERT_EQ(models.items.size(), 1U);
  const Digest model = models.items[0].id;
  EXPECT_EQ(catalog.find_name("model", "tiny"), model);
  const std::vector<DeploymentRow> deployments = catalog.list_deployments();
  ASSERT_EQ(deployments.size(), 1U);
  ASSERT_EQ(deployments[0].packages.size(), 1U);
  const auto package = catalog.find_package(deployments[0].packages[0]);
  ASSERT_TRUE(package);
  EXPECT_GE(package->members.size(), 4U);
  EXPECT_EQ(catalog.count_jobs(JobState::kSucceeded), 1);
  EXPECT_EQ(catalog.count_jobs(JobState::kFailed), 1);
  JobFilter succeeded;
  succeeded.state = JobState::kSucceeded;
  const JobRow job = catalog.list_jobs(succeeded, {}).items.at(0);
  EXPECT_EQ(job.package, package->id);
  EXPECT_EQ(catalog.job_events(job.id, 0, 100).back().type, "end");
  const std::vector<PlacedEventRow> events = catalog.all_job_events(0, 100);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().position, catalog.last_event_position());
  EXPECT_TRUE(std::is_sorted(events.begin(), events.end(),
                             [](const auto& a, const auto& b) { return a.position < b.position; }));
  const std::vector<Digest> blobs = catalog.referenced_blobs();
  EXPECT_TRUE(std::binary_search(blobs.begin(), blobs.end(), model));
  for (const MemberRow& member : package->members) {
    EXPECT_TRUE(std::binary_search(blobs.begin(), blobs.end(), member.digest)) << member.name;
  }
  // Keys and the audit log are as old as their tables.
  EXPECT_EQ(catalog.list_keys().size(), GetParam() >= kKeysVersion ? 1U : 0U);
  EXPECT_EQ(catalog.list_audit({}, {}).items.size(), GetParam() >= kKeysVersion ? 1U : 0U);
  // Who submitted a job before submitters had rows of their own may still have it tried again.
  JobFilter failed;
  failed.state = JobState::kFailed;
  const JobRow old = catalog.list_jobs(failed, {}).items.at(0);
  EXPECT_ERROR(catalog.retry_job(old.id, {"someone else", 0, false}), ErrorCode::kForbidden);
  EXPECT_EQ(catalog.retry_job(old.id, {old.submitter, 0, false}).state, JobState::kQueued);
  // And it can be written: the next job has a number of its own.
  JobSubmission next;
  next.kind = "compile";
  next.action_key = "another";
  EXPECT_GT(catalog.submit_job(next).job.sequence, job.sequence);
}

/// What requests named before rows of their own did is named by rows since.
TEST(MigrationsTest, BlobsOfOlderRequestsAreNamed) {
  MemoryEnv env;
  run_sql(env, read_file(TM_SOURCE_DIR "/tests/storage/fixtures/catalog_v8.sql"));
  const Digest inputs = Digest::of("inputs"), labels = Digest::of("labels");
  run_sql(env, "UPDATE jobs SET kind = 'report', resolved = json_object('inputs', '" + inputs.text() +
                   "', 'labels', CASE state WHEN 'failed' THEN '" + labels.text() + "' END)");
  SqliteCatalog catalog(env, "/c.db");
  const std::vector<Digest> named = catalog.referenced_blobs();
  EXPECT_TRUE(std::binary_search(named.begin(), named.end(), inputs));
  EXPECT_TRUE(std::binary_search(named.begin(), named.end(), labels));
}

TEST(MigrationsTest, SumsAreOfOlderRowsToo) {
  MemoryEnv env;
  run_sql(env, read_file(TM_SOURCE_DIR "/tests/storage/fixtures/catalog_v10.sql"));
  run_sql(
      env,
      "UPDATE models SET owner = 'alice', bytes = 5; UPDATE packages SET owner = 'bob', archive_bytes = 7;"
      "INSERT INTO blobs VALUES('a', 0, 2, 1, ''), ('b', 1, 3, 1, ''), ('c', -1, 0, 1, '');"
      "INSERT INTO uploads VALUES('u', '', '', 0, NULL, 0);"
      "INSERT INTO upload_chunks VALUES('u', 0, 4, 'd'), ('u', 4, 9, 'e')");
  SqliteCatalog catalog(env, "/c.db");
  EXPECT_EQ(catalog.sum_uses().bytes, 12U);
  ASSERT_EQ(catalog.list_uses().size(), 2U);
  EXPECT_EQ(catalog.list_uses()[0].bytes, 5U);
  EXPECT_EQ(catalog.list_uses()[1].caller, "bob");
  EXPECT_EQ(catalog.sum_blobs().blobs, 2U);
  EXPECT_EQ(catalog.sum_blobs().compressed, 1U);
  EXPECT_EQ(catalog.sum_blobs().stored_bytes, 5U);
  EXPECT_EQ(catalog.find_upload("u")->size, 13U);
}

/// No trigger follows what no program does: who reads the rows would see it.
TEST(MigrationsTest, SumsAreReadWithoutTheRows) {
  MemoryEnv env;
  run_sql(env, read_file(TM_SOURCE_DIR "/tests/storage/fixtures/catalog_v10.sql"));
  const uint64_t bytes = SqliteCatalog(env, "/c.db").sum_uses().bytes;
  ASSERT_NE(bytes, 0U);
  run_sql(env, "UPDATE models SET bytes = 1000000; UPDATE packages SET archive_bytes = 1000000");
  SqliteCatalog catalog(env, "/c.db");
  EXPECT_EQ(catalog.sum_uses().bytes, bytes);
  for (const CallerUse& use : catalog.list_uses()) EXPECT_LE(use.bytes, bytes);
}

/// Claims walk the queue alone, however many jobs have ended: they need its index.
TEST(MigrationsTest, ClaimsAreMadeByTheIndexOfTheQueue) {
  MemoryEnv env;
  static_cast<void>(SqliteCatalog(env, "/c.db"));
  run_sql(env, "DROP INDEX jobs_to_claim");
  SqliteCatalog catalog(env, "/c.db");
  EXPECT_THROW(static_cast<void>(catalog.claim_job({"compile"}, "w", 1)), InternalError);
  EXPECT_THROW(static_cast<void>(catalog.next_claim_in({"compile"}, {""})), InternalError);
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
