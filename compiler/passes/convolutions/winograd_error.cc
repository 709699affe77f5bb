#include "compiler/passes/convolutions/winograd_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/ops/windows/winograd.h"

namespace tensormill::passes {

namespace {

constexpr int64_t kSampledGroups = 2;
constexpr int kSampledTiles = 2;

std::vector<float> to_floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// matrix [rows, size] · square [size, size] · matrixᵀ, each operation rounded to f32.
void transform(const std::vector<float>& matrix, int64_t rows, int64_t size, const float* square,
               float* result) {
  float half[36];
  for (int64_t i = 0; i < rows * size; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < size; ++k)
      sum += matrix[static_cast<size_t>(i / size * size + k)] * square[k * size + i % size];
    half[i] = sum;
  }
  for (int64_t i = 0; i < rows * rows; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < size; ++k)
      sum += half[i / rows * size + k] * matrix[static_cast<size_t>(i % rows * size + k)];
    result[i] = sum;
  }
}

/// One tile of inputs for all channels.
class Sample {
public:
  Sample(const Tensor& blocked, const Tensor& transformed, int64_t tile, uint64_t seed)
      : kernel_(blocked),
        weights_(transformed),
        matrices_(ops::winograd_matrices(tile)),
        points_(matrices_.points * matrices_.points),
        channels_(transformed.shape()[2]),
        width_(transformed.shape()[3]) {
    uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    inputs_.resize(static_cast<size_t>(points_ * channels_));
    for (float& value : inputs_) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      value = static_cast<float>(static_cast<double>(state >> 40) * 0x1p-23 - 1);
    }
    const std::vector<float> matrix = to_floats(matrices_.input);
    v_.resize(inputs_.size());
    for (int64_t c = 0; c < channels_; ++c) {
      transform(matrix, matrices_.points, matrices_.points, inputs_.data() + c * points_,
                v_.data() + c * points_);
    }
  }

  /// Raises `error` and `largest` by the outputs of one group of channels.
  void compare(int64_t group, double& error, double& largest) const {
    const int64_t tile = matrices_.tile, outputs = tile * tile;
    const std::vector<float> matrix = to_floats(matrices_.output);
    const std::vector<float> products = product(group);
    const std::vector<double> expected = direct(group);
    std::vector<float> column(static_cast<size_t>(points_)), result(static_cast<size_t>(outputs));
    for (int64_t lane = 0; lane < width_; ++lane) {
      for (int64_t p = 0; p < points_; ++p)
        column[static_cast<size_t>(p)] = products[static_cast<size_t>(p * width_ + lane)];
      transform(matrix, tile, matrices_.points, column.data(), result.data());
      for (int64_t i = 0; i < outputs; ++i) {
        const double want = expected[static_cast<size_t>(i * width_ + lane)];
        const double off = std::fabs(static_cast<double>(result[static_cast<size_t>(i)]) - want);
        // A sum that is no number must not pass for a small error.
        if (!std::isnan(error) && !(off <= error)) error = off;
        largest = std::max(largest, std::fabs(want));
      }
    }
  }

private:
  /// Σ over channels of V ⊙ U: [points², lanes].
  std::vector<float> product(int64_t group) const {
    std::vector<float> sums(static_cast<size_t>(points_ * width_), 0.0F);
    const float* weights = weights_.values<float>().data();
    for (int64_t p = 0; p < points_; ++p) {
      const float* panel = weights + (p * weights_.shape()[1] + group) * channels_ * width_;
      float* target = sums.data() + p * width_;
      for (int64_t c = 0; c < channels_; ++c) {
        const float value = v_[static_cast<size_t>(c * points_ + p)];
        for (int64_t lane = 0; lane < width_; ++lane) target[lane] += value * panel[c * width_ + lane];
      }
    }
    return sums;
  }

  /// The tile's outputs by the definition: [tile², lanes].
  std::vector<double> direct(int64_t group) const {
    const int64_t tile = matrices_.tile, block = kernel_.shape()[5], in_block = kernel_.shape()[4];
    std::vector<double> sums(static_cast<size_t>(tile * tile * width_), 0.0);
    const float* weights = kernel_.values<float>().data();
    for (int64_t c = 0; c < channels_; ++c) {
      const float* window = inputs_.data() + c * points_;
      for (int64_t tap = 0; tap < 9 * (width_ / block); ++tap) {
        const int64_t out = group * (width_ / block) + tap / 9, at = tap % 9;
        const float* row =
            weights +
            (((out * kernel_.shape()[1] + c / in_block) * 9 + at) * in_block + c % in_block) * block;
        for (int64_t i = 0; i < tile * tile; ++i) {
          const double value =
              static_cast<double>(window[(i / tile + at / 3) * matrices_.points + i % tile + at % 3]);
          double* target = sums.data() + i * width_ + tap / 9 * block;
          for (int64_t lane = 0; lane < block; ++lane) target[lane] += value * static_cast<double>(row[lane]);
        }
      }
    }
    return sums;
  }

  const Tensor& kernel_;
  const Tensor& weights_;
  ops::WinogradMatrices matrices_;
  int64_t points_, channels_, width_;  ///< points of a tile, input channels, output channels of a group
  std::vector<float> inputs_, v_;      ///< [channels, points]
};

}  // namespace

double winograd_error(const Tensor& blocked, const Tensor& transformed, int64_t tile) {
  const int64_t groups = transformed.shape()[1], count = std::min(groups, kSampledGroups);
  double error = 0, largest = 0;
  for (int sample = 0; sample < kSampledTiles; ++sample) {
    const Sample inputs(blocked, transformed, tile, static_cast<uint64_t>(sample) + 1);
    for (int64_t i = 0; i < count; ++i) inputs.compare(i * groups / count, error, largest);
  }
  return largest > 0 ? error / largest : error;
}

}  // namespace tensormill::passes
