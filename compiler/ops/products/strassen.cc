#include "compiler/ops/products/strassen.h"

#include "runtime/base/error.h"

namespace tensormill::ops {

Tensor strassen_weights(const Tensor& panels, int64_t depth, int64_t b, int64_t width) {
  const int64_t columns = panels.num_elements() / depth, half = depth / 2, side = columns / 2;
  TM_CHECK(
      depth % 2 == 0 && width % b == 0 && columns % (2 * width) == 0 && panels.dtype() == DType::kFloat32,
      "halves of a matrix [" + std::to_string(depth) + "," + std::to_string(columns) + "]");
  Tensor result(DType::kFloat32, {side / width, static_cast<int64_t>(kStrassenProducts), half, width});
  const float* from = panels.values<float>().data();
  float* to = result.values<float>().data();
  for (int64_t j = 0; j < side; j += b) {
    const std::array<const float*, kStrassenBlocks> blocks = {from + j * depth, from + (j + side) * depth,
                                                              from + j * depth + half * b,
                                                              from + (j + side) * depth + half * b};
    for (size_t p = 0; p < kStrassenProducts; ++p) {
      float* panel =
          to +
          (j / width * static_cast<int64_t>(kStrassenProducts) + static_cast<int64_t>(p)) * half * width +
          j % width;
      for (int64_t i = 0; i < half * b; ++i) {
        // Two terms at most: one rounding.
        float sum = 0;
        for (size_t q = 0; q < kStrassenBlocks; ++q) {
          if (kStrassenRight[p][q] != 0) sum += static_cast<float>(kStrassenRight[p][q]) * blocks[q][i];
        }
        panel[i / b * width + i % b] = sum;
      }
    }
  }
  return result;
}

}  // namespace tensormill::ops
