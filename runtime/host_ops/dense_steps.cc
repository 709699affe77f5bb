#include "runtime/host_ops/dense_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/lines.h"

namespace tensormill::host_ops {

namespace {

struct Running {
  bool product, exclusive, reverse;
};

/// `T` in memory, `A` in between.
template <typename T, typename A>
void run_along(const Lines& lines, const Running& how, const T* x, T* y) {
  std::vector<A> totals(static_cast<size_t>(lines.inner));
  for (int64_t outer = 0; outer < lines.outer; ++outer) {
    std::fill(totals.begin(), totals.end(), how.product ? A{1} : A{0});
    for (int64_t k = 0; k < lines.extent; ++k) {
      const int64_t row = outer * lines.extent + (how.reverse ? lines.extent - 1 - k : k);
      for (int64_t inner = 0; inner < lines.inner; ++inner) {
        A& total = totals[static_cast<size_t>(inner)];
        const A value = static_cast<A>(x[row * lines.inner + inner]);
        const A next = how.product ? total * value : total + value;
        y[row * lines.inner + inner] = static_cast<T>(how.exclusive ? total : next);
        total = next;
      }
    }
  }
}

template <typename T, typename A>
void run_in_place(const HostCall& call, const Lines& lines, const Running& how) {
  const auto count = static_cast<size_t>(lines.outer * lines.extent * lines.inner);
  auto* y = static_cast<T*>(storage(call, 0, count, sizeof(T)));
  run_along<T, A>(lines, how, static_cast<const T*>(call.inputs[0].data), y);
}

/// Floats of 16 bits.
void run_widened(const HostCall& call, const Lines& lines, const Running& how) {
  const Tensor x = copied(call.inputs[0]);
  std::vector<double> values(static_cast<size_t>(x.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = x.element_as_double(static_cast<int64_t>(i));
  run_along<double, double>(lines, how, values.data(), values.data());
  Tensor y(x.dtype(), x.shape());
  for (size_t i = 0; i < values.size(); ++i) y.set_element(static_cast<int64_t>(i), values[i]);
  void* target = storage(call, 0, values.size(), dtype_bytes(x.dtype()));
  if (y.num_bytes() != 0) std::memcpy(target, y.data(), y.num_bytes());
}

}  // namespace

void running_totals(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& x = call.inputs[0];
  const Lines lines(x.shape, axis_of(call, x.shape.size()));
  const Attributes attributes(call);
  const Running how{attributes.flag("product"), attributes.flag("exclusive"), attributes.flag("reverse")};
  switch (x.dtype) {
    case DType::kFloat32:
      return run_in_place<float, double>(call, lines, how);
    case DType::kFloat64:
      return run_in_place<double, double>(call, lines, how);
    case DType::kInt32:
    case DType::kUInt32:
      return run_in_place<uint32_t, uint32_t>(call, lines, how);
    case DType::kInt64:
    case DType::kUInt64:
      return run_in_place<uint64_t, uint64_t>(call, lines, how);
    case DType::kFloat16:
    case DType::kBFloat16:
      return run_widened(call, lines, how);
    default:
      throw Error(ErrorCode::kInvalidPackage, "a host step runs along elements of a type that has no sums");
  }
}

void pairwise_coupling(std::span<const double> first, std::span<double> classes) {
  const size_t count = classes.size();
  // Q of the paper's problem: minimize p' Q p where the p add up to 1.
  std::vector<double> q(count * count, 0), qp(count, 0);
  size_t pair = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j < count; ++j, ++pair) {
      const double wins = first[pair], loses = 1 - wins;
      q[i * count + i] += loses * loses;
      q[j * count + j] += wins * wins;
      q[i * count + j] = q[j * count + i] = -wins * loses;
    }
  }
  std::fill(classes.begin(), classes.end(), 1 / static_cast<double>(count));
  const double tolerance = 0.005 / static_cast<double>(count);
  const size_t rounds = std::max<size_t>(100, count);
  for (size_t round = 0; round < rounds; ++round) {
    double objective = 0;
    for (size_t t = 0; t < count; ++t) {
      qp[t] = std::inner_product(classes.begin(), classes.end(), &q[t * count], 0.0);
      objective += classes[t] * qp[t];
    }
    double error = 0;
    for (const double each : qp) error = std::max(error, std::fabs(each - objective));
    if (error < tolerance) break;
    for (size_t t = 0; t < count; ++t) {
      const double diagonal = q[t * count + t];
      const double change = (objective - qp[t]) / diagonal;
      classes[t] += change;
      objective = (objective + change * (change * diagonal + 2 * qp[t])) / (1 + change) / (1 + change);
      for (size_t j = 0; j < count; ++j) {
        qp[j] = (qp[j] + change * q[t * count + j]) / (1 + change);
        classes[j] /= 1 + change;
      }
    }
  }
}

void couple_pairs(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& x = call.inputs[0];
  if (x.dtype != DType::kFloat32 || x.shape.size() != 2)
    throw Error(ErrorCode::kInvalidPackage, "a host step couples no matrix of float32");
  const auto rows = static_cast<size_t>(x.shape[0]), pairs = static_cast<size_t>(x.shape[1]);
  size_t count = 2;
  while (count * (count - 1) / 2 < pairs) ++count;
  if (count * (count - 1) / 2 != pairs)
    throw Error(ErrorCode::kInvalidPackage, std::to_string(pairs) + " are no number of pairs");
  auto* target = static_cast<float*>(storage(call, 0, rows * count, sizeof(float)));
  const auto* source = static_cast<const float*>(x.data);
  std::vector<double> first(pairs), classes(count);
  for (size_t row = 0; row < rows; ++row) {
    std::copy_n(source + row * pairs, pairs, first.begin());
    pairwise_coupling(first, classes);
    std::transform(classes.begin(), classes.end(), target + row * count,
                   [](double value) { return static_cast<float>(value); });
  }
}

}  // namespace tensormill::host_ops
