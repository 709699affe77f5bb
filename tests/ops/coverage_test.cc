/// Every operator of the registry is complete, and the cases reach all of them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compiler/ops/ops.h"
#include "runtime/base/narrow.h"
#include "tests/ops/cases/cases.h"

namespace tensormill {
namespace {

TEST(Registry, EveryDefinitionIsComplete) {
  EXPECT_GE(ops::standard_ops().all().size(), 90u);
  for (const ir::OpDef& def : ops::standard_ops().all()) {
    SCOPED_TRACE(std::string(def.name));
    EXPECT_NE(def.infer, nullptr);
    EXPECT_NE(def.reference, nullptr);
    EXPECT_FALSE(def.doc.empty());
    EXPECT_TRUE(def.max_inputs < 0 || def.min_inputs <= def.max_inputs);
  }
}

TEST(Cases, ReachEveryOperatorWithEmptyUnitAndPrimeExtents) {
  std::map<std::string, std::set<int64_t>> extents;
  std::map<std::string, std::set<DType>> dtypes;
  for (const ops_cases::Instance& instance : ops_cases::all_instances()) {
    dtypes[instance.source->op].insert(instance.dtype);
    for (const auto& input : instance.inputs) {
      if (input) extents[instance.source->op].insert(input->shape.begin(), input->shape.end());
    }
    for (const ir::ValueType& output : instance.outputs) {
      extents[instance.source->op].insert(output.shape.begin(), output.shape.end());
    }
  }
  const auto is_prime = [](int64_t extent) {
    return extent == 3 || extent == 5 || extent == 7 || extent == 13;
  };
  for (const std::string& name : ops_cases::operator_names()) {
    SCOPED_TRACE(name);
    const std::set<int64_t>& seen = extents[name];
    EXPECT_TRUE(seen.count(0) != 0);
    EXPECT_TRUE(seen.count(1) != 0);
    EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), is_prime));
    EXPECT_FALSE(dtypes[name].empty());
  }
}

TEST(Cases, EveryCaseIsAcceptedForSomeDtype) {
  for (const ops_cases::Case& each : ops_cases::all_cases()) {
    bool accepted = false;
    for (const DTypeInfo& row : all_dtypes()) accepted = accepted || ops_cases::instantiate(each, row.dtype);
    EXPECT_TRUE(accepted) << each.op << " (" << each.variant << ")";
  }
}

TEST(Cases, ProgramsHaveTheInferredTypes) {
  for (const ops_cases::Instance& instance : ops_cases::all_instances()) {
    SCOPED_TRACE(instance.name());
    const te::Program program = ops_cases::make_program(instance);
    ASSERT_EQ(program.outputs.size(), instance.outputs.size());
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      EXPECT_EQ(program.outputs[i]->constant_shape(), instance.outputs[i].shape);
      EXPECT_EQ(program.outputs[i]->dtypes[0], storage_dtype(instance.outputs[i].dtype));
      EXPECT_FALSE(program.outputs[i]->is_placeholder());
    }
  }
}

}  // namespace
}  // namespace tensormill
