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
constexpr int64_t kColumns = 8;
constexpr int64_t kDepth = 256;
constexpr int64_t kWidth = 256;

/// c[r][0..kColumns) += sum over k of a[k * kRows + r] * b[k * kColumns + 0..kColumns), as many columns at a
/// time as two vectors of kBytes hold. Each element is summed in the order of k, whatever the vectors are.
template <int kBytes>
[[gnu::always_inline]] inline void multiply_columns(int64_t depth, const double* a, const double* b,
                                                    double* c, int64_t stride) {
  typedef double Vector __attribute__((vector_size(kBytes)));
  constexpr int64_t kLanes = kBytes / sizeof(double);
  for (int64_t j = 0; j < kColumns; j += 2 * kLanes) {
    Vector left[kRows], right[kRows];
#pragma GCC unroll 4
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(&left[r], c + r * stride + j, sizeof(Vector));
      std::memcpy(&right[r], c + r * stride + j + kLanes, sizeof(Vector));
    }
    for (int64_t k = 0; k < depth; ++k) {
      Vector first, second;
      std::memcpy(&first, b + k * kColumns + j, sizeof(Vector));
      std::memcpy(&second, b + k * kColumns + j + kLanes, sizeof(Vector));
#pragma GCC unroll 4
      for (int64_t r = 0; r < kRows; ++r) {
        left[r] += a[k * kRows + r] * first;
        right[r] += a[k * kRows + r] * second;
      }
    }
#pragma GCC unroll 4
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(c + r * stride + j, &left[r], sizeof(Vector));
      std::memcpy(c + r * stride + j + kLanes, &right[r], sizeof(Vector));
    }
  }
}

using MultiplyTile = void (*)(int64_t depth, const double* a, const double* b, double* c, int64_t stride);

void multiply_tile(int64_t depth, const double* a, const double* b, double* c, int64_t stride) {
  multiply_columns<16>(depth, a, b, c, stride);
}

#if defined(__x86_64__)
// Without fused multiply-adds: constants that are folded are the same on every machine.
__attribute__((target("avx2"))) void multiply_tile_256(int64_t depth, const double* a, const double* b,
                                                       double* c, int64_t stride) {
  multiply_columns<32>(depth, a, b, c, stride);
}
#endif

MultiplyTile choose_multiply_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return &multiply_tile_256;
#endif
  return &multiply_tile;
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

/// The same from whole columns.
void pack_columns(const GemmOperands& operands, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                  double* panel) {
  double column[kDepth];
  for (int64_t j = 0; j < round_up(width, kColumns); ++j) {
    if (j < width) {
      operands.fill_column(j0 + j, k0, depth, column);
    } else {
      std::fill(column, column + depth, 0.0);
    }
    double* strip = panel + j / kColumns * depth * kColumns + j % kColumns;
    for (int64_t k = 0; k < depth; ++k) strip[k * kColumns] = column[k];
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

/// Of fewer rows than a tile has: the dot product of each with a column that lies in one piece.
void multiply_columns_of(const GemmOperands& operands, const std::vector<double>& a) {
  std::vector<double> column(static_cast<size_t>(operands.depth));
  for (int64_t j = 0; j < operands.columns; ++j) {
    operands.fill_column(j, 0, operands.depth, column.data());
    for (int64_t row = 0; row < operands.rows; ++row) {
      const double* factors = a.data() + row * operands.depth;
      double sum = 0;
      for (int64_t k = 0; k < operands.depth; ++k) sum += factors[k] * column[static_cast<size_t>(k)];
      operands.take(row, j, 1, &sum);
    }
  }
}

/// Of fewer rows than a tile has, as the groups of a depthwise convolution: row after row of B.
void multiply_few_rows(const GemmOperands& operands) {
  const int64_t stride = std::min(kWidth, operands.columns);
  std::vector<double> a(static_cast<size_t>(operands.rows * operands.depth));
  std::vector<double> b(static_cast<size_t>(stride)), c(static_cast<size_t>(operands.rows * stride));
  for (int64_t row = 0; row < operands.rows; ++row)
    operands.fill_row(row, 0, operands.depth, a.data() + row * operands.depth);
  if (operands.fill_column) return multiply_columns_of(operands, a);
  for (int64_t j0 = 0; j0 < operands.columns; j0 += kWidth) {
    const int64_t width = std::min(kWidth, operands.columns - j0);
    std::fill(c.begin(), c.end(), 0.0);
    for (int64_t k = 0; k < operands.depth; ++k) {
      operands.fill_column_block(k, j0, width, b.data());
      for (int64_t row = 0; row < operands.rows; ++row) {
        const double factor = a[static_cast<size_t>(row * operands.depth + k)];
        double* sums = c.data() + row * stride;
        for (int64_t j = 0; j < width; ++j) sums[j] += factor * b[static_cast<size_t>(j)];
      }
    }
    for (int64_t row = 0; row < operands.rows; ++row) operands.take(row, j0, width, c.data() + row * stride);
  }
}

}  // namespace

void gemm_double(const GemmOperands& operands) {
  if (operands.rows < kRows) return multiply_few_rows(operands);
  const MultiplyTile multiply = choose_multiply_tile();
  // Small products are many (one a group of a convolution): buffers are as large as they need to be.
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
      if (operands.fill_column) {
        pack_columns(operands, k0, depth, j0, width, panel.data());
      } else {
        pack_b(operands, k0, depth, j0, width, panel.data());
      }
      for (int64_t row = 0; row < operands.rows; row += kRows) {
        pack_a(operands, row, k0, depth, strip.data());
        for (int64_t j = 0; j < width; j += kColumns) {
          multiply(depth, strip.data(), panel.data() + j * depth, c.data() + row * stride + j, stride);
        }
      }
    }
    for (int64_t row = 0; row < operands.rows; ++row) {
      operands.take(row, j0, width, c.data() + row * stride);
    }
  }
}

}  // namespace tensormill::ops
