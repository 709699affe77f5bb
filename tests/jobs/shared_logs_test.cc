#include "server/jobs/shared_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "storage/env/memory_env.h"

namespace tensormill::jobs {
namespace {

using testing::Each;
using testing::Pair;

constexpr size_t kMostOfALook = size_t{64} << 10;
constexpr uint64_t kMostOfALog = uint64_t{1} << 20;

/// Has logs that others share, and notes what is read of them.
class SharingSource final : public JobSource {
public:
  void take_up(std::chrono::milliseconds) override {}
  std::optional<storage::JobRow> claim(const std::vector<std::string>&, const std::string&,
                                       std::chrono::milliseconds, const std::stop_token&) override {
    return std::nullopt;
  }
  storage::HeartbeatResult heartbeat(const storage::JobClaim&, std::chrono::milliseconds,
                                     const std::optional<std::string>&,
                                     const std::vector<storage::JobEventRow>&) override {
    return {};
  }
  bool finish(const storage::JobClaim&, const storage::JobFinish&) override { return false; }
  bool release(const storage::JobClaim&, const storage::JobRelease&) override { return false; }
  bool is_cancelled(const storage::JobClaim&) override { return false; }
  void set_kill(const std::string&, std::function<void()>) override {}
  void clear_kill(const std::string&) override {}
  void pause(const std::stop_token&) override {}
  std::string shared_log(const storage::JobRow& job, int64_t position, size_t most) override {
    reads.emplace_back(position, most);
    const std::string& log = logs[{job.id, job.attempt}];
    return log.substr(std::min(log.size(), static_cast<size_t>(position)), most);
  }

  std::map<std::pair<std::string, int>, std::string> logs;
  std::vector<std::pair<int64_t, size_t>> reads;  ///< where, and how much at most
};

class SharedLogsTest : public testing::Test {
protected:
  static storage::JobRow running(const std::string& id, int attempt = 1) {
    storage::JobRow job;
    job.id = id;
    job.state = storage::JobState::kRunning;
    job.attempt = attempt;
    return job;
  }
  static std::string text_of(const JobLog& log) {
    std::string text(log.size, '\0');
    const ssize_t count = ::pread(log.file.get(), text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

  storage::MemoryEnv env_;
  SharingSource source_;
  SharedLogs logs_{source_, env_, "/jobs", kMostOfALog};
};

TEST_F(SharedLogsTest, ALongLogIsReadInPartsAndEachByteOnce) {
  std::string& log = source_.logs[{"a", 1}];
  log = std::string(3 * kMostOfALook + 5, 'x');
  const JobLog early = logs_.open(running("a"));
  EXPECT_EQ(text_of(early), log);
  EXPECT_THAT(source_.reads, Each(Pair(testing::Ge(0), testing::Le(kMostOfALook))));
  // Whoever follows it reads what is new, and another who asks reads nothing again.
  const auto read = static_cast<int64_t>(log.size());
  source_.reads.clear();
  log += "more";
  const JobLog late = logs_.open(running("a"));
  EXPECT_EQ(text_of(late), log);
  EXPECT_EQ(text_of(logs_.open(running("a"))), log);
  EXPECT_THAT(source_.reads, Each(Pair(testing::Ge(read), testing::Le(kMostOfALook))));
  EXPECT_EQ(early.size, static_cast<uint64_t>(read)) << "what was opened stays as it is";
}

TEST_F(SharedLogsTest, ALogIsOfOneAttempt) {
  source_.logs[{"a", 1}] = "the first";
  source_.logs[{"a", 2}] = "2nd";
  const JobLog first = logs_.open(running("a", 1));
  EXPECT_EQ(text_of(logs_.open(running("a", 2))), "2nd");
  EXPECT_EQ(text_of(first), "the first");
  source_.logs.clear();
  EXPECT_EQ(text_of(logs_.open(running("a", 2))), "2nd") << "it is known";
  logs_.forget("a");
  EXPECT_EQ(text_of(logs_.open(running("a", 2))), "");
}

TEST_F(SharedLogsTest, NoLogIsLongerThanALogMayBe) {
  source_.logs[{"a", 1}] = std::string(kMostOfALog + 1, 'x');
  EXPECT_EQ(logs_.open(running("a")).size, kMostOfALog);
}

TEST_F(SharedLogsTest, AFewLogsAreKept) {
  constexpr int kLogs = 100;
  for (int i = 0; i < kLogs; ++i) {
    const std::string id = std::to_string(i);
    source_.logs[{id, 1}] = "log of " + id;
    EXPECT_EQ(text_of(logs_.open(running(id))), "log of " + id);
  }
  source_.reads.clear();
  EXPECT_EQ(text_of(logs_.open(running("99"))), "log of 99");
  EXPECT_EQ(source_.reads.at(0).first, 9) << "it is kept";
  source_.reads.clear();
  EXPECT_EQ(text_of(logs_.open(running("0"))), "log of 0");
  EXPECT_EQ(source_.reads.at(0).first, 0) << "others took its place";
}

}  // namespace
}  // namespace tensormill::jobs
