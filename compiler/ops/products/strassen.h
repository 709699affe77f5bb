/// Strassen's product of two matrices in halves ("Gaussian Elimination is not Optimal", 1969): of A and B cut
/// into 2x2 blocks, C = A B takes 7 products of blocks where the definition takes 8. Each product is
/// (Σ left[p][q] A_q) (Σ right[p][q] B_q); C_q is a sum of them. Blocks are numbered row by row: 11, 12, 21,
/// 22. Thread-safety: values and pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/tensor.h"

namespace tensormill::ops {

inline constexpr size_t kStrassenBlocks = 4, kStrassenProducts = 7;

/// Coefficients -1, 0 and 1.
inline constexpr std::array<std::array<int, kStrassenBlocks>, kStrassenProducts> kStrassenLeft = {
    {{1, 0, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}}};
inline constexpr std::array<std::array<int, kStrassenBlocks>, kStrassenProducts> kStrassenRight = {
    {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}}};
inline constexpr std::array<std::array<int, kStrassenProducts>, kStrassenBlocks> kStrassenResult = {
    {{1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}}};

/// Of a matrix B [depth, columns] in panels [columns/b, depth, b], in whatever shape: the factors of the
/// products as product_strassen takes them, [columns/2/width, 7, depth/2, width], each rounded once. `depth`
/// is even, `width` a multiple of b, half the columns one of `width`.
Tensor strassen_weights(const Tensor& panels, int64_t depth, int64_t b, int64_t width);

}  // namespace tensormill::ops
