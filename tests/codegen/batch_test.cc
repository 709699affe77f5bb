/// Convolutions of several images for L2 caches of different sizes, which decide what is walked for one group
/// of weights: machine code against the interpreter of the same loop IR, bit for bit, and against the
/// reference.
#include <gtest/gtest.h>

#include "compiler/lower/lower.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/interpret.h"
#include "tests/codegen/support.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::codegen_test::batch_test {
namespace {

using Ints = std::vector<int64_t>;

target::Target with_l2(int64_t bytes) {
  target::Target target = parse("llvm -mcpu=core-avx2 -num-cores=2");
  target.facts.l2_bytes = bytes;
  return target;
}

/// Checks the case's kernel and returns its schedule.
std::string check(const ops_cases::Case& from, int64_t l2_bytes) {
  const target::Target target = with_l2(l2_bytes);
  const ops_cases::Instance instance = ops_cases::instantiate(from, DType::kFloat32).value();
  const te::Program program = ops_cases::make_program(instance);
  const schedule::Schedule steps = schedule::default_schedule(program, target);
  const te::Function function = lower::lower(schedule::apply(program, steps, "kernel"), target);
  std::vector<Tensor> interpreted = ops_cases::make_inputs(instance, 1);
  const std::vector<Tensor> expected = ops_cases::run_reference(instance, interpreted);
  interpreted.push_back(Tensor::zeros(DType::kFloat32, instance.outputs[0].shape));
  std::vector<Tensor> computed;
  for (const Tensor& tensor : interpreted) computed.push_back(tensor.clone());
  EXPECT_EQ(te::interpret(function, interpreted).code, 0);
  EXPECT_EQ(Kernel(function, target).run(computed, {}, 2).code, 0);
  EXPECT_EQ(difference(computed.back(), interpreted.back()), "");
  const double tolerance = ops_cases::tolerance_of(*instance.def, DType::kFloat32);
  EXPECT_EQ(ops_cases::difference(computed.back(), expected[0], tolerance), "");
  return schedule::print(steps);
}

ops_cases::Case make_case(const std::string& op, const ir::Attrs& attrs, const Shape& x, const Shape& w) {
  return {op, "batch", attrs, {{.shape = x}, {.shape = w}}};
}

bool has(const std::string& schedule, const std::string& step) {
  return schedule.find(step) != std::string::npos;
}

/// 4 images of 2.2 KB, weights of 9 KB.
TEST(Batch, ImagesThatFitTheCacheShareTheirWeights) {
  const ops_cases::Case flat = make_case("conv_blocked", {}, {4, 2, 5, 7, 8}, {18, 2, 1, 1, 8, 8});
  EXPECT_TRUE(has(check(flat, 16 * 1024), " i0 2\n")) << "two images in half of the cache";
  EXPECT_TRUE(has(check(flat, 32 * 1024), " i0 1\n")) << "all weights in half of the cache";
  EXPECT_TRUE(has(check(flat, 2 * 1024), " i0 1\n")) << "parts of an image";
  const ops_cases::Case window =
      make_case("conv_blocked", {{"pads", Ints{1, 1, 1, 1}}}, {4, 2, 5, 7, 8}, {4, 2, 3, 3, 8, 8});
  EXPECT_TRUE(has(check(window, 16 * 1024), " i0 1\n")) << "rows of one image";
  EXPECT_TRUE(has(check(window, 2 * 1024), " i0 1\n")) << "parts of an image";
}

/// All columns are one loop, whose last tile passes the end of the only row.
TEST(Batch, MapsOfOneRowHaveUnevenTiles) {
  for (const int64_t columns : {13, 20, 29, 33}) {
    for (const int64_t l2 : {2 * 1024, 128 * 1024})
      check(make_case("conv_blocked", {}, {1, 2, 1, columns, 16}, {8, 2, 1, 1, 16, 16}), l2);
  }
}

/// Two cores walk the halves of one image: each then reads the rows that it wrote.
TEST(Batch, CoresShareTheRowsOfOneImage) {
  constexpr int64_t kL2 = 64 * 1024;
  const ir::Attrs pool = {{"kernel", Ints{2, 2, 1}}, {"strides", Ints{2, 2, 1}}};
  const auto pooled = [&](int64_t rows) {
    return check({"max_pool", "rows", pool, {{.shape = {1, 2, rows, 8, 8}}}}, kL2);
  };
  EXPECT_TRUE(has(pooled(12), " i2 3\n"));
  EXPECT_TRUE(has(pooled(10), " i2 5\n")) << "three and two rows are no halves";
  EXPECT_TRUE(has(pooled(26), " i2 7\n")) << "seven rows and six";
  const auto depthwise = [&](int64_t images) {
    return check(make_case("conv_depthwise", {}, {images, 2, 10, 9, 8}, {2, 3, 3, 8}), kL2);
  };
  EXPECT_TRUE(has(depthwise(1), " i2 4\n"));
  EXPECT_TRUE(has(
      check(make_case("conv_depthwise", {{"pads", Ints{1, 1, 1, 1}}}, {1, 2, 13, 9, 8}, {2, 3, 3, 8}), kL2),
      " i2 7\n"))
      << "the last row of the second core's share is outside";
  EXPECT_TRUE(has(depthwise(2), " i2 8\n")) << "an image for each core";
  const auto window = [&](int64_t l2) {
    return check(make_case("conv_blocked", {}, {1, 2, 10, 9, 8}, {4, 2, 3, 3, 8, 8}), l2);
  };
  EXPECT_TRUE(has(window(128 * 1024), " i2 4\n"));
  const ir::Attrs padded = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}};
  EXPECT_TRUE(has(check(make_case("conv_blocked", padded, {1, 2, 25, 9, 8}, {4, 2, 3, 3, 8, 8}), 128 * 1024),
                  " i2 7\n"));
  EXPECT_TRUE(has(window(kL2), " i2 8\n")) << "18 KB of weights for each core";
}

TEST(Batch, StridedAndFirstLayers) {
  const ir::Attrs half = {{"strides", Ints{2, 2}}};
  EXPECT_TRUE(
      has(check(make_case("conv_blocked", half, {3, 2, 7, 9, 8}, {5, 2, 1, 1, 8, 8}), 4096), " i0 1\n"));
  EXPECT_TRUE(has(check(make_case("conv_first", half, {3, 3, 11, 13}, {2, 3, 3, 3, 8}), 4096), " i0 1\n"));
  EXPECT_TRUE(has(check(make_case("conv_depthwise", {}, {3, 2, 7, 9, 8}, {2, 3, 3, 8}), 4096), " i0 1\n"));
}

/// V of 27 tiles takes 62 KB, M 124 KB, the weights 74 KB.
TEST(Batch, MinimalFilteringMakesAllProductsPointByPointWhereVIsLarge) {
  const ops_cases::Case layer = make_case("conv_winograd", {{"tile", int64_t{4}}, {"pads", Ints{1, 1, 1, 1}}},
                                          {3, 2, 9, 9, 8}, {36, 2, 16, 16});
  const auto in_phases = [](const std::string& steps) { return has(steps, " i0 i3\n"); };
  EXPECT_TRUE(in_phases(check(layer, 64 * 1024)));
  EXPECT_FALSE(in_phases(check(layer, 128 * 1024))) << "V stays in the cache";
  EXPECT_FALSE(in_phases(check(layer, 8 * 1024))) << "V and M are too large";
}

}  // namespace
}  // namespace tensormill::codegen_test::batch_test
