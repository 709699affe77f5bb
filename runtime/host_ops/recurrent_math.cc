#include "runtime/host_ops/recurrent_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tensormill::host_ops {

namespace {

// Everything below is inlined into functions that are compiled for one kind of CPU. A product and its sum are
// rounded apart (the project is compiled without contraction), and a column's sum is one chain: no result
// depends on the width.
template <typename T, int kBytes>
struct Wide {
  typedef T Vector __attribute__((vector_size(kBytes)));
};

/// A tile of kRows rows and kPanels panels, in registers. kFetches: the weights are not in the first cache.
template <typename T, int kBytes, size_t kRows, size_t kPanels, bool kFetches = true>
[[gnu::always_inline]] inline void multiply_tile(const PanelProduct<T>& product, size_t row, size_t panel) {
  using Vector = typename Wide<T, kBytes>::Vector;
  constexpr size_t kLanes = kBytes / sizeof(T), kVectors = kPanelColumns / kLanes;
  // Weights come from L2 at best, from several places at once: so many steps ahead they are asked for.
  constexpr size_t kAhead = 8, kLine = 64 / sizeof(T);
  const T* x = product.x + row * product.x_stride;
  const T* weights = product.weights + panel * product.depth * kPanelColumns;
  T* sums = product.sums + row * product.sums_stride + panel * kPanelColumns;
  Vector tile[kRows][kPanels][kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) std::memcpy(tile[r], sums + r * product.sums_stride, sizeof(tile[r]));
  for (size_t k = 0; k < product.depth; ++k) {
#pragma GCC unroll 16
    for (size_t p = 0; p < kPanels; ++p) {
      const T* step = weights + (p * product.depth + k) * kPanelColumns;
#pragma GCC unroll 16
      for (size_t line = 0; kFetches && line < kPanelColumns; line += kLine)
        __builtin_prefetch(step + kAhead * kPanelColumns + line);
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        Vector column;
        std::memcpy(&column, step + v * kLanes, sizeof(column));
#pragma GCC unroll 16
        for (size_t r = 0; r < kRows; ++r) tile[r][p][v] += x[r * product.x_stride + k] * column;
      }
    }
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) std::memcpy(sums + r * product.sums_stride, tile[r], sizeof(tile[r]));
}

/// As many sums at once as hide an addition's latency and fit into 16 registers.
constexpr size_t kSums = 8;
/// Panels that are read side by side: of more streams the lines arrive later.
constexpr size_t kMostStreams = 4;
template <typename T, int kBytes>
constexpr size_t kMostRows = std::max<size_t>(kSums* kBytes / (kPanelColumns * sizeof(T)), 1);

/// What is left of the rows from `row` on, in tiles of kRows, of half as many... and of so many more panels.
template <typename T, int kBytes, size_t kRows>
[[gnu::always_inline]] inline void multiply_rest(const PanelProduct<T>& product, size_t row) {
  constexpr size_t kPanels = std::min(kMostRows<T, kBytes> / kRows, kMostStreams);
  if (product.rows - row >= kRows) {
    const size_t tiles = product.panels / kPanels, rest = product.panels % kPanels;
    for (size_t i = 0; i < tiles + rest; ++i) {
      const size_t at = product.backwards ? tiles + rest - 1 - i : i;
      if (at < tiles) {
        multiply_tile<T, kBytes, kRows, kPanels>(product, row, at * kPanels);
      } else {
        multiply_tile<T, kBytes, kRows, 1>(product, row, tiles * kPanels + at - tiles);
      }
    }
    row += kRows;
  }
  if constexpr (kRows > 1) multiply_rest<T, kBytes, kRows / 2>(product, row);
}

template <typename T, int kBytes>
[[gnu::always_inline]] inline void multiply_all(const PanelProduct<T>& product) {
  constexpr size_t kTile = kMostRows<T, kBytes>;
  const size_t whole_rows = product.rows / kTile * kTile;
  for (size_t i = 0; whole_rows > 0 && i < product.panels; ++i) {
    const size_t panel = product.backwards ? product.panels - 1 - i : i;
    multiply_tile<T, kBytes, kTile, 1>(product, 0, panel);
    for (size_t row = kTile; row < whole_rows; row += kTile)
      multiply_tile<T, kBytes, kTile, 1, false>(product, row, panel);
  }
  if constexpr (kTile > 1) multiply_rest<T, kBytes, kTile / 2>(product, whole_rows);
}

/// Lanes of float, and the functions of compiler/lower/math32.cc on them.
template <int kBytes>
struct Floats {
  typedef float Vector __attribute__((vector_size(kBytes)));
  typedef uint32_t Bits __attribute__((vector_size(kBytes)));
  static constexpr size_t kLanes = kBytes / sizeof(float);
  static constexpr uint32_t kSign = 0x80000000U;

  [[gnu::always_inline]] static inline void magnitude(const Vector& x, Vector& result) {
    result = reinterpret_cast<Vector>(reinterpret_cast<Bits>(x) & ~kSign);
  }

  /// exp(x) for x in [-87, 88] or NaN, in place.
  [[gnu::always_inline]] static inline void exp_normal(Vector& x) {
    constexpr float kMagic = 0x1.8p23F;  // added and subtracted: rounds to an integer
    constexpr uint32_t kMagicBits = 0x4b400000, kBias = 127;
    const Vector shifted = x * 0x1.715476p+0F + kMagic;
    const Vector n = shifted - kMagic;
    const Vector r = (x - n * 0x1.63p-1F) + n * 0x1.bd0106p-13F;
    const Vector tail =
        (((r * 0x1.6db40cp-10F + 0x1.123b46p-7F) * r + 0x1.55545ep-5F) * r + 0x1.55549p-3F) * r + 0.5F;
    const Bits power = (reinterpret_cast<Bits>(shifted) - kMagicBits + kBias) << 23;
    x = (r * r * tail + r + 1.0F) * reinterpret_cast<Vector>(power);
  }

  [[gnu::always_inline]] static inline void sigmoid(float* x, size_t count) {
    for (size_t i = 0; i < count; i += kLanes) {
      Vector value, size;
      std::memcpy(&value, x + i, sizeof(value));
      magnitude(value, size);
      Vector z = size > 87.0F ? Vector{} - 87.0F : -size;
      exp_normal(z);
      z = size > 87.0F ? Vector{} : z;
      const Vector one = Vector{} + 1.0F;
      const Vector result = (value >= 0.0F ? one : z) / (one + z);
      std::memcpy(x + i, &result, sizeof(result));
    }
  }

  [[gnu::always_inline]] static inline void tanh(float* x, size_t count) {
    for (size_t i = 0; i < count; i += kLanes) {
      Vector value, size;
      std::memcpy(&value, x + i, sizeof(value));
      magnitude(value, size);
      const Vector z = value * value;
      const Vector p =
          (((z * -0x1.6f8d5ap-8F + 0x1.50cc16p-6F) * z - 0x1.b80a5cp-5F) * z + 0x1.1105c6p-3F) * z -
          0x1.55552ep-2F;
      const Vector near = value * (z * p + 1.0F);
      Vector power = size > 9.1F ? Vector{} + 18.2F : size + size;
      exp_normal(power);
      const Vector far = 1.0F - 2.0F / (power + 1.0F);
      const Vector signed_far =
          reinterpret_cast<Vector>(reinterpret_cast<Bits>(far) | (reinterpret_cast<Bits>(value) & kSign));
      const Vector result = size < 0.625F ? near : signed_far;
      std::memcpy(x + i, &result, sizeof(result));
    }
  }
};

void multiply_floats(const PanelProduct<float>& product) { multiply_all<float, 16>(product); }
void multiply_doubles(const PanelProduct<double>& product) { multiply_all<double, 16>(product); }
void sigmoid_floats(float* x, size_t count) { Floats<16>::sigmoid(x, count); }
void tanh_floats(float* x, size_t count) { Floats<16>::tanh(x, count); }

void sigmoid_doubles(double* x, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const double z = std::exp(-std::fabs(x[i]));
    x[i] = (x[i] >= 0 ? 1 : z) / (1 + z);
  }
}

void tanh_doubles(double* x, size_t count) {
  for (size_t i = 0; i < count; ++i) x[i] = std::tanh(x[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void multiply_floats_256(const PanelProduct<float>& product) {
  multiply_all<float, 32>(product);
}
__attribute__((target("avx2"))) void multiply_doubles_256(const PanelProduct<double>& product) {
  multiply_all<double, 32>(product);
}
__attribute__((target("avx2"))) void sigmoid_floats_256(float* x, size_t count) {
  Floats<32>::sigmoid(x, count);
}
__attribute__((target("avx2"))) void tanh_floats_256(float* x, size_t count) { Floats<32>::tanh(x, count); }

__attribute__((target("avx512f"))) void multiply_floats_512(const PanelProduct<float>& product) {
  multiply_all<float, 64>(product);
}
__attribute__((target("avx512f"))) void multiply_doubles_512(const PanelProduct<double>& product) {
  multiply_all<double, 64>(product);
}

bool has_256() { return __builtin_cpu_supports("avx2") != 0; }
bool has_512() { return has_256() && __builtin_cpu_supports("avx512f") != 0; }
#endif

}  // namespace

template <>
const RecurrentMath<float>& recurrent_math<float>() {
  static constexpr RecurrentMath<float> kNarrow = {&multiply_floats, &sigmoid_floats, &tanh_floats};
#if defined(__x86_64__)
  static constexpr RecurrentMath<float> kWide = {&multiply_floats_256, &sigmoid_floats_256, &tanh_floats_256};
  static constexpr RecurrentMath<float> kWidest = {&multiply_floats_512, &sigmoid_floats_256,
                                                   &tanh_floats_256};
  if (has_512()) return kWidest;
  if (has_256()) return kWide;
#endif
  return kNarrow;
}

template <>
const RecurrentMath<double>& recurrent_math<double>() {
  static constexpr RecurrentMath<double> kNarrow = {&multiply_doubles, &sigmoid_doubles, &tanh_doubles};
#if defined(__x86_64__)
  static constexpr RecurrentMath<double> kWide = {&multiply_doubles_256, &sigmoid_doubles, &tanh_doubles};
  static constexpr RecurrentMath<double> kWidest = {&multiply_doubles_512, &sigmoid_doubles, &tanh_doubles};
  if (has_512()) return kWidest;
  if (has_256()) return kWide;
#endif
  return kNarrow;
}

}  // namespace tensormill::host_ops
