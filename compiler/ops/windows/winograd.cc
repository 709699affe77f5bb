#include "compiler/ops/windows/winograd.h"

#include "runtime/base/error.h"

namespace tensormill::ops {

WinogradMatrices winograd_matrices(int64_t tile) {
  if (tile == 2) {
    return {2,
            4,
            {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1},
            {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1},
            {1, 1, 1, 0, 0, 1, -1, -1}};
  }
  TM_CHECK(tile == 4, "winograd tile " + std::to_string(tile));
  const double p = kWinogradNear, q = kWinogradFar;
  const double sum = p * p + q * q, product = p * p * q * q;
  const double n = 2 * p * p * (p * p - q * q), f = 2 * q * q * (q * q - p * p);
  WinogradMatrices result;
  result.input = {product, 0,         -sum,   0,  1, 0, 0, -q * q * p, -q * q, p,    1, 0,
                  0,       q * q * p, -q * q, -p, 1, 0, 0, -p * p * q, -p * p, q,    1, 0,
                  0,       p * p * q, -p * p, -q, 1, 0, 0, product,    0,      -sum, 0, 1};
  result.kernel = {1 / product, 0,     0,         1 / n, p / n,  p * p / n, 1 / n, -p / n, p * p / n,
                   1 / f,       q / f, q * q / f, 1 / f, -q / f, q * q / f, 0,     0,      1};
  result.output = {1, 1,     1,     1,     1,     0, 0, p,         -p,         q,         -q,         0,
                   0, p * p, p * p, q * q, q * q, 0, 0, p * p * p, -p * p * p, q * q * q, -q * q * q, 1};
  return result;
}

void winograd_transform(const std::vector<double>& matrix, int64_t rows, int64_t size, const double* square,
                        double* result) {
  double half[36];
  TM_CHECK(rows * size <= 36, "a winograd matrix larger than 6 by 6");
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < size; ++k)
        sum += matrix[static_cast<size_t>(i * size + k)] * square[k * size + j];
      half[i * size + j] = sum;
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < size; ++k)
        sum += half[i * size + k] * matrix[static_cast<size_t>(j * size + k)];
      result[i * rows + j] = sum;
    }
  }
}

Tensor winograd_weights(const Tensor& blocked, int64_t tile, int64_t group) {
  const Shape& shape = blocked.shape();
  TM_CHECK(shape.size() == 6 && shape[2] == 3 && shape[3] == 3 && shape[0] % group == 0 &&
               blocked.dtype() == DType::kFloat32,
           "winograd weights from a kernel of shape " + to_string(shape));
  const WinogradMatrices matrices = winograd_matrices(tile);
  const int64_t points = matrices.points * matrices.points;
  const int64_t out_blocks = shape[0], in_blocks = shape[1], block = shape[4], width = shape[5];
  Tensor result(DType::kFloat32, {points, out_blocks / group, in_blocks * block, group * width});
  const float* source = static_cast<const float*>(blocked.data());
  float* target = static_cast<float*>(result.data());
  double taps[9], transformed[36];
  for (int64_t row = 0; row < out_blocks * in_blocks * block; ++row) {
    const int64_t ob = row / (in_blocks * block), ic = row % (in_blocks * block);
    const float* kernel = source + (ob * in_blocks + ic / block) * 9 * block * width + ic % block * width;
    const int64_t place = (ob / group * in_blocks * block + ic) * group * width + ob % group * width;
    for (int64_t lane = 0; lane < width; ++lane) {
      for (int64_t tap = 0; tap < 9; ++tap)
        taps[tap] = static_cast<double>(kernel[tap * block * width + lane]);
      winograd_transform(matrices.kernel, matrices.points, 3, taps, transformed);
      for (int64_t p = 0; p < points; ++p)
        target[p * out_blocks * in_blocks * block * width + place + lane] =
            static_cast<float>(transformed[p]);
    }
  }
  return result;
}

}  // namespace tensormill::ops
