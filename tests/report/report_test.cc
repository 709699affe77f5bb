// What a report counts, reads and writes, without packages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/npz/npz.h"
#include "server/report/confusion.h"
#include "server/report/energy.h"
#include "server/report/html.h"
#include "server/report/program_run.h"
#include "server/report/times.h"

namespace tensormill::report {
namespace {

class Folder {
public:
  Folder() : path_(testing::TempDir() + "reportXXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw_errno(errno, path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    write_file(path_ + "/" + name, text);
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

TEST(Confusion, CountsByHand) {
  // Class 3 is never predicted, class 4 never is.
  const Json all = compare_classes({0, 0, 0, 1, 1, 3}, {0, 0, 1, 1, 4, 1}, {"zero", "one"});
  EXPECT_EQ(all["right"], 3);
  EXPECT_DOUBLE_EQ(all["accuracy"].get<double>(), 0.5);
  EXPECT_EQ(all["confusion"], Json::parse("[[2,1,0,0],[0,1,0,1],[0,1,0,0],[0,0,0,0]]"));
  const Json& one = all["classes"][1];
  EXPECT_EQ(one["name"], "one");
  EXPECT_DOUBLE_EQ(one["precision"].get<double>(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(one["recall"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(one["f1"].get<double>(), 0.4);
  EXPECT_TRUE(all["classes"][2]["precision"].is_null());
  EXPECT_TRUE(all["classes"][3]["recall"].is_null());
  EXPECT_EQ(all["classes"][3]["name"], "4");
  // Of the three classes that the truth has.
  EXPECT_DOUBLE_EQ(all["macro_precision"].get<double>(), (1.0 + 1.0 / 3 + 0) / 3);
  EXPECT_DOUBLE_EQ(all["macro_recall"].get<double>(), (2.0 / 3 + 0.5 + 0) / 3);
  EXPECT_EQ(all["most_confused"].size(), 3u);
}

TEST(Confusion, ManyClassesHaveNoMatrixButTheirWorstPairs) {
  std::vector<int64_t> truth, predicted;
  for (int64_t i = 0; i < 201; ++i) {
    truth.push_back(i);
    predicted.push_back(i < 150 ? i : 0);
  }
  truth.insert(truth.end(), {7, 7});
  predicted.insert(predicted.end(), {9, 9});
  const Json all = compare_classes(truth, predicted, {});
  EXPECT_TRUE(all["confusion"].is_null());
  EXPECT_EQ(all["most_confused"].size(), 20u);
  EXPECT_EQ(all["most_confused"][0], (Json{{"truth", "7"}, {"predicted", "9"}, {"samples", 2}}));
}

TEST(Confusion, LabelsThatDoNotFit) {
  EXPECT_THROW(compare_classes({1}, {1, 1}, {}), Error);
  EXPECT_THROW(compare_classes({-1}, {1}, {}), Error);
  EXPECT_THROW(compare_classes({int64_t{1} << 20}, {1}, {}), Error);
}

TEST(Truth, FromEveryForm) {
  const Folder folder;
  const std::vector<int64_t> expected = {2, 0, 1};
  const Tensor tensor = Tensor::from<int64_t>({3}, expected);
  const std::string data(static_cast<const char*>(tensor.data()), tensor.num_bytes());
  EXPECT_EQ(read_truth(folder.write("a.npy", npz::npy_header(DType::kInt64, {3}) + data), {}), expected);
  EXPECT_EQ(read_truth(
                folder.write("a.npz", npz::write_npz(std::vector<npz::NamedTensor>{{"labels", tensor}})), {}),
            expected);
  EXPECT_EQ(read_truth(folder.write("a.txt", "2\r\n0\n1"), {}), expected);
  EXPECT_EQ(read_truth(folder.write("b.txt", "cat\n0\ndog\n"), {"bee", "dog", "cat"}), expected);
  for (const char* text : {"2\nx\n", "2\n\n1", "1.5"})
    EXPECT_THROW(read_truth(folder.write("c.txt", text), {}), Error) << text;
  EXPECT_THROW(
      read_truth(
          folder.write("d.npz", npz::write_npz(std::vector<npz::NamedTensor>{{"a", tensor}, {"b", tensor}})),
          {}),
      Error);
  EXPECT_THROW(read_truth(folder.write("e.npy", npz::npy_header(DType::kFloat32, {0})), {}), Error);
}

TEST(Times, PercentilesAreMembers) {
  std::vector<double> times;
  for (int i = 20; i > 0; --i) times.push_back(i);
  EXPECT_EQ(percentile(times, 0.95), 19);
  EXPECT_EQ(percentile(times, 0.5), 10);
  EXPECT_EQ(percentile(times, 0.999), 20);
  EXPECT_EQ(percentile(times, 0), 1);
  EXPECT_EQ(percentile({3}, 0.5), 3);
  const TimeSummary summary = summarize({1, 3});
  EXPECT_EQ(summary.mean, 2);
  EXPECT_EQ(summary.median, 2);
  EXPECT_EQ(summary.std, 1);
}

TEST(Energy, CountersBeginAgain) {
  const Folder folder;
  for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"}) {
    folder.write(std::string(zone) + "/energy_uj", "5000000\n");
    folder.write(std::string(zone) + "/max_energy_range_uj", "6000000\n");
  }
  EnergyCounter counter(folder.path());
  ASSERT_TRUE(counter.is_readable());
  folder.write("intel-rapl:0/energy_uj", "5500000\n");
  folder.write("intel-rapl:1/energy_uj", "1000000\n");
  EXPECT_DOUBLE_EQ(counter.joules().value(), 0.5 + 2.0);
  EXPECT_DOUBLE_EQ(counter.joules().value(), 0);
  EXPECT_FALSE(EnergyCounter(folder.path() + "/none").joules().has_value());
}

TEST(Html, TextStaysText) {
  EXPECT_EQ(escape("<b a=\"'&\">"), "&lt;b a=&quot;&#39;&amp;&quot;&gt;");
  EXPECT_EQ(escape("a\x1b[2J\nb\x7f"), "a\xEF\xBF\xBD[2J b\xEF\xBF\xBD");
  EXPECT_EQ(escape("a\u202Eb\u2066c\u200F"), "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(escape("größe \u2013 \u200B"), "größe \u2013 \u200B");
  const std::string chart = bar_chart("<script>", {{"</svg><script>", 2, "\"2\""}, {"b", 0, "0"}});
  EXPECT_EQ(chart.find("<script"), std::string::npos);
  EXPECT_EQ(chart.find("</svg>"), chart.size() - 7);
}

TEST(ProgramRun, SaysWhatItTook) {
  const ProgramRun run = run_program("/bin/sh", {"-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.out, "out\n");
  EXPECT_EQ(run.err, "err\n");
  EXPECT_GT(run.max_resident_bytes, 0);
  EXPECT_EQ(run_program("/bin/sh", {"-c", "kill -9 $$"}).exit_code, 128 + 9);
  EXPECT_THROW(run_program("/none", {}), Error);
}

}  // namespace
}  // namespace tensormill::report
