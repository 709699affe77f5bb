#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/data_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

/// From which cell the cheapest path comes.
enum class From : uint8_t { kBoth, kRowAbove, kColumnBefore };

/// For each cell of costs [rows, columns], row by row.
std::vector<From> cheapest_steps(const float* costs, size_t rows, size_t columns) {
  constexpr float kNoPath = std::numeric_limits<float>::infinity();
  std::vector<From> steps(rows * columns);
  // Of the column before and of this one, the first cell stands for what is above the matrix.
  std::vector<float> before(rows + 1, kNoPath), here(rows + 1, kNoPath);
  before[0] = 0;
  for (size_t j = 0; j < columns; ++j) {
    here[0] = kNoPath;
    for (size_t i = 0; i < rows; ++i) {
      const float both = before[i], above = here[i], left = before[i + 1];
      From& step = steps[i * columns + j];
      step = both < above && both < left    ? From::kBoth
             : above < both && above < left ? From::kRowAbove
                                            : From::kColumnBefore;
      const float least = step == From::kBoth ? both : step == From::kRowAbove ? above : left;
      here[i + 1] = least + costs[i * columns + j];
    }
    std::swap(before, here);
  }
  return steps;
}

}  // namespace

void warping_path(const HostCall& call) {
  expect(call, 1, 2);
  const TensorView& costs = call.inputs[0];
  if (costs.dtype != DType::kFloat32 || costs.shape.size() != 2)
    throw Error(ErrorCode::kInvalidPackage, "a host step finds a path through what is no matrix of floats");
  const auto rows = static_cast<size_t>(costs.shape[0]), columns = static_cast<size_t>(costs.shape[1]);
  const size_t most = std::max<size_t>(rows + columns, 1) - 1;
  auto* path = static_cast<int32_t*>(storage(call, 0, 2 * most, sizeof(int32_t)));
  std::fill_n(path, 2 * most, 0);
  const Tensor aligned = copied(costs);
  const std::vector<From> steps = cheapest_steps(aligned.values<float>().data(), rows, columns);
  size_t count = 0;
  // Backwards from the last cell; what is left of the first column or above the first row ends the path.
  for (size_t i = rows, j = columns; i > 0 && j > 0; ++count) {
    path[count] = static_cast<int32_t>(i - 1);
    path[most + count] = static_cast<int32_t>(j - 1);
    const From step = steps[(i - 1) * columns + j - 1];
    if (step != From::kColumnBefore) --i;
    if (step != From::kRowAbove) --j;
  }
  std::reverse(path, path + count);
  std::reverse(path + most, path + most + count);
  *integers(call, 1, 1) = static_cast<int64_t>(count);
}

}  // namespace tensormill::host_ops
