// Default schedules of the classes with a reduction: many shapes, each interpreted before and after every
// pass.
#include <gtest/gtest.h>

#include "tests/schedule/harness.h"
#include "tests/schedule/programs.h"

namespace tensormill::schedule_test {
namespace {

constexpr double kSumTolerance = 2e-6;

class Targets : public ::testing::TestWithParam<int> {
protected:
  target::Target target() const { return test_target(GetParam(), GetParam() > 128, 2); }
};

TEST_P(Targets, Convolutions) {
  const ConvShape shapes[] = {{1, 3, 9, 9, 5, 3, 1, 1, 1},   {1, 8, 14, 14, 16, 3, 1, 1, 1},
                              {2, 4, 7, 7, 13, 1, 1, 0, 1},  {1, 6, 11, 11, 8, 3, 2, 1, 1},
                              {1, 3, 19, 19, 7, 7, 2, 3, 1}, {1, 8, 9, 20, 8, 3, 1, 1, 8},
                              {1, 8, 9, 9, 12, 3, 2, 1, 4},  {1, 1, 1, 1, 1, 1, 1, 0, 1},
                              {1, 17, 5, 33, 3, 1, 2, 0, 1}, {0, 3, 5, 5, 4, 3, 1, 1, 1}};
  for (const ConvShape& shape : shapes) {
    SCOPED_TRACE("conv " + std::to_string(shape.in_channels) + "x" + std::to_string(shape.height) + "x" +
                 std::to_string(shape.width));
    for (bool epilogue : {true, false}) {
      check_program(conv_program(shape, epilogue), kSumTolerance, target(), kSumTolerance);
    }
  }
}

TEST_P(Targets, Products) {
  const int64_t shapes[][4] = {{1, 1, 1, 1},    {1, 13, 17, 7}, {2, 5, 33, 9},  {1, 1, 100, 31},
                               {1, 64, 64, 16}, {3, 7, 1, 29},  {1, 16, 5, 64}, {1, 3, 48, 1},
                               {0, 4, 4, 4},    {1, 4, 4, 0},   {2, 12, 40, 32}};
  for (const auto& s : shapes) {
    SCOPED_TRACE("product " + std::to_string(s[0]) + "," + std::to_string(s[1]) + "," + std::to_string(s[2]) +
                 "," + std::to_string(s[3]));
    for (bool transposed : {false, true}) {
      check_program(matmul_program(s[0], s[1], s[2], s[3], transposed, true), kSumTolerance, target(),
                    kSumTolerance);
      check_program(matmul_program(s[0], s[1], s[2], s[3], transposed, false), kSumTolerance, target(),
                    kSumTolerance);
    }
  }
}

TEST_P(Targets, Pools) {
  const ConvShape shapes[] = {{1, 3, 8, 8, 0, 2, 2, 0, 1},
                              {1, 5, 15, 17, 0, 3, 2, 1, 1},
                              {2, 3, 7, 7, 0, 7, 1, 0, 1},
                              {1, 1, 3, 40, 0, 3, 1, 1, 1}};
  for (const ConvShape& shape : shapes) {
    for (te::ReduceOp op : {te::ReduceOp::kMax, te::ReduceOp::kSum}) {
      check_program(pool_program(shape, op), op == te::ReduceOp::kSum ? kSumTolerance : 0, target());
    }
  }
}

TEST_P(Targets, Reductions) {
  const Shape shapes[] = {{3, 100},    {7, 13},   {1, 1},  {5, 3}, {2, 3, 64},
                          {4, 257, 5}, {1, 1000}, {37, 2}, {2, 0}, {0, 3}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(to_string(shape));
    for (te::ReduceOp op :
         {te::ReduceOp::kSum, te::ReduceOp::kMax, te::ReduceOp::kMin, te::ReduceOp::kProduct}) {
      for (bool last : {true, false}) {
        check_program(reduce_program(shape, op, last, false), 4e-6, target());
        check_program(reduce_program(shape, op, last, true), 4e-6, target());
      }
    }
  }
}

TEST_P(Targets, IndexOfTheLargest) {
  for (const Shape& shape : {Shape{3, 100}, Shape{13, 7}, Shape{1, 1}, Shape{40, 3, 17}}) {
    SCOPED_TRACE(to_string(shape));
    check_program(arg_max_program(shape, true), 0, target());
    check_program(arg_max_program(shape, false), 0, target());
  }
}

TEST_P(Targets, Softmax) {
  for (const Shape& shape :
       {Shape{3, 100}, Shape{2, 5, 7}, Shape{1, 1}, Shape{4, 16}, Shape{2, 2, 33, 128}, Shape{3, 1}}) {
    SCOPED_TRACE(to_string(shape));
    check_program(softmax_program(shape), 4e-6, target(), 4e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(VectorBits, Targets, ::testing::Values(512, 256, 128));

}  // namespace
}  // namespace tensormill::schedule_test
