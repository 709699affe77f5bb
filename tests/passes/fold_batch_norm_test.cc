/// Folded normalizations: constants that their type holds, and the results of the unfolded graph.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;

struct Norm {
  DType dtype = DType::kFloat32;
  double scale = 1, bias = 0, mean = 0, variance = 1;
  bool conv = false;  ///< behind a convolution of one channel by `weight`
  double weight = 1;
};

Tensor filled(DType dtype, Shape shape, double value) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element(i, value);
  return tensor;
}

ir::Graph graph_of(const Norm& norm) {
  ir::Graph graph(ops::standard_ops());
  ir::ValueId x = graph.add_input("x", {norm.dtype, {1, 1, 2, 3}});
  if (norm.conv)
    x = graph.add_node("conv",
                       {x, graph.add_constant("w", filled(norm.dtype, {1, 1, 1, 1}, norm.weight))})[0];
  std::vector<ir::ValueId> inputs = {x};
  for (const double value : {norm.scale, norm.bias, norm.mean, norm.variance})
    inputs.push_back(graph.add_constant(graph.unique_name("c"), filled(norm.dtype, {1}, value)));
  graph.set_outputs(graph.add_node("batch_norm", inputs, {{"epsilon", 1e-5}}));
  return graph;
}

/// Both graphs' results on `x` are within `tolerance` of each other, relative to the larger of 1 and the
/// result; gives how many normalizations stay.
int64_t expect_same(const Norm& norm, double x, double tolerance) {
  const ir::Graph graph = graph_of(norm);
  const ir::Graph folded = passes::fold_batch_norm(graph, {});
  ir::verify(folded);
  for (const ir::Value& value : folded.values()) {
    if (!value.constant) continue;
    for (int64_t i = 0; i < value.constant->num_elements(); ++i)
      EXPECT_TRUE(std::isfinite(value.constant->element_as_double(i))) << value.name;
  }
  const Tensor input = filled(norm.dtype, {1, 1, 2, 3}, x);
  const double before = ir::evaluate_reference(graph, {input})[0].element_as_double(0);
  const double after = ir::evaluate_reference(folded, {input})[0].element_as_double(0);
  EXPECT_TRUE(std::isfinite(before));
  EXPECT_NEAR(after, before, tolerance * std::max(1.0, std::fabs(before)));
  return count(folded, "batch_norm");
}

TEST(FoldBatchNorm, OfSixteenBitsIsComputedInThirtyTwo) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const double ulp = dtype == DType::kFloat16 ? 0x1p-10 : 0x1p-7;
    // Pictures of 0 to 255 whose variance is small: mean * s is 200 / 0.003, of which the sum would lose 17
    // bits.
    EXPECT_EQ(expect_same({dtype, 2, 1, 200, 1e-5}, 200, ulp), 1);
    EXPECT_EQ(expect_same({dtype, 2, 1, 200, 1}, 200, ulp), 0);
    EXPECT_EQ(expect_same({dtype, 1, 0.5, 120, 60}, 121, ulp), 0);
    EXPECT_EQ(expect_same({dtype, 0.5, -3, -1000, 4e4}, -990, ulp), 0);
  }
}

TEST(FoldBatchNorm, BehindAConvolutionNeedsWeightsThatTheTypeHolds) {
  EXPECT_EQ(expect_same({DType::kFloat16, 1, 0.5, 2, 4, true, 0.5}, 3, 0x1p-9), 0);
  // The weight 400 * 316 overflows; a product and a sum in 32 bits behind the convolution do not.
  EXPECT_EQ(expect_same({DType::kFloat16, 100, 0, 0, 0.1, true, 400}, 0.001, 0x1p-9), 0);
  // The shift of -300 would cost a result near 0 its digits, which it does not in 32 bits.
  EXPECT_EQ(expect_same({DType::kFloat16, 1, 0, 600, 4, true, 300}, 2, 0x1p-9), 0);
  EXPECT_EQ(expect_same({DType::kFloat32, 1e30, 0, 2, 1, true, 1e30}, 2e-30, 1e-6), 0);
}

TEST(FoldBatchNorm, NearTheEndsOfFloatsStaysAsItIs) {
  // mean * s passes the largest float, x - mean is 0.
  EXPECT_EQ(expect_same({DType::kFloat32, 100, 3, 1e37, 1}, 1e37, 1e-6), 1);
  // x * s passes it, x * s - mean * s does not.
  EXPECT_EQ(expect_same({DType::kFloat32, 1, 0, 3e38, 0.5}, 3.1e38, 1e-5), 1);
  // s has lost its digits.
  EXPECT_EQ(expect_same({DType::kFloat32, 1e-30, 0, 0, 1e25}, 1e38, 1e-5), 1);
  EXPECT_EQ(expect_same({DType::kFloat64, 100, 3, 1e37, 1e74}, 2e37, 1e-12), 0);
}

TEST(FoldBatchNorm, FarFromTheDeviationsStaysAsItIs) {
  for (const bool conv : {false, true}) {
    for (const double mean : {1.0, 30.0, 400.0, 1e3, 1e5, -1e6, 3e7}) {
      for (const double deviation : {-2.0, 0.25, 1.0}) {
        // Results of one to a few: x - mean is exact there, and what is folded may cost nine of 24 bits.
        const double x = static_cast<double>(static_cast<float>(mean + deviation));
        Norm norm{DType::kFloat32, 1, 0.5, mean, 1, conv};
        const int64_t left = expect_same(norm, x, 0x1p-13);
        EXPECT_EQ(left, std::fabs(mean) > 768 ? 1 : 0) << mean;
      }
    }
  }
  // What the convolution adds and the mean takes off again is no loss.
  EXPECT_EQ(expect_same({DType::kFloat16, 1, 0.5, 20, 1, true}, 21, 0x1p-9), 0) << "folded behind it";
}

}  // namespace
}  // namespace tensormill
