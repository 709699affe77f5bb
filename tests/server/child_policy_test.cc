// How many children run side by side, as the settings and the machine say.
#include "server/services/jobs/child_policy.h"

#include <gtest/gtest.h>

// Of its own: files of this folder are compiled together.
namespace tensormill::server::child_policy_test {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

using Flags = std::vector<std::pair<std::string, std::string>>;

jobs::ChildSlotsOptions options_for(const Flags& flags, int cores, uint64_t memory) {
  config::SettingSources sources;
  sources.flags = flags;
  sources.flags.emplace_back("data", "/nowhere");
  return child_slots_options(config::load_settings(sources), cores, memory);
}

TEST(ChildSlotsOptions, AreOfTheMachineWhereNothingIsSet) {
  EXPECT_EQ(options_for({}, 1, 8 * kGiB).requests, 2) << "one must not keep all others waiting";
  EXPECT_EQ(options_for({}, 2, 8 * kGiB).requests, 2);
  EXPECT_EQ(options_for({}, 16, 8 * kGiB).requests, 16);
  EXPECT_EQ(options_for({}, 2, 8 * kGiB).memory, 6 * kGiB);
  EXPECT_EQ(options_for({}, 2, 512 * kGiB).memory, 384 * kGiB);
  const Flags zeros = {{"children.at_once", "0"}, {"children.memory", "0"}};
  EXPECT_EQ(options_for(zeros, 16, 8 * kGiB).requests, 16);
  EXPECT_EQ(options_for(zeros, 16, 8 * kGiB).memory, 6 * kGiB);
}

TEST(ChildSlotsOptions, AreAsTheyAreSetWhateverTheMachine) {
  const jobs::ChildSlotsOptions set = options_for({{"children.at_once", "1"},
                                                   {"children.memory", "12GiB"},
                                                   {"children.queue", "3"},
                                                   {"children.wait", "2s"}},
                                                  16, 8 * kGiB);
  EXPECT_EQ(set.requests, 1);
  EXPECT_EQ(set.memory, 12 * kGiB);
  EXPECT_EQ(set.waiting, 3);
  EXPECT_EQ(set.wait, std::chrono::seconds(2));
}

TEST(ConfinementInfo, NamesTheParentsWatchAloneWhereThereAreNoGroups) {
  const std::string bound = confinement_info({}).memory;
  EXPECT_TRUE(bound.ends_with("the parent's watch")) << bound;
  EXPECT_EQ(bound.find("control group"), std::string::npos) << bound;
}

}  // namespace
}  // namespace tensormill::server::child_policy_test
