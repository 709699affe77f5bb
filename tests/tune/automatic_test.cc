#include "compiler/schedule/automatic.h"

#include <gtest/gtest.h>

#include <functional>

#include "compiler/driver/build_kernel.h"
#include "compiler/lower/lower.h"
#include "compiler/te/interpret.h"
#include "compiler/tune/space.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/cases.h"
#include "tests/tune/support.h"

namespace tensormill::tune {
namespace {

schedule::Chooser at_random(Random& random) {
  return
      [&random](const schedule::Knob& knob) { return knob.candidates[random.below(knob.candidates.size())]; };
}

/// "" when the program computes what the reference does.
std::string run(const ops_cases::Instance& instance, const te::Program& program,
                const schedule::Schedule& steps, const target::Target& target) {
  const te::Function function = lower::lower(schedule::apply(program, steps, "kernel"), target);
  const std::vector<Tensor> inputs = ops_cases::make_inputs(instance, 1);
  std::vector<Tensor> tensors = inputs;
  for (const ir::ValueType& type : instance.outputs) tensors.push_back(Tensor::zeros(type.dtype, type.shape));
  if (te::interpret(function, tensors).code != 0) return "the kernel failed";
  const std::vector<Tensor> expected = ops_cases::run_reference(instance, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string difference = ops_cases::difference(
        tensors[inputs.size() + i], expected[i], ops_cases::tolerance_of(*instance.def, expected[i].dtype()));
    if (!difference.empty()) return difference;
  }
  return "";
}

using Find = std::function<schedule::Schedule(const ops_cases::Instance& instance, const te::Program& program,
                                              const target::Target& target, const schedule::Chooser& choose)>;

/// An operator, and the floats of a vector: the loops are interpreted, so any will do on any machine.
using Place = std::tuple<std::string, int>;

std::string name_of(const testing::TestParamInfo<Place>& info) {
  return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
}

/// Runs `draws` random points of every case of the operator: what builds has to be right, and most has to
/// build.
void expect_right(const Place& place, int draws, const Find& find) {
  const auto& [op, lanes] = place;
  const target::Target target = tune_test::target_of_lanes(lanes);
  Random random(1);
  size_t tried = 0, built = 0;
  for (const ops_cases::Case& source : ops_cases::all_cases()) {
    const auto instance = ops_cases::instantiate(source, DType::kFloat32);
    if (source.op != op || !instance) continue;
    const te::Program program = ops_cases::make_program(*instance);
    for (int i = 0; i < draws; ++i, ++tried) {
      try {
        const schedule::Schedule steps = find(*instance, program, target, at_random(random));
        EXPECT_EQ(run(*instance, program, steps, target), "") << instance->name() << "\n"
                                                              << schedule::print(steps);
        ++built;
      } catch (const InternalError& error) {
        ADD_FAILURE() << instance->name() << error.what();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords) << instance->name();
      }
    }
  }
  ASSERT_GT(tried, 0U);
  EXPECT_GT(built * 2, tried) << "most choices have to be of use";
}

/// One operator of each class, in all its cases.
class Sketches : public testing::TestWithParam<Place> {};

TEST_P(Sketches, AnyChoiceThatBuildsIsRight) {
  expect_right(GetParam(), 6,
               [](const auto&, const te::Program& program, const target::Target& target,
                  const schedule::Chooser& choose) {
                 return schedule::sketch_schedule(program, target, choose).schedule;
               });
}

class Templates : public testing::TestWithParam<Place> {};

TEST_P(Templates, AnyChoiceThatBuildsIsRight) {
  expect_right(GetParam(), 4,
               [](const ops_cases::Instance&, const te::Program& program, const target::Target& target,
                  const schedule::Chooser& choose) {
                 return schedule::choose_schedule(program, target, choose).schedule;
               });
}

INSTANTIATE_TEST_SUITE_P(Operators, Templates,
                         testing::Combine(testing::Values("conv_first", "conv_blocked", "conv_depthwise",
                                                          "conv_winograd", "matmul_packed", "max_pool",
                                                          "reduce_mean"),
                                          testing::Values(4, 8, 16)),
                         &name_of);

INSTANTIATE_TEST_SUITE_P(Operators, Sketches,
                         testing::Combine(testing::Values("max_pool", "avg_pool", "softmax", "reduce_mean",
                                                          "reduce_max", "add", "layer_norm", "arg_max",
                                                          "matmul", "transpose", "reduce_l2"),
                                          testing::Values(4, 8, 16)),
                         &name_of);

TEST(Automatic, ASpaceHoldsTheTemplateAndSketches) {
  const std::vector<Task> tasks = tune_test::matmul_tasks();
  const Space space(tasks[0], tune_test::host_target(), true);
  const Space plain(tasks[0], tune_test::host_target());
  EXPECT_EQ(space.analytic().schedule, plain.analytic().schedule);
  EXPECT_EQ(space.analytic().knobs[0].name, "sketch");
  Random random(3);
  size_t sketches = 0;
  for (int i = 0; i < 40; ++i) {
    const auto point = space.sample(random);
    if (!point) continue;
    sketches += static_cast<size_t>(point->knobs[0].chosen);
    EXPECT_EQ(space.at(point->index)->schedule, point->schedule);
  }
  EXPECT_GT(sketches, 5U);
  EXPECT_LT(sketches, 35U);
}

}  // namespace
}  // namespace tensormill::tune
