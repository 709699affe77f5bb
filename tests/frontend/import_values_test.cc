#include <gtest/gtest.h>

#include <cstring>

#include "compiler/ops/ops.h"
#include "tests/frontend/model_bytes.h"

namespace tensormill::frontend::onnx {
namespace {

/// y = Reshape(x, shape) with both as inputs; y's shape is not stated.
ModelSource reshape_model() {
  const std::string node = field(1, "x") + field(1, "shape") + field(2, "y") + field(4, "Reshape");
  const std::string graph = field(1, node) + field(2, "g") + field(11, tensor_value("x", 1, {2, 3})) +
                            field(11, tensor_value("shape", 7, {2})) + field(12, field(1, "y"));
  return source_of(graph);
}

constexpr int64_t kWeights = 2048;

/// y = Add(x, w), whose floats 0, 1, 2 ... start one byte further for each letter of the graph's name.
ModelSource sum_model(const std::string& name) {
  std::string raw(kWeights * sizeof(float), 0);
  for (int64_t i = 0; i < kWeights; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(raw.data() + i * static_cast<int64_t>(sizeof(float)), &value, sizeof(float));
  }
  const std::string node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Add");
  const std::string weights =
      field(1, 0x80) + std::string(1, 0x10) + field(2, 1) + field(8, "w") + long_field(9, raw);
  return source_of(field(1, node) + field(2, name) + long_field(5, weights) +
                   field(11, tensor_value("x", 1, {1})) + field(12, field(1, "y")));
}

/// Of a package with free dims each sample is an import.
TEST(ImportedWeightsTest, WhatCannotStayMappedIsCopiedOnce) {
  for (const std::string name : {"g", "gg", "ggg", "gggg"}) {
    const ModelSource source = sum_model(name);
    const ir::Graph first = import_model(source, {}, ops::standard_ops());
    const ir::Graph second = import_model(source, {}, ops::standard_ops());
    const std::optional<Tensor>& weights = first.value(*first.find_value("w")).constant;
    const std::optional<Tensor>& again = second.value(*second.find_value("w")).constant;
    ASSERT_TRUE(weights && again);
    ASSERT_EQ(weights->num_elements(), kWeights);
    EXPECT_EQ(weights->data(), again->data()) << name;
    for (int64_t i = 0; i < kWeights; ++i) ASSERT_EQ(weights->element_as_double(i), static_cast<double>(i));
  }
}

TEST(InputValuesTest, AValueThatDecidesAboutAShapeIsAskedFor) {
  try {
    import_model(reshape_model(), {}, ops::standard_ops());
    FAIL() << "a shape that nobody knows was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kShapeRequired);
    ASSERT_EQ(error.details().size(), 1u);
    EXPECT_EQ(error.details()[0].pointer, "shape");
  }
}

TEST(InputValuesTest, ABoundInputLeavesTheSignature) {
  ImportOptions options;
  options.input_values["shape"] = Tensor::from<int64_t>({2}, std::vector<int64_t>{3, -1});
  const ir::Graph graph = import_model(reshape_model(), options, ops::standard_ops());
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, "x");
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (Shape{3, 2}));
}

TEST(InputValuesTest, ValuesOfAnotherTypeAndUnknownNamesAreRefused) {
  ImportOptions options;
  options.input_values["shape"] = Tensor::from<float>({2}, std::vector<float>{3, 2});
  EXPECT_THROW(import_model(reshape_model(), options, ops::standard_ops()), Error);
  options.input_values = {{"nothing", Tensor::zeros(DType::kInt64, {2})}};
  EXPECT_THROW(import_model(reshape_model(), options, ops::standard_ops()), Error);
}

}  // namespace
}  // namespace tensormill::frontend::onnx
