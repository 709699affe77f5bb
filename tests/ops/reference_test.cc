/// References against values worked out by hand: what the tensor expressions are compared with must itself be
/// right.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/cases/cases.h"

namespace tensormill {
namespace {

using Ints = std::vector<int64_t>;
using Reals = std::vector<float>;

template <typename T>
Tensor tensor(Shape shape, const std::vector<T>& values) {
  return Tensor::from<T>(std::move(shape), std::span<const T>(values));
}

/// 0, 1, 2 … as f32.
Tensor counting(const Shape& shape) {
  Tensor result(DType::kFloat32, shape);
  for (int64_t i = 0; i < result.num_elements(); ++i) result.set_element_int(i, i);
  return result;
}

/// Output 0 of an operator on tensors, as doubles.
std::vector<double> run(const std::string& op, const ir::Attrs& attrs, const std::vector<Tensor>& inputs) {
  ops_cases::Case each = {op, "", attrs, {}};
  for (const Tensor& input : inputs)
    each.operands.push_back({.shape = input.shape(), .dtype = input.dtype()});
  const auto instance = ops_cases::instantiate(each, DType::kFloat32);
  EXPECT_TRUE(instance.has_value()) << op;
  if (!instance) return {};
  const Tensor out = ops_cases::run_reference(*instance, inputs).at(0);
  std::vector<double> values;
  for (int64_t i = 0; i < out.num_elements(); ++i) values.push_back(out.element_as_double(i));
  return values;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

TEST(Reference, Convolution) {
  // A 3x3 picture 0..8 under a 2x2 kernel of ones: sums of four neighbours; padding adds zeros.
  const Tensor x = counting({1, 1, 3, 3}), w = tensor<float>({1, 1, 2, 2}, Reals(4, 1));
  expect_near(run("conv", {}, {x, w}), {8, 12, 20, 24});
  expect_near(run("conv", {{"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 2}}}, {x, w}), {0, 3, 9, 24});
  expect_near(run("conv", {{"dilations", Ints{2, 2}}}, {x, w, tensor<float>({1}, {0.5})}),
              {0 + 2 + 6 + 8 + 0.5});
  // The kernel is not flipped.
  expect_near(run("conv", {}, {counting({1, 1, 3}), tensor<float>({1, 1, 2}, {1, 10})}), {10, 21});
  // Two groups: each output channel sees its own input channel.
  expect_near(run("conv", {{"group", int64_t{2}}}, {counting({1, 2, 2}), tensor<float>({2, 1, 1}, {1, -1})}),
              {0, 1, -2, -3});
}

TEST(Reference, DepthToSpace) {
  // Four phases of one channel, a pixel each: 0 1 above 2 3; then two pixels side by side, the first column
  // cut.
  expect_near(run("depth_to_space", {{"blocks", Ints{2, 2}}}, {counting({1, 4, 1, 1})}), {0, 1, 2, 3});
  expect_near(
      run("depth_to_space", {{"blocks", Ints{2, 2}}, {"crops", Ints{0, 1, 0, 0}}}, {counting({1, 4, 1, 2})}),
      {2, 1, 3, 6, 5, 7});
  // Phases of two channels, of which the first stays.
  expect_near(run("depth_to_space", {{"blocks", Ints{2}}, {"channels", int64_t{1}}}, {counting({1, 4, 2})}),
              {0, 4, 1, 5});
}

TEST(Reference, ConvolutionOnBlocks) {
  // Two pixels of four channels 0..3, 4..7 under a 1x1 kernel whose output channel o takes input channel 3 -
  // o.
  Reals reversing(16, 0);
  for (size_t in = 0; in < 4; ++in) reversing[in * 4 + 3 - in] = 1;
  const Tensor x = counting({1, 1, 1, 2, 4}), w = tensor<float>({1, 1, 1, 1, 4, 4}, reversing);
  expect_near(run("conv_blocked", {}, {x, w}), {3, 2, 1, 0, 7, 6, 5, 4});
  // Its last lane left out.
  expect_near(run("conv_blocked", {{"channels", int64_t{3}}}, {x, w}), {0, 2, 1, 0, 0, 6, 5, 4});
  // Two channels of two pixels, 0 1 and 2 3: sums over a window of two, in two output channels, the second
  // doubled.
  const Tensor plain = counting({1, 2, 1, 2});
  const Tensor first = tensor<float>({1, 2, 1, 2, 2}, {1, 2, 1, 2, 1, 2, 1, 2});
  expect_near(run("conv_first", {{"pads", Ints{0, 1, 0, 0}}}, {plain, first}), {2, 4, 6, 12});
  // Channel c of three pixels times its own weights: the one before, and ten times the pixel itself.
  const Tensor pixels = counting({1, 1, 1, 3, 2}), own = tensor<float>({1, 1, 2, 2}, {1, 0, 10, 10});
  expect_near(
      run("conv_depthwise", {{"pads", Ints{0, 1, 0, 0}}}, {pixels, own, tensor<float>({2}, {0.5, 0})}),
      {0.5, 10, 20.5, 30, 42.5, 50});
}

TEST(Reference, TransposedConvolution) {
  const Tensor x = tensor<float>({1, 1, 2}, {1, 2}), w = tensor<float>({1, 1, 3}, {1, 10, 100});
  expect_near(run("conv_transpose", {}, {x, w}), {1, 12, 120, 200});
  expect_near(run("conv_transpose", {{"strides", Ints{2}}}, {x, w}), {1, 10, 102, 20, 200});
  expect_near(run("conv_transpose", {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"output_padding", Ints{1}}},
                  {x, w}),
              {10, 102, 20, 200});
}

TEST(Reference, Products) {
  const Tensor a = counting({2, 3}), b = counting({3, 2});
  expect_near(run("matmul", {}, {a, b}), {10, 13, 28, 40});
  expect_near(run("matmul", {{"transpose_b", int64_t{1}}}, {a, a}), {5, 14, 14, 50});
  expect_near(run("matmul", {{"transpose_a", int64_t{1}}}, {a, a}), {9, 12, 15, 12, 17, 22, 15, 22, 29});
  expect_near(run("matmul", {}, {counting({3}), counting({3})}), {5});
}

TEST(Reference, Pools) {
  const Tensor x = counting({1, 1, 5});
  const ir::Attrs floor = {{"kernel", Ints{2}}, {"strides", Ints{2}}};
  const ir::Attrs ceil = {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}};
  expect_near(run("max_pool", floor, {x}), {1, 3});
  expect_near(run("max_pool", ceil, {x}), {1, 3, 4});
  expect_near(run("avg_pool", ceil, {x}), {0.5, 2.5, 4});
  const ir::Attrs padded = {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}};
  expect_near(run("avg_pool", padded, {x}), {0.5, 2, 3.5});
  ir::Attrs counted = padded;
  counted.set("count_include_pad", int64_t{1});
  expect_near(run("avg_pool", counted, {x}), {1.0 / 3, 2, 7.0 / 3});
}

TEST(Reference, Reductions) {
  const Tensor x = tensor<float>({2, 3}, {1, -2, 3, 4, 5, -6});
  const ir::Attrs rows = {{"axes", Ints{1}}, {"keepdims", int64_t{0}}};
  expect_near(run("reduce_sum", rows, {x}), {2, 3});
  expect_near(run("reduce_mean", {{"axes", Ints{0}}}, {x}), {2.5, 1.5, -1.5});
  expect_near(run("reduce_max", rows, {x}), {3, 5});
  expect_near(run("reduce_min", rows, {x}), {-2, -6});
  expect_near(run("reduce_prod", rows, {x}), {-6, -120});
  expect_near(run("reduce_l1", rows, {x}), {6, 15});
  expect_near(run("reduce_l2", rows, {x}), {std::sqrt(14.0), std::sqrt(77.0)});
  expect_near(run("reduce_sum_square", {}, {x}), {91});
  expect_near(run("reduce_log_sum", rows, {x}), {std::log(2.0), std::log(3.0)});
  expect_near(run("reduce_log_sum_exp", {}, {tensor<float>({2}, {100, 100})}), {100 + std::log(2.0)});
  EXPECT_EQ(run("arg_max", {}, {tensor<float>({4}, {1, 7, 7, 0})}), std::vector<double>{1});
  EXPECT_EQ(run("arg_max", {{"select_last", int64_t{1}}}, {tensor<float>({4}, {1, 7, 7, 0})}),
            std::vector<double>{2});
  EXPECT_EQ(run("arg_min", {}, {tensor<float>({4}, {1, 7, 7, 0})}), std::vector<double>{3});
}

TEST(Reference, Normalizations) {
  const double e = std::exp(1.0), sum = 1 + e + e * e;
  expect_near(run("softmax", {}, {counting({1, 3})}), {1 / sum, e / sum, e * e / sum});
  expect_near(run("log_softmax", {{"axis", int64_t{0}}}, {counting({3})}),
              {-std::log(sum), 1 - std::log(sum), 2 - std::log(sum)});
  const Tensor one = tensor<float>({1}, {1}), two = tensor<float>({1}, {2}), three = tensor<float>({1}, {3});
  // (x - mean 3) * (scale 2 / sqrt(variance 3 + 1)) + bias 1
  expect_near(run("batch_norm", {{"epsilon", 1.0}}, {counting({1, 1, 2}), two, one, three, three}), {-2, -1});
  // Mean 1, variance 1.
  expect_near(run("instance_norm", {{"epsilon", 0.0}}, {tensor<float>({1, 1, 2}, {0, 2}), three, one}),
              {-2, 4});
  // Channels 1, 2, 3 with windows {1,2}, {1,2,3}, {2,3}.
  expect_near(run("lrn", {{"size", int64_t{3}}, {"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}},
                  {tensor<float>({1, 3}, {1, 2, 3})}),
              {1.0 / 6, 2.0 / 15, 3.0 / 14});
}

TEST(Reference, Movement) {
  const Tensor row = counting({4});
  expect_near(run("slice", {{"starts", Ints{3}}, {"extents", Ints{2}}, {"steps", Ints{-2}}}, {row}), {3, 1});
  expect_near(run("pad", {{"pads", Ints{2, 3}}, {"mode", std::string("reflect")}}, {row}),
              {2, 1, 0, 1, 2, 3, 2, 1, 0});
  expect_near(run("pad", {{"pads", Ints{1, 1}}, {"mode", std::string("edge")}}, {row}), {0, 0, 1, 2, 3, 3});
  expect_near(run("pad", {{"pads", Ints{1, 2}}, {"mode", std::string("wrap")}}, {row}),
              {3, 0, 1, 2, 3, 0, 1});
  expect_near(run("pad", {{"pads", Ints{-1, 1}}, {"value", 9.0}}, {row}), {1, 2, 3, 9});
  expect_near(run("tile", {{"repeats", Ints{2}}}, {counting({2})}), {0, 1, 0, 1});
  expect_near(run("transpose", {{"perm", Ints{1, 0}}}, {counting({2, 3})}), {0, 3, 1, 4, 2, 5});
  expect_near(run("concat", {{"axis", int64_t{1}}}, {counting({2, 1}), counting({2, 2})}),
              {0, 0, 1, 1, 2, 3});
  expect_near(run("gather", {{"axis", int64_t{1}}}, {counting({2, 3}), tensor<int64_t>({2}, {-1, 0})}),
              {2, 0, 5, 3});
  expect_near(run("gather_elements", {{"axis", int64_t{1}}},
                  {counting({2, 2}), tensor<int64_t>({2, 2}, {0, 0, 1, 0})}),
              {0, 0, 3, 2});
  expect_near(
      run("cumsum", {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}, {row}),
      {6, 5, 3, 0});
  expect_near(run("trilu", {{"upper", int64_t{0}}, {"k", int64_t{-1}}}, {counting({3, 3})}),
              {0, 0, 0, 3, 0, 0, 6, 7, 0});
  expect_near(
      run("one_hot", {{"depth", int64_t{3}}}, {tensor<int64_t>({3}, {-1, 0, 5}), tensor<float>({2}, {2, 7})}),
      {2, 2, 7, 7, 2, 2, 2, 2, 2});
  expect_near(run("expand", {{"shape", Ints{2, 2}}}, {counting({2, 1})}), {0, 0, 1, 1});
}

TEST(Reference, Elementwise) {
  const Tensor x = tensor<float>({5}, {-2.5, -0.5, 0, 0.5, 2.5});
  expect_near(run("round", {}, {x}), {-2, 0, 0, 0, 2});
  expect_near(run("hard_sigmoid", {}, {x}), {0, 0.4, 0.5, 0.6, 1});
  expect_near(run("hard_swish", {}, {x}), {-2.5 / 12, -0.5 * 2.5 / 6, 0, 0.5 * 3.5 / 6, 2.5 * 5.5 / 6});
  expect_near(run("leaky_relu", {{"alpha", 0.5}}, {x}), {-1.25, -0.25, 0, 0.5, 2.5});
  expect_near(run("gelu", {}, {x}), {-0.015524, -0.154269, 0, 0.345731, 2.484476});
  expect_near(run("elu", {}, {x}), {std::expm1(-2.5), std::expm1(-0.5), 0, 0.5, 2.5});
  expect_near(run("softsign", {}, {x}), {-2.5 / 3.5, -0.5 / 1.5, 0, 0.5 / 1.5, 2.5 / 3.5});
  expect_near(run("mod", {{"fmod", int64_t{1}}}, {x, tensor<float>({1}, {2})}), {-0.5, -0.5, 0, 0.5, 0.5});
  expect_near(run("prelu", {}, {x, tensor<float>({1}, {0.1f})}), {-0.25, -0.05, 0, 0.5, 2.5});
  expect_near(run("clip", {{"min", -1.0}, {"max", 1.0}}, {x}), {-1, -0.5, 0, 0.5, 1});
  Tensor condition(DType::kBool, {2});
  condition.set_element_int(0, 1);
  condition.set_element_int(1, 0);
  expect_near(run("where", {}, {condition, counting({2}), x.reshaped({5, 1})}),
              {0, -2.5, 0, -0.5, 0, 0, 0, 0.5, 0, 2.5});
  expect_near(run("bit_shift", {{"direction", std::string("left")}},
                  {tensor<uint8_t>({2}, {129, 1}), tensor<uint8_t>({2}, {1, 9})}),
              {2, 0});
}

}  // namespace
}  // namespace tensormill
