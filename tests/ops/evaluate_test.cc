/// The tensor expression of every operator against its reference, on all cases and dtypes.
#include <gtest/gtest.h>

#include "compiler/te/interpret.h"
#include "tests/ops/cases/cases.h"

namespace tensormill {
namespace {

class Evaluate : public testing::TestWithParam<std::string> {};

TEST_P(Evaluate, AgreesWithTheReference) {
  int checked = 0;
  for (const ops_cases::Instance& instance : ops_cases::all_instances()) {
    if (instance.source->op != GetParam()) continue;
    SCOPED_TRACE(instance.name());
    const std::vector<Tensor> inputs = ops_cases::make_inputs(instance, 1);
    const std::vector<Tensor> expected = ops_cases::run_reference(instance, inputs);
    const std::vector<Tensor> actual = te::evaluate(ops_cases::make_program(instance), inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(ops_cases::difference(actual[i], expected[i],
                                      ops_cases::tolerance_of(*instance.def, expected[i].dtype())),
                "");
    }
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(Operators, Evaluate, testing::ValuesIn(ops_cases::operator_names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace tensormill
