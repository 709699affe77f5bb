/// The minimal filtering algorithms F(m×m, 3×3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural
/// Networks" (2015), sections 4.1 and 4.3, for m = 2 and m = 4: a tile of m×m outputs is
/// Aᵀ [ Σ over channels (G g Gᵀ) ⊙ (Bᵀ d B) ] A with the kernel g and the (m+2)×(m+2) inputs d of the tile,
/// so that (m+2)² multiplications take the place of 9m². Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/tensor.h"

namespace tensormill::ops {

/// F(4,3) interpolates at 0, ±kWinogradNear, ±kWinogradFar and infinity. Points whose product is near 1 keep
/// the matrices' entries close together: in f32 the largest error is a third of that of the usual 1 and 2
/// (measured: bench/README.md). All entries of Aᵀ and Bᵀ are exact in binary.
inline constexpr double kWinogradNear = 0.75, kWinogradFar = 1.5;

/// Row-major matrices; `points` = m + 2.
struct WinogradMatrices {
  int64_t tile = 4;
  int64_t points = 6;
  std::vector<double> input;   ///< Bᵀ [points, points]
  std::vector<double> kernel;  ///< G [points, 3]
  std::vector<double> output;  ///< Aᵀ [tile, points]
};
/// For tile 2 or 4; anything else is a bug.
WinogradMatrices winograd_matrices(int64_t tile);

/// matrix [rows, size] · square [size, size] · matrixᵀ into result [rows, rows]: one two-dimensional
/// transform.
void winograd_transform(const std::vector<double>& matrix, int64_t rows, int64_t size, const double* square,
                        double* result);

/// Weights of a blocked convolution, [OCb, ICb, 3, 3, b, b] (input channel, then output channel in the
/// blocks), as conv_winograd takes them: [(m+2)², OCb/group, ICb*b, group*b], transformed in double and
/// rounded once.
Tensor winograd_weights(const Tensor& blocked, int64_t tile, int64_t group);

}  // namespace tensormill::ops
