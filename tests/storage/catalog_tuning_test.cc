// Tuning records, sets and facts, as every back end keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CatalogTuningTest : public CatalogTest {
protected:
  static TuningRecordRow record(const std::string& task, const std::string& line, bool imported = false) {
    TuningRecordRow row;
    row.id = digest(line);
    row.task = task;
    row.target = "llvm";
    row.cpu = "cpu";
    row.generator = "g1";
    row.imported = imported;
    row.job = imported ? "" : "job";
    row.line = line;
    return row;
  }
  std::vector<std::string> lines(const TuningFilter& filter) {
    std::vector<std::string> found;
    for (const TuningRecordRow& row : catalog_->list_tuning_records(filter, {}).items)
      found.push_back(row.line);
    return found;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, CatalogTuningTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CatalogTuningTest, RecordsAreFoundByEachPartOfTheirKey) {
  TuningRecordRow other = record("b", "3");
  other.target = "llvm -mcpu=haswell";
  other.cpu = "old";
  other.threads = 4;
  other.generator = "g2";
  EXPECT_EQ(catalog_->put_tuning_records({record("a", "1"), record("b", "2", true), other}), 3);
  EXPECT_EQ(catalog_->put_tuning_records({record("a", "1")}), 0) << "it is there";
  reopen();
  EXPECT_THAT(lines({}), ElementsAre("1", "2", "3"));
  EXPECT_THAT(lines({.tasks = {"b", "c"}}), ElementsAre("2", "3"));
  EXPECT_THAT(lines({.target = "llvm"}), ElementsAre("1", "2"));
  EXPECT_THAT(lines({.cpu = "old"}), ElementsAre("3"));
  EXPECT_THAT(lines({.threads = 1}), ElementsAre("1", "2"));
  EXPECT_THAT(lines({.generator = "g2"}), ElementsAre("3"));
  EXPECT_THAT(lines({.with_imported = false}), ElementsAre("1", "3"));
  EXPECT_THAT(lines({.job = "job"}), ElementsAre("1", "3"));
  EXPECT_THAT(lines({.tasks = {"a"}, .cpu = "old"}), IsEmpty());
}

TEST_P(CatalogTuningTest, TheBestIsTheLastFinalOneElseTheFastest) {
  const auto timed = [](const std::string& task, const std::string& line, int64_t time_ns, bool final,
                        int threads) {
    TuningRecordRow row = record(task, line);
    row.time_ns = time_ns;
    row.final = final;
    row.threads = threads;
    return row;
  };
  catalog_->put_tuning_records({timed("a", "slow", 9, false, 1), timed("a", "fast", 5, false, 1),
                                timed("a", "failed", 0, false, 1), timed("b", "old final", 4, true, 1),
                                timed("b", "final", 7, true, 1), timed("b", "search", 3, false, 1),
                                timed("c", "one", 8, false, 1), timed("c", "two", 6, false, 2),
                                timed("d", "broken", 0, false, 1)});
  const auto best = [&](const TuningFilter& filter, int threads) {
    std::vector<std::string> found;
    for (const TuningRecordRow& row : catalog_->best_tuning_records(filter, threads))
      found.push_back(row.line);
    return found;
  };
  EXPECT_THAT(best({}, 1), ElementsAre("fast", "final", "one"));
  EXPECT_THAT(best({}, 2), ElementsAre("fast", "final", "two"));
  EXPECT_THAT(best({.tasks = {"b", "d"}}, 1), ElementsAre("final"));
  EXPECT_THAT(best({.cpu = "other"}, 1), IsEmpty());
}

TEST_P(CatalogTuningTest, PagesGoOnWhereTheLastOneEnded) {
  catalog_->put_tuning_records({record("a", "1"), record("a", "2"), record("a", "3")});
  const Page<TuningRecordRow> first = catalog_->list_tuning_records({}, {0, 2});
  ASSERT_EQ(first.items.size(), 2U);
  EXPECT_EQ(first.items[1].line, "2");
  const Page<TuningRecordRow> second = catalog_->list_tuning_records({}, {first.next, 2});
  ASSERT_EQ(second.items.size(), 1U);
  EXPECT_EQ(second.items[0].line, "3");
  EXPECT_EQ(second.next, 0);
}

TEST_P(CatalogTuningTest, ASetTakesItsOwnRecordsAlong) {
  catalog_->put_tuning_records({record("a", "1"), record("a", "loose")});
  EXPECT_TRUE(
      catalog_->put_tuning_set({digest("s"), "model", {digest("1"), digest("2")}}, {record("b", "2")}));
  EXPECT_FALSE(catalog_->put_tuning_set({digest("s"), "model", {digest("1"), digest("2")}}, {}));
  EXPECT_TRUE(catalog_->put_tuning_set({digest("t"), "", {digest("2")}}, {}));
  EXPECT_EQ(catalog_->find_tuning_set(digest("s"))->subject, "model");
  EXPECT_THAT(lines({.set = digest("s")}), ElementsAre("1", "2"));
  EXPECT_THAT(lines({.subject = "model"}), ElementsAre("1", "2"));
  EXPECT_THAT(lines({.subject = "other"}), IsEmpty());
  for (const TuningRecordRow& row : catalog_->list_tuning_records({}, {}).items)
    EXPECT_EQ(row.in_set, row.line != "loose") << row.line;
  EXPECT_TRUE(catalog_->remove_tuning_set(digest("s")));
  EXPECT_FALSE(catalog_->remove_tuning_set(digest("s")));
  EXPECT_FALSE(catalog_->find_tuning_set(digest("s")));
  EXPECT_THAT(lines({}), ElementsAre("loose", "2")) << "the other set keeps 2";
}

TEST_P(CatalogTuningTest, OldRecordsGoButForTheBestOfTheirKeyAndThoseOfSetsAndLiveJobs) {
  const auto timed = [](const std::string& task, const std::string& line, int64_t time_ns) {
    TuningRecordRow row = record(task, line);
    row.time_ns = time_ns;
    return row;
  };
  TuningRecordRow live = timed("a", "of a live job", 30);
  live.job = submit("tune");
  TuningRecordRow final = timed("b", "final", 9);
  final.final = true;
  catalog_->put_tuning_records({timed("a", "1st", 10), timed("a", "2nd", 20), timed("a", "3rd", 21),
                                timed("a", "failed", 0), timed("a", "in a set", 40), live, final,
                                timed("b", "search", 5), timed("b", "slow search", 6)});
  catalog_->put_tuning_set({digest("s"), "model", {digest("in a set")}}, {});
  now_ += 1000;
  catalog_->put_tuning_records({timed("a", "young", 50)});
  EXPECT_EQ(catalog_->expire_tuning_records(1001, 2), 0);
  EXPECT_EQ(catalog_->expire_tuning_records(999, 2), 3);
  EXPECT_THAT(lines({}), ElementsAre("1st", "2nd", "in a set", "of a live job", "final", "search", "young"));
  EXPECT_EQ(catalog_->expire_tuning_records(999, 1), 2);
  EXPECT_THAT(lines({}), ElementsAre("1st", "in a set", "of a live job", "final", "young"));
}

TEST_P(CatalogTuningTest, AFactIsKeptUntilALaterOne) {
  EXPECT_FALSE(catalog_->find_fact("kernels"));
  catalog_->put_fact("kernels", "[1]");
  catalog_->put_fact("kernels", "[2]");
  reopen();
  EXPECT_EQ(catalog_->find_fact("kernels"), "[2]");
}

TEST_P(CatalogTuningTest, AJobMayEndAsWhatItTurnedOutToBe) {
  const std::string id = submit("guess");
  JobFinish finish;
  finish.result = "{}";
  finish.resolved = R"({"exact":1})";
  finish.action_key = "exact";
  EXPECT_TRUE(catalog_->finish_job(claim(), finish));
  EXPECT_EQ(job(id).resolved, R"({"exact":1})");
  EXPECT_EQ(catalog_->submit_job(submission("exact")).outcome, SubmitOutcome::kCached);
  EXPECT_EQ(catalog_->submit_job(submission("guess")).outcome, SubmitOutcome::kCreated);
}

}  // namespace
}  // namespace tensormill::storage
