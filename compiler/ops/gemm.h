/// A blocked matrix product in double for the reference evaluations: single-threaded, in vectors that the
/// machine has; its bits do not depend on them.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>

namespace tensormill::ops {

/// What gemm_double multiplies; callbacks see blocks, so that neither operand exists in double as a whole.
struct GemmOperands {
  int64_t rows = 0;     ///< of A and C
  int64_t columns = 0;  ///< of B and C
  int64_t depth = 0;    ///< columns of A, rows of B
  /// Writes A(row, k0 .. k0+count) to out.
  std::function<void(int64_t row, int64_t k0, int64_t count, double* out)> fill_row;
  /// Writes B(k, j0 .. j0+count) to out.
  std::function<void(int64_t k, int64_t j0, int64_t count, double* out)> fill_column_block;
  /// Writes B(k0 .. k0+count, column) to out, where that is nearer in memory than what fill_column_block
  /// writes; or none.
  std::function<void(int64_t column, int64_t k0, int64_t count, double* out)> fill_column;
  /// Takes C(row, j0 .. j0+count).
  std::function<void(int64_t row, int64_t j0, int64_t count, const double* values)> take;
};

/// C = A * B, each element summed in double over increasing k (in blocks).
void gemm_double(const GemmOperands& operands);

}  // namespace tensormill::ops
