/// Every operator's cases through the code generator: machine code against the interpreter of the same loop
/// IR, bit for bit, and against the reference.
#include <gtest/gtest.h>

#include <set>

#include "compiler/lower/lower.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/interpret.h"
#include "tests/codegen/support.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::codegen_test {
namespace {

using ops_cases::Instance;

te::Function lowered_kernel(const Instance& instance, const target::Target& target) {
  const te::Program program = ops_cases::make_program(instance);
  return lower::lower(schedule::apply(program, schedule::default_schedule(program, target), "kernel"),
                      target);
}

void check_kernel(const Instance& instance, const target::Target& target) {
  const te::Function function = lowered_kernel(instance, target);
  const std::vector<Tensor> inputs = ops_cases::make_inputs(instance, 1);
  std::vector<Tensor> interpreted = inputs, computed = inputs;
  for (const ir::ValueType& type : instance.outputs) {
    interpreted.push_back(Tensor::zeros(type.dtype, type.shape));
    computed.push_back(Tensor::zeros(type.dtype, type.shape));
  }
  EXPECT_EQ(te::interpret(function, interpreted).code, 0);
  EXPECT_EQ(Kernel(function, target).run(computed, {}, 2).code, 0);
  const std::vector<Tensor> expected = ops_cases::run_reference(instance, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor& actual = computed[inputs.size() + i];
    EXPECT_EQ(difference(actual, interpreted[inputs.size() + i]), "") << "against the interpreter";
    EXPECT_EQ(ops_cases::difference(actual, expected[i],
                                    ops_cases::tolerance_of(*instance.def, expected[i].dtype())),
              "")
        << "against the reference";
  }
}

class Operators : public testing::TestWithParam<std::string> {};

/// f32, or the only dtypes of a case, in every variant; the other dtypes in the operator's first case for
/// each.
TEST_P(Operators, MachineCodeAgreesWithInterpreterAndReference) {
  const target::Target target = host();
  std::set<DType> seen;
  for (const Instance& instance : ops_cases::all_instances()) {
    if (instance.source->op != GetParam()) continue;
    const bool first = seen.insert(instance.dtype).second;
    if (!first && instance.dtype != DType::kFloat32) continue;
    SCOPED_TRACE(instance.name());
    ASSERT_NO_THROW(check_kernel(instance, target));
  }
  EXPECT_FALSE(seen.empty());
}

INSTANTIATE_TEST_SUITE_P(Operators, Operators, testing::ValuesIn(ops_cases::operator_names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace tensormill::codegen_test
