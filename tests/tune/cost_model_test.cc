#include "compiler/tune/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/tune/features.h"
#include "compiler/tune/tuner.h"
#include "runtime/base/error.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

/// The middle of a made-up valley over the knobs: how far a point is from it decides its time.
double valley(const Point& point, int64_t shift) {
  double seconds = 1;
  for (const schedule::Knob& knob : point.knobs) {
    const auto last = static_cast<double>(knob.candidates.size() - 1);
    const auto place = static_cast<double>(
        std::find(knob.candidates.begin(), knob.candidates.end(), knob.chosen) - knob.candidates.begin());
    seconds *= 1 + std::abs(place - last / 2 - static_cast<double>(shift)) / (last + 1);
  }
  return 1e-3 * seconds;
}

/// What is to be learned is in a space of one size on every machine: nothing of it runs.
class CostModelTest : public testing::Test {
protected:
  target::Target target_ = tune_test::target_of_lanes(16);
  std::vector<Task> tasks_ = tune_test::matmul_tasks(target_);
  Space space_{tasks_[0], target_};

  std::vector<Point> points(size_t count, uint64_t seed) const {
    Random random(seed);
    std::set<uint64_t> seen;
    return sample_points(space_, random, count,
                         [&](const Point& point) { return seen.insert(point.index).second; });
  }
};

TEST_F(CostModelTest, FeaturesTellPointsApartAndAreTheSameTwice) {
  std::set<std::vector<float>> different;
  const std::vector<Point> sample = points(20, 1);
  for (const Point& point : sample) {
    const std::vector<float> features = space_.features(point);
    EXPECT_EQ(features.size(), kFeatureCount);
    EXPECT_EQ(features, space_.features(point));
    for (float value : features) EXPECT_EQ(value * 64, std::round(value * 64));
    different.insert(features);
  }
  EXPECT_GT(different.size(), sample.size() * 3 / 4);
}

TEST_F(CostModelTest, BothObjectivesLearnTheOrderOfUnseenPoints) {
  for (const bool ranking : {false, true}) {
    CostModel model(ranking, 1), twin(ranking, 1);
    const std::vector<Point> all = points(60, 2);
    ASSERT_GT(all.size(), 40U);
    for (size_t i = 0; i < 32; ++i) {
      for (CostModel* one : {&model, &twin})
        one->add(tasks_[0].key(), space_.features(all[i]), valley(all[i], 0));
    }
    model.update();
    twin.update();
    ASSERT_TRUE(model.is_trained());
    Matrix rows;
    std::vector<double> speed;
    for (size_t i = 32; i < all.size(); ++i) {
      rows.append(space_.features(all[i]));
      speed.push_back(1 / valley(all[i], 0));
    }
    const std::vector<float> scores = model.predict(rows);
    EXPECT_EQ(scores, twin.predict(rows)) << "equal samples give equal models";
    EXPECT_GT(rank_correlation({scores.begin(), scores.end()}, speed), 0.6) << "ranking " << ranking;
  }
}

TEST_F(CostModelTest, HowSlowTheSlowAreDoesNotMatter) {
  CostModel near(false, 1), far(false, 1);
  const std::vector<Point> all = points(40, 5);
  Matrix rows;
  for (const Point& point : all) {
    const double seconds = valley(point, 0);
    rows.append(space_.features(point));
    near.add("a task", space_.features(point), seconds);
    far.add("a task", space_.features(point), 1e-3 + seconds * seconds * seconds);
  }
  near.update();
  far.update();
  EXPECT_EQ(near.predict(rows), far.predict(rows)) << "places, not times";
}

TEST_F(CostModelTest, FailedCandidatesAreTheWorst) {
  CostModel model(false, 1);
  const std::vector<Point> all = points(40, 3);
  for (size_t i = 0; i < all.size(); ++i)
    model.add("a task", space_.features(all[i]), i % 2 == 0 ? 1e-3 : INFINITY);
  model.update();
  Matrix rows;
  for (const Point& point : all) rows.append(space_.features(point));
  const std::vector<float> scores = model.predict(rows);
  double good = 0, bad = 0;
  for (size_t i = 0; i < scores.size(); ++i) (i % 2 == 0 ? good : bad) += scores[i];
  EXPECT_GT(good, bad);
}

TEST_F(CostModelTest, ItIsTrainedFromTheFirstFewAndNotForEachOne) {
  CostModel model(false, 1);
  const std::vector<Point> all = points(CostModel::kFewest, 4);
  for (size_t i = 0; i < all.size(); ++i) {
    model.update();
    EXPECT_FALSE(model.is_trained());
    model.add("a task", space_.features(all[i]), 1e-3);
  }
  model.update();
  EXPECT_TRUE(model.is_trained());
  EXPECT_EQ(model.samples(), CostModel::kFewest);
  EXPECT_EQ(model.samples("a task"), CostModel::kFewest);
  EXPECT_EQ(model.samples("another"), 0U);
  EXPECT_THROW(model.add("a task", {1, 2}, 1), InternalError);
}

double best_after(const std::string& tuner_name, const Space& space, const std::string& key, uint64_t seed,
                  CostModel& model, int64_t shift) {
  const std::unique_ptr<Tuner> tuner = make_tuner(tuner_name, space, seed, key, model);
  double best = 1;
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<Trial> trials;
    for (Point& point : tuner->propose(8)) {
      const double seconds = valley(point, shift);
      best = std::min(best, seconds);
      trials.push_back({std::move(point), seconds});
    }
    tuner->observe(trials);
  }
  return best;
}

TEST_F(CostModelTest, AskingTheModelBeatsDrawingAtRandom) {
  double guided = 0, random = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    CostModel model(false, seed), unused(false, seed);
    guided += best_after("xgb", space_, "a task", seed, model, 0);
    random += best_after("random", space_, "a task", seed, unused, 0);
  }
  EXPECT_LT(guided, random);
}

TEST_F(CostModelTest, ASpaceIsEmptiedWithoutRepetition) {
  CostModel model(true, 1);
  const std::unique_ptr<Tuner> tuner = make_tuner("xgb-rank", space_, 1, "a task", model);
  std::set<std::string> schedules;
  for (int batch = 0; batch < 12; ++batch) {
    std::vector<Trial> trials;
    for (Point& point : tuner->propose(8)) {
      EXPECT_TRUE(schedules.insert(schedule::print(point.schedule)).second) << "proposed twice";
      const double seconds = valley(point, 0);
      trials.push_back({std::move(point), seconds});
    }
    tuner->observe(trials);
  }
  EXPECT_GT(schedules.size(), 20U);
}

TEST(RankCorrelation, OrderAndTies) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {10, 20, 90}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 1, 1}, {3, 2, 1}), 0);
  EXPECT_NEAR(rank_correlation({1, 1, 2}, {1, 2, 3}), 0.866, 1e-3);
}

}  // namespace
}  // namespace tensormill::tune
