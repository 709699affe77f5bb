#include "compiler/passes/products/strassen_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "compiler/ops/products/strassen.h"

namespace tensormill::passes {

namespace {

using ops::kStrassenBlocks;
using ops::kStrassenProducts;

constexpr int64_t kSampledColumns = 32;
constexpr int kSampledRows = 2;

/// One row of each half of a matrix.
class SampledRows {
public:
  SampledRows(int64_t depth, uint64_t seed) : half_(depth / 2) {
    uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    for (std::vector<float>& block : blocks_) {
      block.resize(static_cast<size_t>(half_));
      for (float& value : block) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        value = static_cast<float>(static_cast<double>(state >> 40) * 0x1p-23 - 1);
      }
    }
  }

  /// Of column `j` of both halves, by the algorithm: the four elements of the result.
  std::array<float, kStrassenBlocks> by_products(const Tensor& factors, int64_t j) const {
    const int64_t width = factors.shape()[3], products = factors.shape()[1];
    const float* weights = factors.values<float>().data();
    std::array<float, kStrassenBlocks> results = {};
    for (size_t p = 0; p < kStrassenProducts; ++p) {
      const float* column =
          weights + (j / width * products + static_cast<int64_t>(p)) * half_ * width + j % width;
      float product = 0;
      for (int64_t k = 0; k < half_; ++k) {
        float sum = 0;
        for (size_t q = 0; q < kStrassenBlocks; ++q)
          sum += static_cast<float>(ops::kStrassenLeft[p][q]) * blocks_[q][static_cast<size_t>(k)];
        product += sum * column[k * width];
      }
      for (size_t q = 0; q < kStrassenBlocks; ++q)
        results[q] += static_cast<float>(ops::kStrassenResult[q][p]) * product;
    }
    return results;
  }

  /// The element of one half of the rows, by the definition. `column`: its first element, `b` the distance to
  /// the next.
  double directly(size_t row_half, const float* column, int64_t b) const {
    double sum = 0;
    for (int64_t k = 0; k < 2 * half_; ++k) {
      const float value =
          blocks_[row_half * 2 + static_cast<size_t>(k / half_)][static_cast<size_t>(k % half_)];
      sum += static_cast<double>(value) * static_cast<double>(column[k * b]);
    }
    return sum;
  }

private:
  int64_t half_;
  std::array<std::vector<float>, kStrassenBlocks> blocks_;  ///< of A: rows of them
};

}  // namespace

double strassen_error(const Tensor& panels, const Tensor& factors, int64_t depth, int64_t b) {
  const int64_t side = panels.num_elements() / depth / 2, count = std::min(side, kSampledColumns);
  const float* weights = panels.values<float>().data();
  double error = 0, largest = 0;
  for (int row = 0; row < kSampledRows; ++row) {
    const SampledRows sample(depth, static_cast<uint64_t>(row) + 1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t j = i * side / count;
      const std::array<float, kStrassenBlocks> results = sample.by_products(factors, j);
      for (size_t q = 0; q < kStrassenBlocks; ++q) {
        const int64_t column = j + static_cast<int64_t>(q % 2) * side;
        const double want = sample.directly(q / 2, weights + column / b * depth * b + column % b, b);
        const double off = std::fabs(static_cast<double>(results[q]) - want);
        // A sum that is no number must not pass for a small error.
        if (!std::isnan(error) && !(off <= error)) error = off;
        largest = std::max(largest, std::fabs(want));
      }
    }
  }
  return largest > 0 ? error / largest : error;
}

}  // namespace tensormill::passes
