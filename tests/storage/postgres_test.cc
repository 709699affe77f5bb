// What is true of a PostgreSQL catalog alone: many processes, open transactions, versions, lost connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "storage/postgresql/pg_schema.h"
#include "storage/postgresql/postgres_catalog.h"
#include "tests/storage/private_postgres.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PostgresTest : public testing::Test {
protected:
  std::unique_ptr<PostgresCatalog> open() {
    return std::make_unique<PostgresCatalog>(postgres_options(url_));
  }
  static JobSubmission submission(const std::string& key) {
    JobSubmission job;
    job.kind = "compile";
    job.action_key = key;
    return job;
  }
  static std::vector<std::string> jobs_of(const std::vector<PlacedEventRow>& events) {
    std::vector<std::string> jobs;
    for (const PlacedEventRow& row : events) jobs.push_back(row.job);
    return jobs;
  }

  const std::string url_ = fresh_postgres_schema();
};

TEST_F(PostgresTest, NoEventIsSkippedWhileATransactionIsOpen) {
  const auto catalog = open();
  const std::string before = catalog->submit_job(submission("before")).job.id;
  const std::string slow = catalog->submit_job(submission("slow")).job.id;
  const int64_t start = catalog->last_event_position();
  // A transaction that has its place, and no end yet.
  PgConnection other(postgres_options(url_));
  other.begin("READ COMMITTED");
  other.run(
      "INSERT INTO job_events(job, seq, type, data, position) "
      "VALUES(?, 2, 'log', 'slow', CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) << 12)",
      slow);
  const std::string after = catalog->submit_job(submission("after")).job.id;
  EXPECT_EQ(catalog->job_events(after, 0, 9).size(), 1U) << "it is committed";
  EXPECT_THAT(jobs_of(catalog->all_job_events(0, 9)), ElementsAre(before, slow));
  EXPECT_TRUE(catalog->all_job_events(start, 9).empty()) << "what is older may still come";
  EXPECT_LT(catalog->last_event_position(), int64_t{1} << 53) << "places are whole numbers of JavaScript";
  const int64_t meanwhile = catalog->last_event_position();
  other.commit();
  EXPECT_THAT(jobs_of(catalog->all_job_events(start, 9)), ElementsAre(slow, after));
  EXPECT_THAT(jobs_of(catalog->all_job_events(meanwhile, 9)), ElementsAre(slow, after));
}

TEST_F(PostgresTest, AReaderThatFollowsManyWritersSeesEachEventOnce) {
  constexpr int kWriters = 4;
  constexpr int kJobs = 25;
  const auto catalog = open();
  const auto second = open();
  std::vector<std::jthread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      Catalog& own = i % 2 == 0 ? *catalog : *second;
      for (int job = 0; job < kJobs; ++job) {
        own.submit_job(submission(std::to_string(i) + "." + std::to_string(job)));
        // Whoever comes between takes this one's job, and leaves its own.
        std::optional<JobRow> claimed;
        while (!claimed) claimed = own.claim_job({"compile"}, "w", 60'000);
        EXPECT_TRUE(own.finish_job({claimed->id, claimed->attempt, claimed->owner}, {}));
      }
    });
  }
  std::multiset<std::pair<std::string, int64_t>> seen;
  int64_t place = 0;
  // Queued, running, succeeded and the end of each.
  while (seen.size() < size_t{kWriters} * kJobs * 4) {
    for (const PlacedEventRow& row : catalog->all_job_events(place, 100)) {
      EXPECT_GT(row.position, place);
      place = row.position;
      EXPECT_EQ(seen.count({row.job, row.event.sequence - 1}), row.event.sequence == 1 ? 0U : 1U)
          << "in order";
      seen.insert({row.job, row.event.sequence});
    }
  }
  writers.clear();
  EXPECT_TRUE(catalog->all_job_events(place, 100).empty());
  EXPECT_EQ(seen.size(), (std::set(seen.begin(), seen.end()).size()));
}

TEST_F(PostgresTest, TwoProcessesSubmitTheSameWorkOnce) {
  constexpr int kKeys = 20;
  const auto first = open();
  const auto second = open();
  std::vector<std::jthread> callers;
  for (Catalog* catalog : std::initializer_list<Catalog*>{first.get(), second.get()}) {
    callers.emplace_back([catalog] {
      for (int key = 0; key < kKeys; ++key) catalog->submit_job(submission(std::to_string(key)));
    });
  }
  callers.clear();
  EXPECT_EQ(first->count_jobs(JobState::kQueued), kKeys);
  for (const JobRow& job : first->list_jobs({}, {0, 100}).items)
    EXPECT_EQ(job.submitters, 2) << job.action_key;
}

TEST_F(PostgresTest, APackageIsNotRemovedWhileAnotherProcessDeploysIt) {
  constexpr int kRounds = 20;
  const auto first = open();
  const auto second = open();
  for (int round = 0; round < kRounds; ++round) {
    const Digest id = Digest::of(std::to_string(round));
    const PackageRow package{id, {}, id};
    first->put_package(package);
    bool removed = false;
    bool deployed = true;
    std::jthread remover([&] {
      try {
        removed = first->remove_package(package.id);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInUse) << error.what();
      }
    });
    try {
      second->put_deployment({"d" + std::to_string(round), "{}", "{}", {package.id}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
      deployed = false;
    }
    remover.join();
    EXPECT_NE(removed, deployed) << "round " << round;
  }
}

TEST_F(PostgresTest, LeasesGoByTheDatabasesClock) {
  const auto catalog = open();
  catalog->submit_job(submission("k"));
  const JobRow job = catalog->claim_job({"compile"}, "w", 60'000).value();
  PgConnection db(postgres_options(url_));
  const auto row = db.query(
      "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) + 60000 - lease_until_ms FROM "
      "jobs");
  ASSERT_TRUE(row->step());
  EXPECT_GE(row->integer(0), 0);
  EXPECT_EQ(job.lease_until_ms, job.started_ms + 60'000);
}

TEST_F(PostgresTest, AConnectionThatIsLostIsMadeAnewAndNothingIsDoneTwice) {
  const auto catalog = open();
  PgConnection other(postgres_options(url_));
  for (int round = 0; round < 3; ++round) {
    other.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
        "application_name = 'tensormill'");
    EXPECT_EQ(catalog->submit_job(submission(std::to_string(round))).outcome, SubmitOutcome::kCreated);
    other.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
        "application_name = 'tensormill'");
    EXPECT_EQ(catalog->count_jobs(JobState::kQueued), round + 1);
  }
}

TEST_F(PostgresTest, WhatTheDatabaseRefusesIsTheCallersError) {
  const auto catalog = open();
  JobSubmission broken = submission("k");
  broken.subject = std::string("a\0b", 3);
  EXPECT_ERROR(catalog->submit_job(broken), ErrorCode::kInvalidArgument);
  EXPECT_EQ(catalog->submit_job(submission("k")).outcome, SubmitOutcome::kCreated)
      << "the connection is well";
  PgOptions nowhere = postgres_options("postgresql://nobody@/none?host=/nowhere");
  EXPECT_ERROR(PostgresCatalog(std::move(nowhere)), ErrorCode::kUnavailable);
}

TEST_F(PostgresTest, ADatabaseThatDoesNotAnswerIsGivenUpOn) {
  PgOptions options = postgres_options(url_);
  options.patience = std::chrono::milliseconds(200);
  PgConnection db(options);
  db.script("SET statement_timeout = 0");
  EXPECT_ERROR(db.query("SELECT pg_sleep(60)")->step(), ErrorCode::kUnavailable);
  EXPECT_TRUE(db.is_broken());
}

TEST_F(PostgresTest, EventsOfAnotherClusterComeBeforeOurs) {
  constexpr int64_t kFarAhead = int64_t{1} << 50;
  std::string id;
  {
    const auto catalog = open();
    id = catalog->submit_job(submission("k")).job.id;
    PgConnection db(postgres_options(url_));
    db.run("UPDATE job_events SET position = ?", kFarAhead);
  }
  const auto restored = open();
  restored->cancel_job(id);
  EXPECT_EQ(restored->all_job_events(0, 9).size(), 3U);
  EXPECT_EQ(restored->all_job_events(kFarAhead, 9).size(), 2U);
}

/// Announces that the watcher was told.
class ChangeCount {
public:
  std::function<void()> teller() {
    return [this] {
      {
        const std::lock_guard lock(mutex_);
        ++count_;
      }
      condition_.notify_all();
    };
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(condition_.wait_for(lock, std::chrono::seconds(60), [&] { return count_ >= count; }));
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

private:
  std::mutex mutex_;
  std::condition_variable condition_;
  int count_ = 0;
};

TEST_F(PostgresTest, OneProcessTellsTheOtherThatJobsHaveChanged) {
  const auto first = open();
  const auto second = open();
  ChangeCount told_first;
  ChangeCount told_second;
  const auto watch_first = first->watch(told_first.teller());
  const auto watch_second = second->watch(told_second.teller());
  told_first.wait_for(1);
  told_second.wait_for(1);
  const int before = told_second.count();
  first->submit_job(submission("k"));
  told_second.wait_for(before + 1);
}

TEST_F(PostgresTest, AWatcherLooksThoughNobodyCanTellIt) {
  PgOptions options = postgres_options(url_);
  const auto catalog = std::make_unique<PostgresCatalog>(options);
  ChangeCount told;
  const auto watch = catalog->watch(told.teller());
  told.wait_for(1);
  PgConnection other(postgres_options(url_));
  other.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE "
      "'NOTIFY%'");
  told.wait_for(3);
  catalog->submit_job(submission("k"));
}

constexpr std::array<PgMigration, 3> kSteps = {{{"CREATE TABLE a(x BIGINT);", 1},
                                                {"ALTER TABLE a ADD COLUMN y BIGINT;", 1},
                                                {"ALTER TABLE a DROP COLUMN x;", 2}}};

TEST_F(PostgresTest, OlderProgramsWorkOnUntilTheTablesContract) {
  const std::span steps(kSteps);
  PgConnection db(postgres_options(url_));
  migrate_pg(db, steps.first(1));
  migrate_pg(db, steps.first(2));
  migrate_pg(db, steps.first(1));  // N-1 beside N
  EXPECT_EQ(db.run("INSERT INTO a(x, y) VALUES(1, 2)"), 1);
  migrate_pg(db, steps);
  migrate_pg(db, steps.first(2));
  try {
    migrate_pg(db, steps.first(1));
    ADD_FAILURE() << "it would look for what is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_THAT(error.what(), HasSubstr("the catalog has version 3, which programs of version 2 or later"));
    EXPECT_THAT(error.what(), HasSubstr("this one is of version 1"));
  }
}

TEST_F(PostgresTest, BlobsOfOlderRequestsAreNamed) {
  const Digest inputs = Digest::of("inputs"), labels = Digest::of("labels");
  {
    PgConnection db(postgres_options(url_));
    migrate_pg(db, pg_migrations().first(2));
    for (const char* state : {"queued", "failed"}) {
      db.run(
          "INSERT INTO jobs(id, kind, subject, action_key, state, request, resolved, progress, result, "
          "error, attempt, "
          "max_attempts, priority, submitters, cancel_requested, owner, lease_until_ms, not_before_ms, "
          "created_ms, "
          "started_ms, finished_ms, submitter) VALUES(?, 'report', '', 'k', ?, '{}', ?, '{}', '', '', 0, 1, "
          "0, 1, 0, '', "
          "0, 0, 0, 0, 0, '')",
          std::string(state), std::string(state),
          R"({"inputs":")" + inputs.text() + R"(","labels":)" +
              (std::string(state) == "failed" ? "\"" + labels.text() + "\"" : "null") + "}");
    }
  }
  EXPECT_THAT(open()->referenced_blobs(), testing::UnorderedElementsAre(inputs, labels));
}

TEST_F(PostgresTest, SumsAreOfWhatOlderProgramsWriteToo) {
  PgConnection db(postgres_options(url_));
  migrate_pg(db, pg_migrations().first(4));
  const auto write = [&](const std::string& key) {
    const Digest id = Digest::of(key);
    db.run("INSERT INTO models(id, facts, created_ms, owner, bytes) VALUES(?, '', 0, 'alice', 5)", id);
    db.run(
        "INSERT INTO packages(id, archive, archive_bytes, facts, created_ms, last_used_ms, pinned, owner) "
        "VALUES(?, '', 7, '', 0, 0, 0, 'bob')",
        id);
    db.run("INSERT INTO blobs(digest, form, stored_bytes, touched, remover) VALUES(?, 1, 2, 1, '')", id);
    db.run("INSERT INTO uploads(id, owner, key, created_ms, blob, blob_bytes) VALUES(?, '', '', 0, NULL, 0)",
           key);
    db.run("INSERT INTO upload_chunks(upload, begin_at, size, digest) VALUES(?, 0, 9, ?)", key, id);
  };
  write("before");
  const auto catalog = open();
  const auto expect_times = [&](uint64_t count) {
    EXPECT_EQ(catalog->sum_uses().bytes, 12 * count);
    ASSERT_EQ(catalog->list_uses().size(), 2U);
    EXPECT_EQ(catalog->list_uses()[0].bytes, 5 * count);
    EXPECT_EQ(catalog->list_uses()[1].bytes, 7 * count);
    EXPECT_EQ(catalog->sum_blobs().blobs, count);
    EXPECT_EQ(catalog->sum_blobs().compressed, count);
    EXPECT_EQ(catalog->sum_blobs().stored_bytes, 2 * count);
    EXPECT_EQ(catalog->sum_uploads().bytes, 9 * count);
  };
  expect_times(1);
  write("beside it");
  expect_times(2);
  EXPECT_EQ(open()->sum_uses().bytes, 24U) << "another process has the same";
  db.run("DELETE FROM models");
  db.run("DELETE FROM packages");
  EXPECT_EQ(catalog->sum_uses().bytes, 0U);
  EXPECT_TRUE(catalog->list_uses().empty());
}

TEST_F(PostgresTest, NoTransactionWaitsForTheSumOfAnother) {
  const auto catalog = open();
  PgConnection one(postgres_options(url_));
  PgConnection other(postgres_options(url_));
  for (PgConnection* db : {&one, &other}) {
    db->run("SET lock_timeout = 1");
    db->begin("SERIALIZABLE");
  }
  const auto put = [](PgConnection& db, const std::string& key) {
    const Digest id = Digest::of(key);
    db.run("INSERT INTO models(id, facts, created_ms, owner, bytes) VALUES(?, '', 0, 'alice', 5)", id);
    db.run("INSERT INTO blobs(digest, form, stored_bytes, touched, remover) VALUES(?, 1, 2, 1, '')", id);
  };
  // Of the same caller, one between the other's: whoever kept one row for all would wait, or fail at its end.
  put(one, "a");
  put(other, "b");
  put(one, "c");
  put(other, "d");
  EXPECT_EQ(catalog->sum_uses().bytes, 0U);
  one.commit();
  EXPECT_EQ(catalog->sum_uses().bytes, 10U);
  other.commit();
  EXPECT_EQ(catalog->sum_uses().bytes, 20U);
  EXPECT_EQ(catalog->sum_blobs().stored_bytes, 8U);
}

TEST_F(PostgresTest, ProcessesCountTogether) {
  constexpr int kProcesses = 3, kRounds = 15;
  open();
  {
    std::vector<std::jthread> processes;
    for (int process = 0; process < kProcesses; ++process) {
      processes.emplace_back([this, process] {
        const auto catalog = open();
        for (int i = 0; i < kRounds; ++i) {
          ModelRow model{Digest::of(std::to_string(process) + " " + std::to_string(i))};
          model.owner = "alice";
          model.bytes = 2;
          catalog->put_model(model, std::nullopt);
          catalog->put_blob({model.id, 0, 3});
          if (i % 3 == 0) catalog->remove_model(model.id);
        }
      });
    }
  }
  const auto catalog = open();
  EXPECT_EQ(catalog->sum_uses().bytes, 2U * kProcesses * kRounds * 2 / 3);
  EXPECT_EQ(catalog->sum_blobs().stored_bytes, 3U * kProcesses * kRounds);
}

TEST_F(PostgresTest, AStepThatFailsLeavesTheTablesAsTheyWere) {
  constexpr std::array<PgMigration, 2> kBroken = {
      {{"CREATE TABLE a(x BIGINT);", 1}, {"CREATE TABLE a(x BIGINT);", 1}}};
  PgConnection db(postgres_options(url_));
  EXPECT_THROW(migrate_pg(db, kBroken), Error);
  migrate_pg(db, std::span(kBroken).first(1));
  EXPECT_EQ(db.run("INSERT INTO a(x) VALUES(1)"), 1);
}

TEST_F(PostgresTest, ProcessesThatStartTogetherMakeTheTablesOnce) {
  std::vector<std::jthread> processes;
  for (int i = 0; i < 4; ++i) processes.emplace_back([this] { open()->check(); });
  processes.clear();
  EXPECT_TRUE(open()->check().empty());
}

TEST(PgUrlTest, NobodyReadsAlongAndNoSecretStandsInTheUrl) {
  const auto mode = [](const std::string& url) {
    for (const auto& [name, value] : parse_pg_url(url)) {
      if (name == "sslmode") return value;
    }
    return std::string("none");
  };
  EXPECT_EQ(mode("postgresql://u@db.example.org/tm"), "verify-full");
  EXPECT_EQ(mode("postgresql://u@db.example.org/tm?sslmode=verify-full&sslrootcert=/ca.pem"), "verify-full");
  for (const char* local :
       {"postgresql://127.0.0.1/tm", "postgresql://localhost:5433/tm", "postgresql://[::1]/tm",
        "postgresql:///tm?host=/run/postgresql", "postgres://u@/tm"}) {
    EXPECT_EQ(mode(local), "none") << local;
  }
  for (const char* refused :
       {"postgresql://db.example.org/tm?sslmode=require", "postgresql://db/tm?sslmode=disable",
        "postgresql://127.0.0.1,db/tm?sslmode=prefer", "postgresql://u:secret@127.0.0.1/tm",
        "postgresql://127.0.0.1/tm?password=secret", "postgresql://127.0.0.1/tm?hostaddr=10.0.0.1",
        "postgresql://127.0.0.1/tm?service=other", "postgresql://127.0.0.1/tm?unknown=1",
        "mysql://127.0.0.1/tm", "postgresql://127.1.example.org/tm?sslmode=allow",
        "postgresql://u:sec%zz@127.0.0.1/tm"}) {
    try {
      parse_pg_url(refused);
      ADD_FAILURE() << refused;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << refused;
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("sec"))) << refused;
    }
  }
}

}  // namespace
}  // namespace tensormill::storage
