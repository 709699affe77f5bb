#include "compiler/ops/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tensormill::ops {
namespace {

// The blocking of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a panel
// of B (kDepth x kWidth doubles) stays in the L2 cache, a strip of A (kRows x kDepth) in the L1 cache, and
// the tile of C in registers.
constexpr int64_t kRows = 4;
constexpr int64_t kColumns = 4;
constexpr int64_t kDepth = 256;
constexpr int64_t kWidth = 256;

typedef double Vector __attribute__((vector_size(16), aligned(8)));

/// c[r][0..4) += sum over k of a[k*4 + r] * b[k*4 + 0..4)
void multiply_tile(int64_t depth, const double* a, const double* b, double* c, int64_t stride) {
  Vector sums[kRows][2];
  for (int64_t r = 0; r < kRows; ++r) std::memcpy(sums[r], c + r * stride, sizeof(sums[r]));
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += kColumns) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + 2);
    for (int64_t r = 0; r < kRows; ++r) {
      sums[r][0] += a[r] * b0;
      sums[r][1] += a[r] * b1;
    }
  }
  for (int64_t r = 0; r < kRows; ++r) std::memcpy(c + r * stride, sums[r], sizeof(sums[r]));
}

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// B(k0.., j0..) in strips of kColumns columns: strip after strip, k after k inside.
void pack_b(const GemmOperands& operands, int64_t k0, int64_t depth, int64_t j0, int64_t width,
            double* panel) {
  double row[kWidth + kColumns] = {};
  const int64_t strips = round_up(width, kColumns) / kColumns;
  for (int64_t k = 0; k < depth; ++k) {
    operands.fill_column_block(k0 + k, j0, width, row);
    for (int64_t strip = 0; strip < strips; ++strip) {
      std::memcpy(panel + (strip * depth + k) * kColumns, row + strip * kColumns, kColumns * sizeof(double));
    }
  }
}

/// A(row.., k0..) transposed: k after k, kRows rows inside; missing rows are zero.
void pack_a(const GemmOperands& operands, int64_t row, int64_t k0, int64_t depth, double* strip) {
  double values[kDepth];
  for (int64_t r = 0; r < kRows; ++r) {
    if (row + r < operands.rows) {
      operands.fill_row(row + r, k0, depth, values);
    } else {
      std::fill(values, values + depth, 0.0);
    }
    for (int64_t k = 0; k < depth; ++k) strip[k * kRows + r] = values[k];
  }
}

}  // namespace

void gemm_double(const GemmOperands& operands) {
  // Small products are many (one a group of a depthwise convolution): buffers are as large as they need to
  // be.
  const int64_t stride = round_up(std::min(kWidth, operands.columns), kColumns);
  const int64_t max_depth = std::min(kDepth, operands.depth);
  std::vector<double> c(static_cast<size_t>(round_up(operands.rows, kRows) * stride));
  std::vector<double> panel(static_cast<size_t>(max_depth * stride));
  std::vector<double> strip(static_cast<size_t>(max_depth * kRows));
  for (int64_t j0 = 0; j0 < operands.columns; j0 += kWidth) {
    const int64_t width = std::min(kWidth, operands.columns - j0);
    std::fill(c.begin(), c.end(), 0.0);
    for (int64_t k0 = 0; k0 < operands.depth; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, operands.depth - k0);
      pack_b(operands, k0, depth, j0, width, panel.data());
      for (int64_t row = 0; row < operands.rows; row += kRows) {
        pack_a(operands, row, k0, depth, strip.data());
        for (int64_t j = 0; j < width; j += kColumns) {
          multiply_tile(depth, strip.data(), panel.data() + j * depth, c.data() + row * stride + j, stride);
        }
      }
    }
    for (int64_t row = 0; row < operands.rows; ++row) {
      operands.take(row, j0, width, c.data() + row * stride);
    }
  }
}

}  // namespace tensormill::ops
