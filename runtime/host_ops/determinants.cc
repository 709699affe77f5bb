#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

/// The row from `first` on whose element in column `first` is the largest; a NaN is larger than all.
size_t pivot_row(const std::vector<double>& matrix, size_t order, size_t first) {
  size_t best = first;
  for (size_t row = first; row < order; ++row) {
    const double size = std::fabs(matrix[row * order + first]);
    if (std::isnan(size)) return row;
    if (size > std::fabs(matrix[best * order + first])) best = row;
  }
  return best;
}

/// `matrix` is eliminated in place.
double determinant(std::vector<double>& matrix, size_t order) {
  double result = 1;
  for (size_t step = 0; step < order; ++step) {
    const size_t pivot = pivot_row(matrix, order, step);
    double* const own = &matrix[step * order];
    if (pivot != step) {
      std::swap_ranges(own + step, own + order, &matrix[pivot * order + step]);
      result = -result;
    }
    result *= own[step];
    if (own[step] == 0) continue;
    for (size_t row = step + 1; row < order; ++row) {
      double* const other = &matrix[row * order];
      const double factor = other[step] / own[step];
      for (size_t column = step + 1; column < order; ++column) other[column] -= factor * own[column];
    }
  }
  return result;
}

}  // namespace

void determinants(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& view = call.inputs[0];
  if (!is_float(view.dtype) || view.shape.size() != 3 || view.shape[1] != view.shape[2])
    throw Error(ErrorCode::kInvalidPackage,
                "a host step takes determinants of what is no square matrix of floats");
  const Tensor x = copied(view);
  const auto order = static_cast<size_t>(view.shape[1]);
  Tensor results(view.dtype, {view.shape[0]});
  // No room for matrices of which there are none: their order is whatever a plan says.
  std::vector<double> matrix(view.shape[0] > 0 ? order * order : 0);
  const auto elements = static_cast<int64_t>(matrix.size());
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    for (int64_t k = 0; k < elements; ++k)
      matrix[static_cast<size_t>(k)] = x.element_as_double(i * elements + k);
    results.set_element(i, determinant(matrix, order));
  }
  void* target = storage(call, 0, static_cast<size_t>(view.shape[0]), dtype_bytes(view.dtype));
  if (results.num_bytes() != 0) std::memcpy(target, results.data(), results.num_bytes());
}

}  // namespace tensormill::host_ops
