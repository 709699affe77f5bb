#include "compiler/tune/space.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/driver/build_kernel.h"
#include "compiler/tune/cost_model.h"
#include "compiler/tune/tuner.h"
#include "runtime/base/error.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

class SpaceTest : public testing::Test {
protected:
  std::vector<Task> tasks_ = tune_test::matmul_tasks();
  target::Target target_ = tune_test::host_target();
  Space space_{tasks_[0], target_};
};

TEST_F(SpaceTest, TheAnalyticPointIsTheDefaultSchedule) {
  const plan::Kernel& kernel = tasks_[0].kernel;
  EXPECT_EQ(space_.analytic().schedule, schedule::default_schedule(kernel.program, target_));
  EXPECT_GT(space_.size_estimate(), 20U);
  EXPECT_EQ(space_.at(space_.analytic().index)->schedule, space_.analytic().schedule);
}

TEST_F(SpaceTest, IndicesAndPointsAreOneToOne) {
  Random random(1);
  std::set<uint64_t> indices;
  for (int i = 0; i < 100; ++i) {
    const auto point = space_.sample(random);
    ASSERT_TRUE(point);
    indices.insert(point->index);
    const auto again = space_.at(point->index);
    ASSERT_TRUE(again);
    EXPECT_EQ(config_of(again->knobs), config_of(point->knobs));
    EXPECT_EQ(again->schedule, point->schedule);
    EXPECT_NO_THROW(driver::build_loops(tasks_[0].kernel, point->schedule));
  }
  EXPECT_GT(indices.size(), 10U);
  EXPECT_FALSE(space_.at(~uint64_t{0}));
}

TEST_F(SpaceTest, AWalkMeetsEachPointOnce) {
  std::set<uint64_t> indices;
  Space::Walk walk;
  while (const auto point = space_.next(walk)) {
    EXPECT_TRUE(indices.insert(point->index).second);
    ASSERT_LT(indices.size(), 20000U);
  }
  EXPECT_TRUE(indices.count(space_.analytic().index) == 1);
  Random random(4);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(indices.count(space_.sample(random)->index), 1U);
  // The estimate is a mean over descents.
  EXPECT_NEAR(static_cast<double>(space_.size_estimate()), static_cast<double>(indices.size()),
              0.4 * static_cast<double>(indices.size()));
}

TEST_F(SpaceTest, NeighboursDifferInOneChoice) {
  Random random(2);
  for (int i = 0; i < 20; ++i) {
    const auto point = space_.mutate(space_.analytic(), random);
    ASSERT_TRUE(point);
    // A knob whose candidates depend on the changed one may have to be chosen anew.
    EXPECT_EQ(point->knobs.size(), space_.analytic().knobs.size());
  }
}

TEST_F(SpaceTest, AValueThatAKnobLacksIsRefused) {
  const plan::Kernel& kernel = tasks_[0].kernel;
  const std::string& name = space_.analytic().knobs[0].name;
  EXPECT_THROW(schedule::choose_schedule(kernel.program, target_, schedule::choose_from({{name, 12345}})),
               Error);
}

TEST_F(SpaceTest, TunersNeverProposeTwiceAndFindTheMinimum) {
  for (const std::string& name : tuner_names()) {
    CostModel model(ranks(name), 3);
    const auto tuner = make_tuner(name, space_, 3, tasks_[0].key(), model);
    std::set<std::string> seen;
    // A smooth valley around the third candidate of each knob.
    const auto cost = [](const Point& point) {
      double sum = 1;
      for (const schedule::Knob& knob : point.knobs) {
        const double target =
            static_cast<double>(knob.candidates[std::min<size_t>(2, knob.candidates.size() - 1)]);
        sum += (static_cast<double>(knob.chosen) - target) * (static_cast<double>(knob.chosen) - target);
      }
      return sum;
    };
    double best = 1e9;
    for (std::vector<Point> points = tuner->propose(8); !points.empty() && seen.size() < 1000;
         points = tuner->propose(8)) {
      std::vector<Trial> trials;
      for (const Point& point : points) {
        EXPECT_TRUE(seen.insert(schedule::print(point.schedule)).second) << name;
        trials.push_back({point, cost(point)});
        best = std::min(best, trials.back().seconds);
      }
      tuner->observe(trials);
    }
    EXPECT_EQ(best, 1) << name;
  }
  CostModel model(false, 0);
  EXPECT_THROW(make_tuner("psychic", space_, 0, "", model), Error);
}

/// Convolutions as ResNet-18 and MobileNetV2 have them.
struct Layer {
  const char* name;
  const char* graph;
};

class LayerSpaces : public testing::TestWithParam<Layer> {};

TEST_P(LayerSpaces, HoldManySchedulesThatApply) {
  const target::Target target = tune_test::target_of_lanes(16);  // the layers' blocks are of 16 channels
  const std::vector<Task> tasks = tune_test::tasks_of(GetParam().graph, target);
  const Task* conv = nullptr;
  for (const Task& task : tasks) {
    if (conv == nullptr || task.kernel.flops > conv->kernel.flops) conv = &task;
  }
  ASSERT_NE(conv, nullptr);
  const Space space(*conv, target);
  EXPECT_GT(space.size_estimate(), 500U) << conv->name;
  std::set<std::string> schedules;
  Random random(5);
  size_t applied = 0;
  constexpr size_t kDraws = 40;
  for (size_t i = 0; i < kDraws; ++i) {
    const auto point = space.sample(random);
    ASSERT_TRUE(point) << conv->name;
    schedules.insert(schedule::print(point->schedule));
    try {
      driver::build_loops(conv->kernel, point->schedule);
      ++applied;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords) << schedule::print(point->schedule);
    }
  }
  EXPECT_GT(schedules.size() * 10, kDraws * 8) << "few draws may meet";
  EXPECT_GT(applied * 10, kDraws * 9) << "nearly all points have to be of use";
}

constexpr Layer kLayers[] = {
    {"FirstLayer", R"(graph "g" (%x: f32[1,3,224,224], %w: f32[4,3,7,7,16]) {
  %y: f32[1,4,112,112,16] = conv_first(%x, %w) {pads: ints[3, 3, 3, 3], strides: ints[2, 2]}
  return %y
}
)"},
    {"Strided3x3", R"(graph "g" (%x: f32[1,16,14,14,16], %w: f32[32,16,3,3,16,16]) {
  %y: f32[1,32,7,7,16] = conv_blocked(%x, %w) {pads: ints[1, 1, 1, 1], strides: ints[2, 2]}
  return %y
}
)"},
    {"Pointwise", R"(graph "g" (%x: f32[1,6,14,14,16], %w: f32[36,6,1,1,16,16]) {
  %y: f32[1,36,14,14,16] = conv_blocked(%x, %w)
  return %y
}
)"},
    {"Depthwise", R"(graph "g" (%x: f32[1,60,7,7,16], %w: f32[60,3,3,16]) {
  %y: f32[1,60,7,7,16] = conv_depthwise(%x, %w) {pads: ints[1, 1, 1, 1]}
  return %y
}
)"},
};

INSTANTIATE_TEST_SUITE_P(Networks, LayerSpaces, testing::ValuesIn(kLayers),
                         [](const testing::TestParamInfo<Layer>& info) { return info.param.name; });

TEST(Tasks, SelectionsNamePlaces) {
  EXPECT_EQ(parse_selection("all", 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(parse_selection("0,2-3", 4), (std::vector<size_t>{0, 2, 3}));
  for (const char* wrong : {"", "4", "2-1", "a", "0,", "-1", "1-"})
    EXPECT_THROW(parse_selection(wrong, 4), Error) << wrong;
}

}  // namespace
}  // namespace tensormill::tune
