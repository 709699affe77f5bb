// The audit log: what gets a line, and which.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/metrics/audit_log.h"
#include "tests/storage/support.h"

namespace tensormill::metrics {
namespace {

AnsweredRequest request(const std::string& method, const std::string& route, int status) {
  return {"id-1", method, route, route, "ci", "127.0.0.1:5", status, 0.5, ""};
}

TEST(AuditLogTest, IsAboutChangesAndRefusals) {
  EXPECT_TRUE(AuditLog::is_audited(request("PUT", "/v1/deployments/{deployment}", 201)));
  EXPECT_TRUE(AuditLog::is_audited(request("DELETE", "/v1/models/{model}", 404)));
  EXPECT_TRUE(AuditLog::is_audited(request("GET", "/v1/models", 401)));
  EXPECT_TRUE(AuditLog::is_audited(request("POST", "/v2/models/{model}/infer", 403)));
  EXPECT_FALSE(AuditLog::is_audited(request("GET", "/v1/models", 200)));
  EXPECT_FALSE(AuditLog::is_audited(request("POST", "/v2/models/{model}/infer", 200)));
  EXPECT_FALSE(AuditLog::is_audited(request("POST", "/v1/packages/{package}/run", 422)));
}

TEST(AuditLogTest, AppendsOneObjectALine) {
  const storage::TemporaryFolder folder;
  const std::string path = folder.path() + "/audit";
  for (int start = 0; start < 2; ++start) {
    AuditLog log(path);
    EXPECT_TRUE(log.answered(request("POST", "/v1/jobs", 202)));
    EXPECT_TRUE(log.answered(request("GET", "/v1/jobs", 200)));
  }
  std::string text = read_file(path);
  int lines = 0;
  for (size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1), ++lines) {
    const Json line = parse_json(text.substr(0, end));
    EXPECT_EQ(line.at("caller"), "ci");
    EXPECT_EQ(line.at("method"), "POST");
    EXPECT_EQ(line.at("status"), 202);
    EXPECT_EQ(line.at("request_id"), "id-1");
    const std::string ts = line.at("ts");
    EXPECT_EQ(ts.size(), 24U) << ts;
    EXPECT_TRUE(ts[10] == 'T' && ts[19] == '.' && ts.back() == 'Z') << ts;
  }
  EXPECT_EQ(lines, 2);
  EXPECT_TRUE(text.empty());
}

TEST(AuditLogTest, NeedsAPlaceThatCanBeWritten) {
  EXPECT_THROW(AuditLog("/nowhere/audit"), Error);
  AuditLog none("");
  EXPECT_TRUE(none.answered(request("POST", "/v1/jobs", 202)));
}

TEST(AuditLogTest, TellsWhenTheDiskIsFull) {
  AuditLog full("/dev/full");
  EXPECT_FALSE(full.answered(request("POST", "/v1/jobs", 202)));
}

}  // namespace
}  // namespace tensormill::metrics
