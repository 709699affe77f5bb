#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/base/tensor.h"
#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {
namespace {

std::vector<int64_t> sorted_by_step(const Tensor& x, int64_t axis, int64_t k, bool largest) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  std::vector<int64_t> positions(static_cast<size_t>(x.num_elements() / extent * k));
  const std::vector<TensorView> inputs{{x.dtype(), x.shape(), x.data()}};
  const std::vector<void*> outputs{positions.data()};
  const std::vector<size_t> bytes{positions.size() * sizeof(int64_t)};
  const std::string attributes = R"({"axis": )" + std::to_string(axis) + R"(, "k": )" + std::to_string(k) +
                                 R"(, "largest": )" + (largest ? "1}" : "0}");
  find_host_op("sort_positions")({inputs, outputs, bytes, attributes});
  return positions;
}

/// The same by a stable sort of doubles, or of integers.
std::vector<int64_t> sorted_plainly(const Tensor& x, int64_t axis, int64_t k, bool largest) {
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < x.shape().size(); ++d) inner *= x.shape()[d];
  const int64_t extent = x.shape()[static_cast<size_t>(axis)], outer = x.num_elements() / extent / inner;
  const auto is_before = [&](int64_t a, int64_t b) {
    if (!largest) std::swap(a, b);
    if (x.dtype() == DType::kUInt64)
      return static_cast<uint64_t>(x.element_as_int(a)) > static_cast<uint64_t>(x.element_as_int(b));
    if (!is_float(x.dtype())) return x.element_as_int(a) > x.element_as_int(b);
    const double left = x.element_as_double(a), right = x.element_as_double(b);
    return left > right || (std::isnan(left) && !std::isnan(right));
  };
  std::vector<int64_t> positions(static_cast<size_t>(outer * k * inner));
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t start = row / inner * extent * inner + row % inner;
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return is_before(start + a * inner, start + b * inner); });
    for (int64_t i = 0; i < k; ++i)
      positions[static_cast<size_t>((row / inner * k + i) * inner + row % inner)] =
          order[static_cast<size_t>(i)];
  }
  return positions;
}

class SortPositions : public testing::TestWithParam<DType> {};

TEST_P(SortPositions, AsAStableSort) {
  std::mt19937 random(1);
  for (const int64_t span : {3, 100, 1000000}) {
    for (const int64_t extent : {1, 31, 64, 1000, 3000}) {
      Tensor x(GetParam(), {2, extent, 2});
      std::uniform_int_distribution<int64_t> draw(-span, span);
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        if (is_float(x.dtype())) {
          x.set_element(i, static_cast<double>(draw(random)) / 8);
        } else {
          x.set_element_int(i, draw(random));
        }
      }
      for (const int64_t k : {int64_t{0}, int64_t{1}, extent / 10, extent / 2, extent}) {
        for (const bool largest : {true, false}) {
          EXPECT_EQ(sorted_by_step(x, 1, k, largest), sorted_plainly(x, 1, k, largest))
              << extent << " of " << span << ", first " << k;
          const Tensor line = x.reshaped({x.num_elements()});
          EXPECT_EQ(sorted_by_step(line, 0, k, largest), sorted_plainly(line, 0, k, largest));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SortPositions,
                         testing::Values(DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                                         DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                                         DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64),
                         [](const auto& each) { return std::string(dtype_name(each.param)); });

TEST(SortPositionsTest, RisingAndFallingRowsAndNumbersThatAreNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor hard = Tensor::from<float>(
      {10}, std::vector<float>{0.0F, -0.0F, nan, -inf, inf, -nan, 1e-40F, -1e-40F, -0.0F, 0.0F});
  EXPECT_EQ(sorted_by_step(hard, 0, 10, true), (std::vector<int64_t>{2, 5, 4, 6, 0, 1, 8, 9, 7, 3}));
  EXPECT_EQ(sorted_by_step(hard, 0, 10, false), (std::vector<int64_t>{3, 7, 0, 1, 8, 9, 6, 4, 2, 5}));
  for (const float sign : {1.0F, -1.0F, 0.0F}) {
    std::vector<float> values(5000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = sign * static_cast<float>(i);
    const Tensor rows = Tensor::from<float>({5000}, std::span<const float>(values));
    for (const int64_t k : {1, 40, 600, 5000}) {
      EXPECT_EQ(sorted_by_step(rows, 0, k, true), sorted_plainly(rows, 0, k, true));
      EXPECT_EQ(sorted_by_step(rows, 0, k, false), sorted_plainly(rows, 0, k, false));
    }
  }
}

}  // namespace
}  // namespace tensormill::host_ops
