// The largest pixels of the bins of boxes: their ends, bins without pixels, and numbers that are none.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/tensor.h"
#include "runtime/host_ops/registry.h"
#include "tests/expect_error.h"

namespace tensormill::host_ops {
namespace {

/// Of two pictures of 4 by 5 pixels, 0 to 19 and 20 to 39.
std::vector<float> pooled(const std::vector<float>& boxes, const std::vector<int64_t>& pictures,
                          const std::string& attributes) {
  std::vector<float> pixels;
  for (int i = 0; i < 40; ++i) pixels.push_back(static_cast<float>(i));
  const auto count = static_cast<int64_t>(pictures.size());
  const Tensor x = Tensor::from<float>({2, 1, 4, 5}, pixels), at = Tensor::from<float>({count, 4}, boxes),
               of = Tensor::from<int64_t>({count}, pictures);
  const std::vector<TensorView> inputs{{x.dtype(), x.shape(), x.data()},
                                       {at.dtype(), at.shape(), at.data()},
                                       {of.dtype(), of.shape(), of.data()}};
  std::vector<float> result(pictures.size() * 4);
  const std::vector<void*> outputs{result.data()};
  const std::vector<size_t> bytes{result.size() * sizeof(float)};
  find_host_op("roi_pool")({inputs, outputs, bytes, attributes});
  return result;
}

const std::string kHalves = R"({"height": 2, "width": 2, "spatial_scale": 0.5})";
using Pixels = std::vector<float>;

TEST(RoiPool, BoxesReachToTheirLastPixel) {
  // Columns 0 to 3 and rows 0 to 1; columns 1 to 3, of which the second is in both bins.
  EXPECT_EQ(pooled({0, 0, 6, 2}, {0}, kHalves), (Pixels{1, 3, 6, 8}));
  EXPECT_EQ(pooled({2, 0, 6, 2}, {1}, kHalves), (Pixels{22, 23, 27, 28}));
  // Halves are rounded away from zero: from pixel 1 to 3.
  EXPECT_EQ(pooled({1, 1, 5, 5}, {0}, kHalves), (Pixels{12, 13, 17, 18}));
}

TEST(RoiPool, WhereThereIsNoPixelIsZero) {
  EXPECT_EQ(pooled({40, 40, 50, 50}, {1}, kHalves), (Pixels{0, 0, 0, 0}));
  EXPECT_EQ(pooled({-4, -4, 2, 2}, {1}, kHalves), (Pixels{0, 0, 0, 26}));
  // A box that is turned round is a pixel large.
  EXPECT_EQ(pooled({4, 4, 0, 0}, {0}, kHalves), (Pixels{12, 12, 12, 12}));
  const float nan = std::numeric_limits<float>::quiet_NaN(), most = std::numeric_limits<float>::max();
  EXPECT_EQ(pooled({nan, 0, 6, 2, -most, -most, most, most}, {0, 0}, kHalves),
            (Pixels{0, 0, 0, 0, 0, 0, 0, 19}));
}

TEST(RoiPool, APictureThatIsNotThereIsAnError) {
  expect_error(ErrorCode::kTensorData, "box 0 is in picture 2 of 2", [] {
    pooled({0, 0, 1, 1}, {2}, kHalves);
  });
  expect_error(ErrorCode::kInvalidPackage, "0 by 2 bins", [] {
    pooled({0, 0, 1, 1}, {0}, R"({"height": 0, "width": 2, "spatial_scale": 1.0})");
  });
}

}  // namespace
}  // namespace tensormill::host_ops
