#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/host_ops/registry.h"
#include "tests/expect_error.h"

namespace tensormill::host_ops {
namespace {

TEST(Append, MovesThePartAlone) {
  const std::vector<float> values = {1, 2, 0, 0, 5, 6, 0, 0}, more = {3, 7};
  const Tensor x = Tensor::from<float>({2, 4}, values), part = Tensor::from<float>({2, 1}, more);
  const HostFunction append = find_host_op("append");
  const auto view = [](const Tensor& tensor) {
    return TensorView{tensor.dtype(), tensor.shape(), tensor.data()};
  };
  const std::map<int64_t, std::vector<float>> expected = {{2, {1, 2, 3, 0, 5, 6, 7, 0}},
                                                          {0, {3, 2, 0, 0, 7, 6, 0, 0}},
                                                          {-5, {3, 2, 0, 0, 7, 6, 0, 0}},
                                                          {3, {1, 2, 0, 3, 5, 6, 0, 7}},
                                                          {4, values},
                                                          {int64_t{1} << 62, values}};
  for (const auto& [first, wanted] : expected) {
    const Tensor n = Tensor::from<int64_t>({1}, std::vector<int64_t>{first});
    Tensor apart(DType::kFloat32, {2, 4}), in_place = Tensor::from<float>({2, 4}, values);
    for (const bool is_in_place : {false, true}) {
      Tensor& target = is_in_place ? in_place : apart;
      const std::vector<TensorView> inputs = {view(is_in_place ? in_place : x), view(n), view(part)};
      const std::vector<void*> outputs = {target.data()};
      const std::vector<size_t> bytes = {target.num_bytes()};
      append({inputs, outputs, bytes, R"({"axis":1})"});
      const std::span<const float> got = target.values<float>();
      EXPECT_EQ(std::vector<float>(got.begin(), got.end()), wanted) << first << " " << is_in_place;
    }
  }
  const Tensor n = Tensor::from<int64_t>({1}, std::vector<int64_t>{0}),
               wide = Tensor::zeros(DType::kFloat32, {3, 1});
  Tensor target(DType::kFloat32, {2, 4});
  const std::vector<TensorView> inputs = {view(x), view(n), view(wide)};
  const std::vector<void*> outputs = {target.data()};
  const std::vector<size_t> bytes = {target.num_bytes()};
  expect_error(ErrorCode::kInvalidPackage, "appended", [&] {
    append({inputs, outputs, bytes, R"({"axis":1})"});
  });
}

}  // namespace
}  // namespace tensormill::host_ops
