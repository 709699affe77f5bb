/// Data that strangers send: whatever it is, an operator has a defined value or a clear error.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/te/interpret.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/cases.h"

namespace tensormill {
namespace {

using ops_cases::Case;
using ops_cases::Instance;

/// Whether extreme values of any operand are defined exactly.
bool is_exact(const Instance& instance) {
  if (instance.def->tolerance != 0) return false;
  for (const ops_cases::Operand& operand : instance.source->operands) {
    if (operand.fill == ops_cases::Fill::kIndex) return false;
  }
  return true;
}

TEST(Hostile, ExactOperatorsAgreeOnExtremeValues) {
  int checked = 0;
  for (const Instance& instance : ops_cases::all_instances()) {
    if (!is_exact(instance)) continue;
    SCOPED_TRACE(instance.name());
    std::vector<Tensor> inputs;
    for (const auto& type : instance.inputs) {
      if (type) inputs.push_back(ops_cases::make_hostile(type->shape, type->dtype, 7 + inputs.size()));
    }
    const std::vector<Tensor> expected = ops_cases::run_reference(instance, inputs);
    const std::vector<Tensor> actual = te::evaluate(ops_cases::make_program(instance), inputs);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_EQ(ops_cases::difference(actual[i], expected[i], 0), "");
    ++checked;
  }
  EXPECT_GT(checked, 500);
}

Tensor reference_of(const Case& each, DType dtype, const std::vector<Tensor>& inputs) {
  const std::optional<Instance> instance = ops_cases::instantiate(each, dtype);
  EXPECT_TRUE(instance.has_value());
  return ops_cases::run_reference(*instance, inputs).at(0);
}

template <typename T>
Tensor vector_of(std::vector<T> values) {
  return Tensor::from<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

TEST(Hostile, IntegerDivisionIsDefined) {
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
  const std::vector<Tensor> inputs = {vector_of<int32_t>({5, -7, kLowest, kLowest, 7, -7}),
                                      vector_of<int32_t>({0, 2, -1, 0, -2, 0})};
  const Case div = {"div", "", {}, {{.shape = {6}}, {.shape = {6}}}};
  const Tensor quotient = reference_of(div, DType::kInt32, inputs);
  const std::vector<int32_t> quotients = {0, -3, kLowest, 0, -3, 0};
  const Case mod = {"mod", "", {}, {{.shape = {6}}, {.shape = {6}}}};
  const Tensor rest = reference_of(mod, DType::kInt32, inputs);
  const std::vector<int32_t> rests = {0, 1, 0, 0, -1, 0};
  const Case fmod = {"mod", "", {{"fmod", int64_t{1}}}, {{.shape = {6}}, {.shape = {6}}}};
  const Tensor remainder = reference_of(fmod, DType::kInt32, inputs);
  const std::vector<int32_t> remainders = {0, -1, 0, 0, 1, 0};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(quotient.values<int32_t>()[i], quotients[i]) << i;
    EXPECT_EQ(rest.values<int32_t>()[i], rests[i]) << i;
    EXPECT_EQ(remainder.values<int32_t>()[i], remainders[i]) << i;
  }
}

TEST(Hostile, FloatToIntegerSaturates) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const std::vector<Tensor> inputs = {
      vector_of<float>({nan, infinity, -infinity, 300.0f, -300.0f, -1.9f, 1.9f})};
  const Case to_i8 = {"cast", "", {{"to", DType::kInt8}}, {{.shape = {7}}}};
  const Case to_u8 = {"cast", "", {{"to", DType::kUInt8}}, {{.shape = {7}}}};
  const std::vector<int> as_i8 = {0, 127, -128, 127, -128, -1, 1}, as_u8 = {0, 255, 0, 255, 0, 0, 1};
  const Tensor i8 = reference_of(to_i8, DType::kFloat32, inputs),
               u8 = reference_of(to_u8, DType::kFloat32, inputs);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(i8.values<int8_t>()[i], as_i8[i]) << i;
    EXPECT_EQ(u8.values<uint8_t>()[i], as_u8[i]) << i;
  }
}

TEST(Hostile, NanGoesThroughReluClipPoolMaxAndReductions) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Tensor> row = {Tensor::from<float>({1, 1, 3}, std::vector<float>{1.0f, nan, -2.0f})};
  for (const auto& [op, attrs] :
       std::vector<std::pair<std::string, ir::Attrs>>{{"relu", {}},
                                                      {"clip", {{"min", 0.0}, {"max", 1.0}}},
                                                      {"max_pool", {{"kernel", std::vector<int64_t>{2}}}},
                                                      {"avg_pool", {{"kernel", std::vector<int64_t>{2}}}},
                                                      {"reduce_max", {}},
                                                      {"reduce_min", {}},
                                                      {"softmax", {}},
                                                      {"hard_sigmoid", {}},
                                                      {"leaky_relu", {}},
                                                      {"sign", {}}}) {
    const Case each = {op, "", attrs, {{.shape = {1, 1, 3}}}};
    const Tensor out = reference_of(each, DType::kFloat32, row);
    bool found = false;
    for (const float value : out.values<float>()) found = found || std::isnan(value);
    EXPECT_TRUE(found) << op;
  }
}

TEST(Hostile, IndexOutOfRangeIsAnErrorOfTheData) {
  const Case gather = {"gather", "", {}, {{.shape = {3, 2}}, {.shape = {2}, .dtype = DType::kInt64}}};
  const std::optional<Instance> instance = ops_cases::instantiate(gather, DType::kFloat32);
  ASSERT_TRUE(instance.has_value());
  for (const int64_t bad :
       {int64_t{3}, int64_t{-4}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    const std::vector<Tensor> inputs = {Tensor::zeros(DType::kFloat32, {3, 2}), vector_of<int64_t>({0, bad})};
    try {
      ops_cases::run_reference(*instance, inputs);
      FAIL() << "index " << bad << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTensorData);
      EXPECT_NE(error.message().find(std::to_string(bad)), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace tensormill
