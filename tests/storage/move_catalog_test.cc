// A catalog moves from a file into a database and back, whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/move_catalog.h"
#include "storage/postgresql/postgres_catalog.h"
#include "tests/storage/private_postgres.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

using testing::HasSubstr;

class MoveCatalogTest : public testing::Test {
protected:
  static Digest digest(const std::string& text) { return Digest::of(text); }
  std::string folder() const { return folder_.path(); }

  /// Something in every table, and more rows than one batch.
  static void fill(Catalog& catalog) {
    ModelRow model{digest("m"), {digest("m.0"), digest("m.1")}, std::string("{\0}", 3)};
    model.owner = "alice";
    model.bytes = 12;
    catalog.put_model(model, NameChange{"model", "resnet", false});
    catalog.put_package({digest("p"), {{"mod.so", digest("so"), 7}}, digest("tar"), 99, "{}"});
    catalog.put_deployment({"d", "{}", "{}", {digest("p")}, 0, {digest("labels")}});
    std::vector<TuningRecordRow> records;
    for (int i = 0; i < 510; ++i) {
      TuningRecordRow row;
      row.line = std::to_string(i);
      row.id = digest(row.line);
      records.push_back(row);
    }
    catalog.put_tuning_set({digest("s"), "m", {records[0].id, records[1].id}}, records);
    catalog.put_fact("fact", "1");
    catalog.put_answer({"alice", "key", "hash", "answer"}, 1'000'000);
    catalog.put_key({"k", "read", digest("secret"), 5, 0});
    catalog.put_audit({{0, 9'000'000'000'000, "id", "alice", "peer", "client", "GET", "/\xff", 200}},
                      {1, 100});
    JobSubmission job;
    job.kind = "compile";
    job.action_key = "a";
    job.idempotency_key = "once";
    job.needs_blobs = {digest("inputs")};
    job.keeps_blobs = true;
    catalog.submit_job(job);
    const JobRow claimed = catalog.claim_job({"compile"}, "w", 1).value();
    catalog.finish_job({claimed.id, claimed.attempt, claimed.owner}, {});
  }

  static void expect_filled(Catalog& catalog) {
    EXPECT_EQ(catalog.find_name("model", "resnet"), digest("m"));
    EXPECT_EQ(catalog.find_model(digest("m"))->facts, std::string("{\0}", 3));
    EXPECT_EQ(catalog.sum_uses().bytes, 12U) << "what is copied is counted, once";
    EXPECT_EQ(catalog.find_deployment("d")->blobs.at(0), digest("labels"));
    EXPECT_EQ(catalog.list_tuning_records({}, {0, 1000}).items.size(), 510U);
    EXPECT_EQ(catalog.list_audit({}, {}).items.at(0).target, "/\xff");
    EXPECT_EQ(catalog.list_keys().at(0).hash, digest("secret"));
    EXPECT_THAT(catalog.referenced_blobs(), testing::Contains(digest("inputs")));
    const JobRow job = catalog.list_jobs({}, {}).items.at(0);
    EXPECT_EQ(job.state, JobState::kSucceeded);
    EXPECT_EQ(catalog.job_events(job.id, 0, 9).size(), 4U);
    // Rows that come go on behind those that were there.
    const int64_t place = catalog.all_job_events(0, 100).back().position;
    JobSubmission next;
    next.kind = "compile";
    next.action_key = "b" + std::to_string(job.sequence);
    const JobRow later = catalog.submit_job(next).job;
    EXPECT_GT(later.sequence, job.sequence);
    EXPECT_EQ(catalog.all_job_events(place, 9).size(), 1U);
    catalog.cancel_job(later.id);
    catalog.expire_jobs(-1);
  }

  TemporaryFolder folder_;
  PosixEnv env_;
  const CatalogPlace place_{fresh_postgres_schema(), ""};
};

TEST_F(MoveCatalogTest, IntoADatabaseAndBack) {
  fill(*open_catalog(env_, folder(), {}).catalog);
  const CatalogCopy moved = move_to_database(env_, folder(), place_);
  EXPECT_GT(moved.rows, 510);
  EXPECT_EQ(moved.copied, moved.rows);
  EXPECT_ERROR(open_catalog(env_, folder(), {}), ErrorCode::kConflict);
  EXPECT_ERROR(open_catalog(env_, folder(), {fresh_postgres_schema(), ""}), ErrorCode::kConflict);
  {
    const StoreCatalog database = open_catalog(env_, folder(), place_);
    JobSubmission again;
    again.action_key = "a";
    again.idempotency_key = "once";
    EXPECT_EQ(database.catalog->submit_job(again).outcome, SubmitOutcome::kRepeated);
  }
  const CatalogCopy back = move_to_file(env_, folder(), place_);
  EXPECT_EQ(back.rows, moved.rows);
  EXPECT_ERROR(open_catalog(env_, folder(), place_), ErrorCode::kConflict);
  expect_filled(*open_catalog(env_, folder(), {}).catalog);
}

TEST_F(MoveCatalogTest, ACopyThatWasStoppedGoesOn) {
  fill(*open_catalog(env_, folder(), {}).catalog);
  move_to_database(env_, folder(), place_);
  // As it is when the process ends in the middle of it: the file is there, and some of the rows.
  env_.rename(folder() + "/catalog.db.migrated", folder() + "/catalog.db");
  PgConnection db(postgres_options(place_.url));
  db.run("INSERT INTO counters VALUES('copying', 1)");
  db.run("DELETE FROM tuning_set_records");
  db.run("DELETE FROM tuning_records WHERE seq > 100");
  EXPECT_ERROR(PostgresCatalog(postgres_options(place_.url)), ErrorCode::kConflict);
  const CatalogCopy again = move_to_database(env_, folder(), place_);
  EXPECT_EQ(again.copied, 412);
  expect_filled(*open_catalog(env_, folder(), place_).catalog);
}

TEST_F(MoveCatalogTest, WhatIsNoCopyIsNotTakenForOne) {
  fill(*open_catalog(env_, folder(), {}).catalog);
  {
    PostgresCatalog other(postgres_options(place_.url));
    other.put_fact("another", "catalog");
  }
  EXPECT_ERROR(move_to_database(env_, folder(), place_), ErrorCode::kConflict);
  PgConnection db(postgres_options(place_.url));
  db.run("INSERT INTO counters VALUES('copying', 1)");
  try {
    move_to_database(env_, folder(), place_);
    ADD_FAILURE() << "there is a row too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("table facts has 1 rows in the source and 2 in the target"));
  }
  expect_filled(*open_catalog(env_, folder(), {}).catalog);
}

TEST_F(MoveCatalogTest, NothingIsMovedFromNowhere) {
  EXPECT_ERROR(move_to_database(env_, folder(), place_), ErrorCode::kNotFound);
  fill(*open_catalog(env_, folder(), {}).catalog);
  const StoreCatalog served = open_catalog(env_, folder(), {});
  EXPECT_ERROR(move_to_database(env_, folder(), place_), ErrorCode::kInUse);
}

}  // namespace
}  // namespace tensormill::storage
