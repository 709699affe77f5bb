/// The product of the references: each element is summed over the depth in order, to the last bit.
#include "compiler/ops/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tensormill::ops {
namespace {

struct Extents {
  int64_t rows, columns, depth;
};

class Gemm : public testing::TestWithParam<Extents> {};

TEST_P(Gemm, IsTheSumInOrder) {
  const int64_t rows = GetParam().rows, columns = GetParam().columns, depth = GetParam().depth;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto numbers = [&](int64_t count) {
    std::vector<double> made(static_cast<size_t>(count));
    for (double& each : made) each = uniform(random);
    return made;
  };
  const std::vector<double> a = numbers(rows * depth), b = numbers(depth * columns);
  std::vector<double> expected(static_cast<size_t>(rows * columns)), product = numbers(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < columns; ++j)
        expected[static_cast<size_t>(i * columns + j)] +=
            a[static_cast<size_t>(i * depth + k)] * b[static_cast<size_t>(k * columns + j)];
    }
  }

  GemmOperands operands;
  operands.rows = rows;
  operands.columns = columns;
  operands.depth = depth;
  operands.fill_row = [&](int64_t row, int64_t k0, int64_t count, double* out) {
    std::copy_n(a.data() + row * depth + k0, count, out);
  };
  operands.fill_column_block = [&](int64_t k, int64_t j0, int64_t count, double* out) {
    std::copy_n(b.data() + k * columns + j0, count, out);
  };
  operands.take = [&](int64_t row, int64_t j0, int64_t count, const double* values) {
    std::copy_n(values, count, product.data() + row * columns + j0);
  };
  gemm_double(operands);
  EXPECT_EQ(product, expected);

  operands.fill_column = [&](int64_t column, int64_t k0, int64_t count, double* out) {
    for (int64_t k = 0; k < count; ++k) out[k] = b[static_cast<size_t>((k0 + k) * columns + column)];
  };
  product = numbers(rows * columns);
  gemm_double(operands);
  EXPECT_EQ(product, expected) << "from columns";
}

INSTANTIATE_TEST_SUITE_P(Extents, Gemm,
                         testing::Values(Extents{1, 1, 1}, Extents{1, 300, 9}, Extents{3, 257, 600},
                                         Extents{4, 8, 256}, Extents{5, 7, 257}, Extents{13, 513, 300},
                                         Extents{8, 3, 0}, Extents{2, 3, 0}));

}  // namespace
}  // namespace tensormill::ops
