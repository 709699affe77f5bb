/// Every operator's default schedule, interpreted before the first and after each lowering pass, against the
/// reference.
#include <gtest/gtest.h>

#include "compiler/lower/lower.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/interpret.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/random_graph.h"
#include "tests/ops/cases/rounding.h"

namespace tensormill {
namespace {

using ops_cases::Instance;

const std::vector<std::string>& targets() {
  static const std::vector<std::string> texts = {
      "llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu -num-cores=2",
      "llvm -mcpu=x86-64 -mtriple=x86_64-linux-gnu -num-cores=1"};
  return texts;
}

/// These show every pass on their own; the other dtypes are run before the first and after the last pass.
bool is_shown_in_full(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kInt64; }

/// Interprets `function` and compares its outputs with `expected`.
void check(const te::Function& function, const Instance& instance, const std::vector<Tensor>& inputs,
           const std::vector<Tensor>& expected) {
  std::vector<Tensor> arguments = inputs;
  for (const ir::ValueType& type : instance.outputs)
    arguments.push_back(Tensor::zeros(type.dtype, type.shape));
  const te::InterpretResult result = te::interpret(function, arguments, {}, 5);
  EXPECT_EQ(result.code, 0);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(ops_cases::difference(arguments[inputs.size() + i], expected[i],
                                    ops_cases::tolerance_of(*instance.def, expected[i].dtype())),
              "");
  }
}

void check_lowering(const Instance& instance, const target::Target& target) {
  const std::vector<Tensor> inputs = ops_cases::make_inputs(instance, 1);
  const std::vector<Tensor> expected = ops_cases::run_reference(instance, inputs);
  const te::Program program = ops_cases::make_program(instance);
  const schedule::Schedule steps = schedule::default_schedule(program, target);
  const te::Function loops = schedule::apply(program, steps, "kernel");
  const te::Function lowered =
      lower::lower(loops, target, [&](std::string_view pass, const te::Function& function) {
        if (!is_shown_in_full(instance.dtype)) return;
        SCOPED_TRACE("after " + std::string(pass));
        check(function, instance, inputs, expected);
      });
  check(loops, instance, inputs, expected);
  check(lowered, instance, inputs, expected);
}

class Lower : public testing::TestWithParam<std::string> {};

TEST_P(Lower, EveryPassKeepsTheValues) {
  int checked = 0;
  for (size_t t = 0; t < targets().size(); ++t) {
    const target::Target target = target::parse_target(targets()[t], target::Target{});
    for (const Instance& instance : ops_cases::all_instances()) {
      if (instance.source->op != GetParam() || (t != 0 && !is_shown_in_full(instance.dtype))) continue;
      SCOPED_TRACE(instance.name() + " on " + targets()[t]);
      ASSERT_NO_THROW(check_lowering(instance, target));
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(Operators, Lower, testing::ValuesIn(ops_cases::operator_names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

/// Many stages of all kinds in one kernel, as fusion makes them.
TEST(LowerGraph, RandomGraphsAsOneKernelKeepTheirValues) {
  const ops_cases::RandomGraphs graphs(
      {.instances = 3, .smooth = true, .dtypes = {DType::kFloat32, DType::kInt32}});
  const target::Target target = target::parse_target(targets()[0], target::Target{});
  ASSERT_GT(graphs.count(), 100u);
  for (size_t index = 0; index < graphs.count(); index += 2) {
    SCOPED_TRACE("graph " + std::to_string(index));
    const ops_cases::RandomGraph random = graphs.make(index);
    const std::vector<Tensor> expected = ir::evaluate_reference(random.graph, random.inputs);
    std::vector<Tensor> inputs = random.inputs;
    for (const Tensor& constant : ops_cases::constants_of(random.graph)) inputs.push_back(constant);
    const te::Program program = ops_cases::graph_program(random.graph);
    const schedule::Schedule steps = schedule::default_schedule(program, target);
    te::Function lowered;
    EXPECT_NO_THROW(lowered = lower::lower(schedule::apply(program, steps, "kernel"), target));
    if (!lowered.body) continue;
    std::vector<Tensor> arguments = inputs;
    for (const Tensor& output : expected) arguments.push_back(Tensor::zeros(output.dtype(), output.shape()));
    ASSERT_EQ(te::interpret(lowered, arguments).code, 0);
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool half = expected[i].dtype() == DType::kFloat16 || expected[i].dtype() == DType::kBFloat16;
      const Tensor& actual = arguments[inputs.size() + i];
      if (ops_cases::difference(actual, expected[i], half ? 0.05 : 1e-3).empty()) continue;
      const std::vector<double> rounding = ops_cases::rounding_of(random.graph, random.inputs)[i];
      EXPECT_EQ(ops_cases::difference(actual, expected[i], half ? 0.05 : 1e-3, rounding), "");
    }
  }
}

TEST(LowerHostile, AnIndexOutOfRangeIsReportedByTheKernel) {
  const ops_cases::Case gather = {
      "gather", "", {}, {{.shape = {3, 2}}, {.shape = {5}, .dtype = DType::kInt64}}};
  const std::optional<Instance> instance = ops_cases::instantiate(gather, DType::kFloat32);
  ASSERT_TRUE(instance.has_value());
  const target::Target target = target::parse_target(targets()[0], target::Target{});
  const te::Program program = ops_cases::make_program(*instance);
  const te::Function lowered =
      lower::lower(schedule::apply(program, schedule::default_schedule(program, target), "kernel"), target);
  for (const int64_t bad : {int64_t{3}, INT64_MAX}) {
    std::vector<Tensor> arguments = {Tensor::zeros(DType::kFloat32, {3, 2}),
                                     Tensor::zeros(DType::kInt64, {5}),
                                     Tensor::zeros(DType::kFloat32, {5, 2})};
    arguments[1].set_element_int(4, bad);
    const te::InterpretResult result = te::interpret(lowered, arguments);
    EXPECT_EQ(result.code, te::kIndexOutOfRange);
    EXPECT_EQ(result.error_index, bad);
  }
}

}  // namespace
}  // namespace tensormill
