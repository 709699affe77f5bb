#include "compiler/tune/records/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/tune/choose.h"
#include "compiler/tune/features.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

using testing::HasSubstr;

Record sample(double seconds = 0.5) {
  Record record;
  record.target = tune_test::host_target().canonical();
  record.task = "matmul_relu";
  record.args = "f32[2,2] -> f32[2,2]";
  record.task_key = std::string(64, 'a');
  record.index = 7;
  record.knobs.push_back({"tile_rows", 0, {}, 3});
  record.schedule = "split s0 i0 3\nvectorize s0 i1\n";
  record.seconds = {seconds, 2 * seconds, seconds / 2};
  record.all_seconds = 1.5;
  record.timestamp = 1000;
  record.codegen = "this compiler";
  record.space_digest = "00";
  record.cpu = "a cpu";
  record.threads = 2;
  record.features.assign(kFeatureCount, 0.25);
  return record;
}

std::string error_of(const std::string& text) {
  try {
    parse_records(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords);
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

/// The sample's line with one value replaced.
std::string changed(const char* pointer, const Json& value) {
  Json json = parse_json(to_line(sample()));
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}

TEST(Record, LayerAndAlgorithmAreOptional) {
  Record record = sample();
  EXPECT_EQ(to_line(record).find("layer"), std::string::npos);
  record.layer = std::string(64, 'c');
  record.algorithm = "F(4,3)";
  EXPECT_EQ(record_from_line(to_line(record)).layer, record.layer);
  EXPECT_EQ(record_from_line(to_line(record)).algorithm, record.algorithm);
  EXPECT_EQ(record.id(), sample().id()) << "what is replayed is the same";
  EXPECT_THAT(error_of(changed("/layer", "here")), HasSubstr("layer is no SHA-256"));
  EXPECT_THAT(error_of(changed("/layer", record.layer)), HasSubstr("algorithm"));
}

TEST(Record, ALineReadsBackAsItWas) {
  const Record record = sample();
  const Record again = record_from_line(to_line(record));
  EXPECT_EQ(to_line(again), to_line(record));
  EXPECT_EQ(again.schedule, record.schedule);
  EXPECT_EQ(again.seconds, record.seconds);
  EXPECT_EQ(again.median_seconds(), 0.5);
  EXPECT_EQ(again.knobs[0].chosen, 3);
  EXPECT_EQ(again.id(), record.id());
  EXPECT_EQ(again.features, record.features);
  const Json json = parse_json(to_line(record));
  EXPECT_EQ(json["input"], Json({record.target, record.task, record.args}));
  EXPECT_EQ(json["config"]["entity"], Json::parse(R"([["tile_rows","ot",3]])"));
  EXPECT_EQ(json["schedule"], Json({"split s0 i0 3", "vectorize s0 i1"}));
}

TEST(Record, FeaturesMayBeMissingOrOfAnotherVersion) {
  Json json = parse_json(to_line(sample()));
  json["features"]["version"] = kFeatureVersion + 1;
  json["features"]["values"] = {1, 2};
  EXPECT_TRUE(record_from_line(json.dump()).features.empty());
  json.erase("features");
  EXPECT_TRUE(record_from_line(json.dump()).features.empty());
}

TEST(Record, WhatIsWrongIsNamedWithItsLine) {
  const std::string good = to_line(sample());
  EXPECT_THAT(error_of(good + "\n\n{"), HasSubstr("line 3"));
  EXPECT_THAT(error_of(changed("/task_key", "abc")), HasSubstr("task_key"));
  EXPECT_THAT(error_of(changed("/version", "0.2")), HasSubstr("version 0.2"));
  EXPECT_THAT(error_of(changed("/schedule/0", "explode s0")), HasSubstr("no primitive 'explode'"));
  EXPECT_THAT(error_of(changed("/schedule/0", "split s0 i0 3\nsplit s0 i1 2")), HasSubstr("one line"));
  EXPECT_THAT(error_of(changed("/result/1", 9)), HasSubstr("0 to 8"));
  EXPECT_THAT(error_of(changed("/result/1", 3)), HasSubstr("no error 3"));
  EXPECT_THAT(error_of(changed("/result/1", 4)), HasSubstr("times and an error"));
  EXPECT_THAT(error_of(changed("/result/0/1", -1)), HasSubstr("no time"));
  EXPECT_THAT(error_of(changed("/result/0/1", 0)), HasSubstr("a time of result is 0"));
  EXPECT_THAT(error_of(changed("/config/index", -1)), HasSubstr("index"));
  EXPECT_THAT(error_of(changed("/config/index", 1.5)), HasSubstr("index"));
  EXPECT_THAT(error_of(changed("/device/threads", 0)), HasSubstr("threads"));
  EXPECT_THAT(error_of(changed("/input", Json::array({1, 2, 3}))), HasSubstr("input[0]"));
  EXPECT_THAT(error_of(changed("/features/values", {1, 2})), HasSubstr("features.values"));
  EXPECT_THAT(error_of(changed("/features/values/3", "1")), HasSubstr("no number"));
  EXPECT_THAT(error_of(changed("/features/values/3", 1e10)), HasSubstr("no number"));
  EXPECT_THAT(error_of("[]"), HasSubstr("no object"));
}

TEST(Record, DamagedLinesOfAFileAreLeftOutAndTold) {
  const std::string good = to_line(sample());
  std::vector<std::string> told;
  const auto tell = [&](const std::string& why) { told.push_back(why); };
  const std::string damaged =
      changed("/schedule/0", "explo") + "\n\n" + changed("/result/0/2", 0) + "\n" + good.substr(0, 80);
  EXPECT_EQ(readable_records(good + "\n" + damaged + "\n" + good, tell).size(), 2U);
  EXPECT_THAT(told, testing::ElementsAre(HasSubstr("line 2: line 1: no primitive 'explo'"),
                                         HasSubstr("line 4: a time of result is 0"), HasSubstr("line 5: ")));
  EXPECT_TRUE(readable_records("\n \n", tell).empty());
  try {
    readable_records(damaged, tell);
    ADD_FAILURE() << "a file without a record was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords);
    EXPECT_THAT(error.message(), HasSubstr("no line is a record: line 1: "));
  }
}

TEST(RecordLog, DropsWhatACrashCutShort) {
  const std::string path = testing::TempDir() + "records-" + std::to_string(::getpid());
  { RecordLog(path).append(sample()); }
  std::ofstream(path, std::ios::app) << to_line(sample()).substr(0, 50);
  {
    RecordLog log(path);
    EXPECT_EQ(parse_records(read_file(path)).size(), 1U);
    log.append(sample(2));
  }
  const std::vector<Record> records = parse_records(read_file(path));
  std::filesystem::remove(path);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].median_seconds(), 2);
}

TEST(ChooseSchedules, TheBestOfThisTargetAndWhyTheOthersNot) {
  const target::Target target = tune_test::host_target();
  Record fast = sample(0.1), final = sample(0.3), foreign = sample(), failed = sample(), old = sample();
  fast.schedule = "unroll s0 i0\n";
  foreign.task_key = std::string(64, 'b');
  foreign.target = "llvm -mcpu=other";
  failed.task_key = std::string(64, 'c');
  failed.seconds.clear();
  failed.error = TrialError::kWrongAnswer;
  old.task_key = std::string(64, 'd');
  old.codegen = "another compiler";
  auto chosen = choose_schedules({sample(), fast, foreign, failed, old}, target, "this compiler");
  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_EQ(chosen.at(fast.task_key).steps, fast.schedule);
  EXPECT_EQ(chosen.at(fast.task_key).record, fast.id());
  EXPECT_EQ(chosen.at(fast.task_key).reason, "");
  EXPECT_EQ(chosen.at(foreign.task_key).reason, "its records are for another target");
  EXPECT_EQ(chosen.at(failed.task_key).reason, "its trials failed");
  EXPECT_EQ(chosen.at(old.task_key).reason, "its records are of another compiler");
  final.final = true;
  chosen = choose_schedules({fast, final}, target, "this compiler");
  EXPECT_EQ(chosen.at(fast.task_key).steps, final.schedule) << "what was measured again counts";
}

}  // namespace
}  // namespace tensormill::tune
