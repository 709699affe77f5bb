// API keys and the audit log in the catalog; who may have a job cancelled or tried again.
#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

class CatalogKeysTest : public CatalogTest {
protected:
  static AuditRow row(const std::string& caller, int64_t ts_ms, int status = 201) {
    return {0, ts_ms, "id", caller, "127.0.0.1:1", "127.0.0.1", "POST", "/v1/jobs", status};
  }
  std::vector<std::string> callers(const AuditFilter& filter = {}) {
    std::vector<std::string> found;
    for (const AuditRow& one : catalog_->list_audit(filter, {0, 500}).items) found.push_back(one.caller);
    return found;
  }
  std::string submit_for(const std::string& caller, const std::string& key) {
    JobSubmission request = submission(key);
    request.submitter = {caller, 0, false};
    return catalog_->submit_job(request).job.id;
  }
  static Submitter user(const std::string& name) { return {name, 0, false}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, CatalogKeysTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& row) { return row.param.name; });

TEST_P(CatalogKeysTest, KeysAreKeptByName) {
  catalog_->put_key({"b", "read", Digest::of("1"), 5, 0});
  catalog_->put_key({"a", "infer:x,read", Digest::of("2"), 6, 7});
  EXPECT_ERROR(catalog_->put_key({"a", "read", Digest::of("3"), 5, 0}), ErrorCode::kNameTaken);
  const auto keys = catalog_->list_keys();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].name, "a");
  EXPECT_EQ(keys[0].scopes, "infer:x,read");
  EXPECT_EQ(keys[0].hash, Digest::of("2"));
  EXPECT_EQ(keys[0].expires_ms, 7);
  EXPECT_TRUE(catalog_->remove_key("a"));
  EXPECT_FALSE(catalog_->remove_key("a"));
}

TEST_P(CatalogKeysTest, TheAuditLogIsBoundedAndStrangersPushNobodyOut) {
  const AuditBounds bounds = {1000, 4};
  catalog_->put_audit({row("alice", now_), row("", now_, 401), row("bob", now_)}, bounds);
  using Names = std::vector<std::string>;
  EXPECT_EQ(callers(), (Names{"bob", "", "alice"}));
  catalog_->put_audit(std::vector<AuditRow>(10, row("", now_, 401)), bounds);
  EXPECT_EQ(callers(), (Names{"", "", "bob", "alice"}));
  catalog_->put_audit(std::vector<AuditRow>(3, row("carol", now_)), bounds);
  EXPECT_EQ(callers(), (Names{"carol", "carol", "carol", "bob"})) << "the oldest, when no stranger is left";
  now_ += 1000;
  catalog_->put_audit({row("dave", now_)}, bounds);
  EXPECT_EQ(callers(), Names{"dave"}) << "older ones are past their time";
  catalog_->put_audit(std::vector<AuditRow>(3, row("erin", now_)), bounds);
  EXPECT_EQ(callers().size(), 4U) << "the count follows what went";
}

TEST_P(CatalogKeysTest, TheAuditLogIsFilteredAndPaged) {
  std::vector<AuditRow> rows;
  for (int i = 1; i <= 5; ++i) rows.push_back(row(i % 2 == 0 ? "even" : "odd", i * 100, 200 + i));
  rows.push_back(row("", 600, 401));
  catalog_->put_audit(rows, {int64_t{1} << 60, 1000});
  AuditFilter odd;
  odd.caller = "odd";
  EXPECT_EQ(callers(odd).size(), 3U);
  AuditFilter nobody;
  nobody.caller = "";
  EXPECT_EQ(callers(nobody).size(), 1U);
  AuditFilter window;
  window.since_ms = 200;
  window.until_ms = 400;
  EXPECT_EQ(callers(window).size(), 2U);
  AuditFilter status;
  status.status = 204;
  EXPECT_EQ(callers(status).size(), 1U);
  AuditFilter method;
  method.method = "GET";
  EXPECT_TRUE(callers(method).empty());
  const auto first = catalog_->list_audit(odd, {0, 2});
  ASSERT_EQ(first.items.size(), 2U);
  EXPECT_EQ(first.items[0].status, 205);
  const auto second = catalog_->list_audit(odd, {first.next, 2});
  ASSERT_EQ(second.items.size(), 1U);
  EXPECT_EQ(second.items[0].status, 201);
  EXPECT_EQ(second.next, 0);
}

TEST_P(CatalogKeysTest, AJobIsCancelledByWhoSubmittedItOrAnAdmin) {
  const std::string id = submit_for("alice", "k");
  EXPECT_ERROR(catalog_->cancel_job(id, user("bob")), ErrorCode::kForbidden);
  EXPECT_EQ(catalog_->find_job(id)->state, JobState::kQueued);
  EXPECT_EQ(catalog_->cancel_job(id, user("alice")).job.state, JobState::kCancelled);
  EXPECT_ERROR(catalog_->cancel_job(id, user("bob")), ErrorCode::kForbidden);
  EXPECT_ERROR(catalog_->retry_job(id, user("bob")), ErrorCode::kForbidden);
  catalog_->retry_job(id, user("alice"));
  EXPECT_EQ(catalog_->cancel_job(id, {"boss", 0, true}).job.state, JobState::kCancelled);
}

TEST_P(CatalogKeysTest, ACancelWithdrawsTheCallersOwnSubmissionsAlone) {
  const std::string id = submit_for("alice", "k");
  EXPECT_EQ(submit_for("bob", "k"), id);
  EXPECT_TRUE(catalog_->cancel_job(id, user("alice")).withdrawn_only);
  EXPECT_TRUE(catalog_->cancel_job(id, user("alice")).withdrawn_only) << "again: bob still wants it";
  EXPECT_EQ(catalog_->find_job(id)->state, JobState::kQueued);
  EXPECT_EQ(catalog_->cancel_job(id, user("bob")).job.state, JobState::kCancelled);
}

TEST_P(CatalogKeysTest, AnAdminStopsAJobForAll) {
  const std::string id = submit_for("alice", "k");
  submit_for("bob", "k");
  EXPECT_EQ(catalog_->cancel_job(id, {"boss", 0, true}).job.state, JobState::kCancelled);
  const std::string again = catalog_->retry_job(id, user("bob")).id;
  EXPECT_EQ(again, id);
  EXPECT_TRUE(catalog_->cancel_job(id, user("alice")).withdrawn_only) << "alice does not want it any more";
  EXPECT_EQ(catalog_->cancel_job(id, user("bob")).job.state, JobState::kCancelled);
}

}  // namespace
}  // namespace tensormill::storage
