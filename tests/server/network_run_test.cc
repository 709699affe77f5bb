/// A package's runs as tuning compares them: at which extents, and in which order.
#include "server/services/jobs/network_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tensormill::server {
namespace {

using ::testing::ElementsAre;

TEST(NetworkRun, PackagesRunInTurnsAtEachOfTheExtents) {
  std::vector<std::string> runs;
  const auto first_run_ms = [](const std::vector<int64_t>& dims) { return static_cast<double>(dims[0]); };
  const auto run = [&](int round, bool is_tuned, const std::vector<int64_t>& dims, int number) {
    runs.push_back(std::to_string(round) + (is_tuned ? " tuned " : " untuned ") + std::to_string(dims[0]) +
                   " x " + std::to_string(number));
    return tune::NetworkRun{{static_cast<double>(dims[0]) / (is_tuned ? 2 : 1)}, {}};
  };
  const tune::NetworkRounds rounds = rounds_of(2, {{1}, {4}}, first_run_ms, run);
  EXPECT_THAT(runs, ElementsAre("0 untuned 1 x 20", "0 tuned 1 x 20", "0 untuned 4 x 5", "0 tuned 4 x 5",
                                "1 untuned 1 x 20", "1 tuned 1 x 20", "1 untuned 4 x 5", "1 tuned 4 x 5"));
  ASSERT_EQ(rounds.untuned.size(), 2U);
  ASSERT_EQ(rounds.tuned.size(), 2U);
  EXPECT_NEAR(rounds.untuned[1].seconds.at(0), 2, 1e-12) << "the geometric mean";
  EXPECT_NEAR(rounds.tuned[1].seconds.at(0), 1, 1e-12);
}

}  // namespace
}  // namespace tensormill::server
