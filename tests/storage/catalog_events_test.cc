// What every back end keeps of all jobs together: their events in one order, and for how long ended jobs
// stay.
#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;

class CatalogEventsTest : public CatalogTest {
protected:
  std::string ended(const std::string& key, JobState state, const std::optional<PackageRow>& with = {}) {
    const std::string id = submit(key);
    JobFinish finish;
    finish.state = state;
    finish.package = with;
    finish.log = digest("log of " + key);
    EXPECT_TRUE(catalog_->finish_job(claim(), finish));
    return id;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, CatalogEventsTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CatalogEventsTest, EventsOfAllJobsAreInOrderOfArrival) {
  EXPECT_EQ(catalog_->last_event_position(), 0);
  const std::string first = submit("one");
  const std::string second = submit("two");
  catalog_->cancel_job(first);
  std::vector<std::string> jobs;
  std::vector<int64_t> places;
  for (const PlacedEventRow& row : catalog_->all_job_events(0, 100)) {
    EXPECT_GT(row.position, places.empty() ? 0 : places.back());
    jobs.push_back(row.job);
    places.push_back(row.position);
  }
  ASSERT_THAT(jobs, ElementsAre(first, second, first, first));
  EXPECT_GE(catalog_->last_event_position(), places.back());
  EXPECT_TRUE(catalog_->all_job_events(catalog_->last_event_position(), 9).empty());
  const std::vector<PlacedEventRow> rest = catalog_->all_job_events(places[1], 1);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].position, places[2]);
  EXPECT_EQ(rest[0].event.sequence, 2);
  EXPECT_EQ(rest[0].event.data, catalog_->job_events(first, 1, 1).at(0).data);
  reopen();
  EXPECT_EQ(catalog_->all_job_events(places[2], 100).at(0).event.type, "end");
}

TEST_P(CatalogEventsTest, EndedJobsGoAfterTheirTimeButForThoseWhosePackageIsThere) {
  const std::string failed = ended("failed", JobState::kFailed);
  const std::string kept = ended("kept", JobState::kSucceeded, package("p"));
  now_ += 1000;
  const std::string later = ended("later", JobState::kFailed);
  const std::string live = submit("live");
  EXPECT_EQ(catalog_->expire_jobs(1001), 0);
  EXPECT_EQ(catalog_->expire_jobs(1000), 1);
  EXPECT_FALSE(catalog_->find_job(failed));
  EXPECT_TRUE(catalog_->job_events(failed, 0, 9).empty());
  EXPECT_THAT(catalog_->referenced_blobs(), testing::Not(testing::Contains(digest("log of failed"))));
  for (const std::string& id : {kept, later, live}) EXPECT_TRUE(catalog_->find_job(id)) << id;
  EXPECT_TRUE(catalog_->remove_package(digest("p")));
  now_ += 5000;
  EXPECT_EQ(catalog_->expire_jobs(1000), 2);
  EXPECT_TRUE(catalog_->find_job(live));
  // No position is used twice, though the latest events went.
  const int64_t last = catalog_->last_event_position();
  submit("next");
  ASSERT_EQ(catalog_->all_job_events(last, 9).size(), 1U);
  EXPECT_GT(catalog_->all_job_events(last, 9)[0].position, last);
}

TEST_P(CatalogEventsTest, AnIdempotencyKeyOfAnExpiredJobMakesANewOne) {
  JobSubmission asked = submission("k");
  asked.idempotency_key = "key";
  const std::string id = catalog_->submit_job(asked).job.id;
  catalog_->cancel_job(id);
  now_ += 1000;
  EXPECT_EQ(catalog_->expire_jobs(1000), 1);
  EXPECT_NE(catalog_->submit_job(asked).job.id, id);
}

}  // namespace
}  // namespace tensormill::storage
