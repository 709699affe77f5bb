// The two forms in which the numbers of a process are told.
#include "server/metrics/registry.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace tensormill::metrics {
namespace {

using Form = Registry::Form;

std::vector<std::string> lines_of(const std::string& text, const std::string& beginning) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(beginning)) lines.push_back(line);
  return lines;
}

TEST(Registry, BucketsShowTheTraceOfTheirLastObservation) {
  const std::string first(32, 'a'), second(32, 'b');
  Registry registry;
  registry.observe("infer_compute_seconds", {{"model", "m"}}, 0.003, first);
  registry.observe("infer_compute_seconds", {{"model", "m"}}, 0.004, second);
  registry.observe("infer_compute_seconds", {{"model", "m"}}, 0.0045);
  registry.observe("infer_compute_seconds", {{"model", "m"}}, 1000, first);
  registry.observe("infer_batch_size", {{"model", "m"}}, 3);
  const auto buckets = lines_of(registry.text(Form::kOpenMetrics), "infer_compute_seconds_bucket");
  std::vector<std::string> shown;
  for (const std::string& line : buckets)
    if (line.find('#') != std::string::npos) shown.push_back(line);
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_TRUE(std::regex_match(
      shown[0], std::regex("infer_compute_seconds_bucket\\{model=\"m\",le=\"0.005\"\\} 3 # \\{trace_id=\"" +
                           second + "\"\\} 0.004 [0-9.e+]+")))
      << shown[0];
  EXPECT_NE(shown[1].find("le=\"+Inf\"} 4 # {trace_id=\"" + first + "\"} 1000 "), std::string::npos)
      << shown[1];
  // The older form has no place for them.
  EXPECT_EQ(registry.text().find('#', registry.text().find("infer_compute_seconds_bucket")),
            registry.text().find("# HELP infer_batch_size"));
}

TEST(Registry, OpenMetricsHasItsNamesAndItsEnd) {
  Registry registry;
  registry.count("http_requests_total", {{"code", "200"}});
  registry.set("jobs_queued", {}, 2);
  registry.observe("infer_batch_size", {}, 3);
  const std::string text = registry.text(Form::kOpenMetrics);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
  EXPECT_EQ(lines_of(text, "# TYPE http_requests "),
            std::vector<std::string>{"# TYPE http_requests counter"});
  EXPECT_EQ(lines_of(text, "http_requests_total{"),
            std::vector<std::string>{"http_requests_total{code=\"200\"} 1"});
  EXPECT_FALSE(lines_of(text, "infer_batch_size_bucket{le=\"4.0\"} 1").empty());
  // Every family is told once, and every counter's name has the ending that the form takes away.
  std::set<std::string> families;
  for (const std::string& line : lines_of(text, "# TYPE "))
    EXPECT_TRUE(families.insert(line.substr(7, line.rfind(' ') - 7)).second) << line;
  for (const std::string& line : lines_of(registry.text(), "# TYPE ")) {
    EXPECT_TRUE(!line.ends_with(" counter") || line.ends_with("_total counter")) << line;
  }
}

}  // namespace
}  // namespace tensormill::metrics
