#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

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

/// What a row's elements are sorted by: doubles, or whole numbers in the order of their type.
template <typename Key>
std::vector<Key> keys_of(const Tensor& x) {
  std::vector<Key> keys(static_cast<size_t>(x.num_elements()));
  for (size_t i = 0; i < keys.size(); ++i) {
    if constexpr (std::is_same_v<Key, double>) {
      keys[i] = x.element_as_double(static_cast<int64_t>(i));
    } else {
      keys[i] = static_cast<Key>(x.element_as_int(static_cast<int64_t>(i)));
    }
  }
  return keys;
}

bool is_more(double left, double right) { return left > right || (std::isnan(left) && !std::isnan(right)); }
bool is_more(int64_t left, int64_t right) { return left > right; }
bool is_more(uint64_t left, uint64_t right) { return left > right; }

/// Each row's positions by a stable sort of all of it, row after row: any k takes the first of each.
template <typename Key>
std::vector<std::vector<int64_t>> sorted_rows(const Tensor& x, int64_t axis, bool largest) {
  const std::vector<Key> keys = keys_of<Key>(x);
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < x.shape().size(); ++d) inner *= x.shape()[d];
  const int64_t extent = x.shape()[static_cast<size_t>(axis)], rows = x.num_elements() / extent;
  std::vector<std::vector<int64_t>> orders;
  for (int64_t row = 0; row < rows; ++row) {
    const Key* first = keys.data() + row / inner * extent * inner + row % inner;
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (!largest) std::swap(a, b);
      return is_more(first[a * inner], first[b * inner]);
    });
    orders.push_back(std::move(order));
  }
  return orders;
}

/// The same as the step's by a stable sort, for each of `ks`.
std::vector<std::vector<int64_t>> sorted_plainly(const Tensor& x, int64_t axis,
                                                 const std::vector<int64_t>& ks, bool largest) {
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < x.shape().size(); ++d) inner *= x.shape()[d];
  const auto orders = is_float(x.dtype())           ? sorted_rows<double>(x, axis, largest)
                      : x.dtype() == DType::kUInt64 ? sorted_rows<uint64_t>(x, axis, largest)
                                                    : sorted_rows<int64_t>(x, axis, largest);
  std::vector<std::vector<int64_t>> all;
  for (const int64_t k : ks) {
    std::vector<int64_t> positions(orders.size() * static_cast<size_t>(k));
    for (int64_t row = 0; row < static_cast<int64_t>(orders.size()); ++row)
      for (int64_t i = 0; i < k; ++i)
        positions[static_cast<size_t>((row / inner * k + i) * inner + row % inner)] =
            orders[static_cast<size_t>(row)][static_cast<size_t>(i)];
    all.push_back(std::move(positions));
  }
  return all;
}

void expect_sorted(const Tensor& x, int64_t axis, const std::vector<int64_t>& ks, const std::string& what) {
  for (const bool largest : {true, false}) {
    const auto expected = sorted_plainly(x, axis, ks, largest);
    for (size_t i = 0; i < ks.size(); ++i)
      EXPECT_EQ(sorted_by_step(x, axis, ks[i], largest), expected[i])
          << what << ", the first " << ks[i] << ", largest " << largest;
  }
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
      const std::vector<int64_t> ks{0, 1, extent / 10, extent / 2, extent};
      const std::string what = std::to_string(extent) + " of " + std::to_string(span);
      expect_sorted(x, 1, ks, what);
      expect_sorted(x.reshaped({x.num_elements()}), 0, ks, what + " in a line");
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
    expect_sorted(rows, 0, {1, 40, 600, 5000}, "5000 in a row");
  }
}

}  // namespace
}  // namespace tensormill::host_ops
