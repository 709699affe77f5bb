/// Type rules: what does not fit is refused with both numbers, whatever the numbers are.
#include <gtest/gtest.h>

#include <random>

#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/cases.h"

namespace tensormill {
namespace {

using Ints = std::vector<int64_t>;
using ir::ValueType;

std::vector<ValueType> infer(const std::string& op, const ir::Attrs& attrs,
                             const std::vector<ValueType>& inputs) {
  ir::InferContext context{attrs, {}};
  for (const ValueType& input : inputs) context.inputs.push_back(&input);
  return ops::standard_ops().get(op).infer(context);
}

/// The message of the refusal, or "" when it is accepted.
std::string refusal(const std::string& op, const ir::Attrs& attrs, const std::vector<ValueType>& inputs) {
  try {
    infer(op, attrs, inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel) << error.message();
    return error.message();
  }
  return "";
}

ValueType f32(const Shape& shape) { return {DType::kFloat32, shape}; }
ValueType i64(const Shape& shape) { return {DType::kInt64, shape}; }

TEST(TypeRule, ShapesOfTheMainOperators) {
  const ir::Attrs conv = {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}};
  EXPECT_EQ(infer("conv", conv, {f32({1, 3, 224, 224}), f32({64, 3, 7, 7})})[0], f32({1, 64, 112, 112}));
  const ir::Attrs pool = {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(infer("max_pool", pool, {f32({1, 64, 112, 112})})[0], f32({1, 64, 56, 56}));
  EXPECT_EQ(infer("matmul", {}, {f32({2, 1, 4, 5}), f32({3, 5, 2})})[0], f32({2, 3, 4, 2}));
  EXPECT_EQ(infer("equal", {}, {i64({3, 1}), i64({4})})[0], (ValueType{DType::kBool, {3, 4}}));
  EXPECT_EQ(infer("gather", {{"axis", int64_t{1}}}, {f32({2, 9, 4}), i64({3, 5})})[0], f32({2, 3, 5, 4}));
  EXPECT_EQ(infer("arg_max", {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, {f32({2, 9, 4})})[0],
            i64({2, 4}));
}

TEST(TypeRule, RefusalsNameBothNumbers) {
  EXPECT_EQ(refusal("conv", {}, {f32({1, 3, 8, 8}), f32({4, 2, 3, 3})}),
            "the input has 3 channels, the weights take 2: 2 for each of 1 groups");
  EXPECT_EQ(refusal("conv", {}, {f32({1, 3, 2, 8}), f32({4, 3, 3, 3})}),
            "the window reaches over 3 elements in spatial dimension 0, the padded input has 2");
  EXPECT_EQ(refusal("conv_blocked", {}, {f32({1, 2, 8, 8, 4}), f32({4, 3, 3, 3, 4, 4})}),
            "the input has 2 blocks, the weights take 3 for each of 1 groups");
  EXPECT_EQ(refusal("conv_blocked", {}, {f32({1, 2, 8, 8, 4}), f32({4, 2, 3, 3, 8, 8})}),
            "the input has blocks of 4 channels, the weights of 8 x 8");
  EXPECT_EQ(
      refusal("conv_blocked", {{"channels", int64_t{9}}}, {f32({1, 2, 8, 8, 4}), f32({4, 2, 1, 1, 4, 4})}),
      "attribute channels is 9, expected 1 to 8 (the input's lanes) with one group and a window of one tap");
  EXPECT_EQ(refusal("conv_first", {}, {f32({1, 3, 8, 8}), f32({4, 3, 3, 3})}),
            "input 1 (packed weights) has rank 4, expected 5");
  EXPECT_EQ(refusal("conv_depthwise", {}, {f32({1, 2, 8, 8, 4}), f32({3, 3, 3, 4})}),
            "the input has 2 blocks of 4 channels, the weights 3 of 4");
  EXPECT_EQ(refusal("matmul", {}, {f32({2, 3}), f32({4, 5})}),
            "shapes [2,3] and [4,5] do not multiply: 3 columns and 4 rows");
  EXPECT_EQ(refusal("add", {}, {f32({2, 3}), f32({4})}), "shapes [2,3] and [4] do not broadcast");
  EXPECT_EQ(refusal("add", {}, {f32({2}), i64({2})}), "input 1 has dtype i64, expected one of f32");
  EXPECT_EQ(refusal("softmax", {{"axis", int64_t{2}}}, {f32({3, 3})}), "axis 2 is outside of rank 2");
  EXPECT_EQ(refusal("reshape", {{"shape", Ints{4, 2}}}, {f32({3, 3})}),
            "shape [3,3] with 9 elements does not reshape to [4,2] with 8");
  EXPECT_EQ(refusal("gather", {}, {f32({0, 3}), i64({2})}),
            "axis 0 has extent 0, and 6 elements are gathered from it");
  EXPECT_EQ(refusal("max_pool", {}, {f32({1, 1, 4})}), "attribute kernel is missing");
  EXPECT_EQ(refusal("cast", {{"to", int64_t{1}}}, {f32({1})}), "attribute to is of the wrong kind");
  EXPECT_EQ(refusal("concat", {{"axis", int64_t{0}}}, {f32({1, 2}), f32({1, 3})}),
            "input 1 has shape [1,3], input 0 has [1,2]; they differ outside of axis 0");
}

TEST(TypeRule, HugeNumbersDoNotWrap) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_NE(refusal("expand", {{"shape", Ints{kHuge, 4}}}, {f32({1})}), "");
  EXPECT_NE(refusal("tile", {{"repeats", Ints{int64_t{1} << 39, 1 << 20}}}, {f32({2, 2})}), "");
  EXPECT_NE(refusal("matmul", {}, {f32({1 << 30, 1}), f32({1, 1 << 30})}), "");
  EXPECT_NE(refusal("slice", {{"starts", Ints{0}}, {"extents", Ints{3}}, {"steps", Ints{kHuge}}}, {f32({5})}),
            "");
  EXPECT_NE(refusal("conv", {{"dilations", Ints{kHuge}}}, {f32({1, 1, 9}), f32({1, 1, 3})}), "");
  EXPECT_NE(refusal("pad", {{"pads", Ints{kHuge, kHuge}}}, {f32({5})}), "");
  EXPECT_NE(refusal("relu", {}, {f32({0, kHuge, kHuge})}), "");
  EXPECT_NE(refusal("conv_transpose", {{"strides", Ints{1 << 29}}}, {f32({1, 1, 1 << 20}), f32({1, 1, 1})}),
            "");
  EXPECT_NE(refusal("one_hot", {{"depth", kHuge}}, {i64({8}), f32({2})}), "");
}

/// Attributes and shapes at random: each is accepted with a shape that exists, or refused as invalid_model.
TEST(TypeRule, RandomAttributesAreAcceptedOrRefused) {
  std::mt19937_64 random(3);
  const int64_t values[] = {0, 1, -1, 2, 3, 5, 7, 1 << 20, -9, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  int accepted = 0, refused = 0;
  for (const ops_cases::Instance& instance : ops_cases::all_instances()) {
    if (instance.dtype != DType::kFloat32) continue;
    for (int round = 0; round < 20; ++round) {
      ir::Attrs attrs = instance.source->attrs;
      for (const auto& [name, value] : instance.source->attrs.all()) {
        if (const int64_t* one = std::get_if<int64_t>(&value); one != nullptr && random() % 2 == 0) {
          attrs.set(name, values[random() % std::size(values)]);
        } else if (const Ints* many = std::get_if<Ints>(&value)) {
          Ints changed = *many;
          if (random() % 4 == 0) changed.push_back(1);
          if (!changed.empty()) changed[random() % changed.size()] = values[random() % std::size(values)];
          attrs.set(name, changed);
        }
      }
      ir::InferContext context{attrs, {}};
      std::vector<ValueType> types;
      for (const auto& input : instance.inputs) types.push_back(input.value_or(ValueType{}));
      for (size_t i = 0; i < types.size(); ++i) {
        if (!types[i].shape.empty() && random() % 3 == 0) {
          const int64_t extent = values[random() % std::size(values)];
          types[i].shape[random() % types[i].shape.size()] = extent < 0 ? 4 : extent;
        }
        context.inputs.push_back(instance.inputs[i] ? &types[i] : nullptr);
      }
      try {
        for (const ValueType& type : instance.def->infer(context))
          EXPECT_GE(num_bytes(type.shape, type.dtype), 0);
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidModel) << instance.name() << ": " << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tensormill
