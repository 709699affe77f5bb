#include "compiler/tune/features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/driver/build_kernel.h"
#include "tests/ops/cases/cases.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

TEST(Features, EveryOperatorsLoopsHaveThem) {
  const target::Target target = tune_test::host_target();
  size_t count = 0;
  for (const ops_cases::Case& source : ops_cases::all_cases()) {
    const auto instance = ops_cases::instantiate(source, DType::kFloat32);
    if (!instance) continue;
    const te::Program program = ops_cases::make_program(*instance);
    const te::Function loops =
        schedule::apply(program, schedule::default_schedule(program, target), "kernel");
    const std::vector<float> features = loop_features(loops, target.facts);
    EXPECT_EQ(features.size(), kFeatureCount);
    EXPECT_GT(features[0], 0) << instance->name() << ": a store runs";
    for (float value : features) EXPECT_TRUE(std::isfinite(value)) << instance->name();
    ++count;
  }
  EXPECT_GT(count, 100U);
}

te::Function loops_of(int64_t width, const std::vector<schedule::Step>& steps) {
  const std::string shape = "[8," + std::to_string(width) + "]";
  const Task task = tune_test::tasks_of("graph \"one\" (%x: f32" + shape + ") {\n  %y: f32" + shape +
                                        " = relu(%x)\n  return %y\n}\n")[0];
  return driver::build_loops(task.kernel, schedule::Schedule{steps});
}

TEST(Features, LoopsAndAccessesAreCounted) {
  target::CpuFacts facts;
  facts.num_cores = 4;
  const std::vector<float> features =
      loop_features(loops_of(32, {{"parallel", {"s0", "i0"}}, {"vectorize", {"s0", "i1"}}}), facts);
  const auto scaled = [](double value) { return std::round(std::log2(1 + value) * 64) / 64; };
  EXPECT_EQ(features[0], scaled(256)) << "runs";
  EXPECT_EQ(features[1], scaled(1)) << "serial";
  EXPECT_EQ(features[3], scaled(32)) << "vectorized";
  EXPECT_EQ(features[4], scaled(8)) << "parallel";
  EXPECT_EQ(features[5], 2) << "depth";
  const size_t first_access = 31;
  EXPECT_EQ(features[first_access], scaled(1024)) << "bytes that the store touches";
  EXPECT_EQ(features[first_access + 2], scaled(1)) << "its step along the lanes";
  EXPECT_EQ(features[kFeatureCount - 14], scaled(1)) << "stores";
  EXPECT_EQ(features[kFeatureCount - 8], scaled(8)) << "tasks";
  EXPECT_EQ(features[kFeatureCount - 7], 1) << "8 tasks keep 4 cores busy to the end";
}

}  // namespace
}  // namespace tensormill::tune
