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

namespace tensormill::host_ops {

namespace {

bool is_unsigned(DType dtype) { return !dtype_info(dtype).is_signed; }

/// A row's elements as doubles or as 64-bit integers, whose order is that of the type.
int64_t ordered(const Tensor& x, int64_t at) {
  const int64_t value = x.element_as_int(at);
  return x.dtype() == DType::kUInt64
             ? static_cast<int64_t>(static_cast<uint64_t>(value) ^ (uint64_t{1} << 63))
             : value;
}

/// Rows along `axis`: element i of row (outer, inner) is at (outer * extent + i) * inner_count + inner.
struct Lines {
  int64_t outer = 1, extent = 1, inner = 1;

  Lines(const Shape& shape, size_t axis) : extent(shape[axis]) {
    for (size_t d = 0; d < axis; ++d) outer *= shape[d];
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  }
};

/// Positions of the first k of `keys` in the order of `before`, ties by position.
template <typename Key, typename Before>
void sort_line(const std::vector<Key>& keys, size_t k, std::vector<int64_t>& order, Before before) {
  std::iota(order.begin(), order.end(), 0);
  const auto earlier = [&](int64_t a, int64_t b) {
    const Key left = keys[static_cast<size_t>(a)], right = keys[static_cast<size_t>(b)];
    return before(left, right) || (!before(right, left) && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), earlier);
}

template <typename Key, typename Read, typename Before>
void sort_lines(const Lines& lines, int64_t k, int64_t* positions, Read read, Before before) {
  std::vector<Key> keys(static_cast<size_t>(lines.extent));
  std::vector<int64_t> order(static_cast<size_t>(lines.extent));
  for (int64_t outer = 0; outer < lines.outer; ++outer) {
    for (int64_t inner = 0; inner < lines.inner; ++inner) {
      for (int64_t i = 0; i < lines.extent; ++i)
        keys[static_cast<size_t>(i)] = read((outer * lines.extent + i) * lines.inner + inner);
      sort_line(keys, static_cast<size_t>(k), order, before);
      for (int64_t i = 0; i < k; ++i)
        positions[(outer * k + i) * lines.inner + inner] = order[static_cast<size_t>(i)];
    }
  }
}

/// NaN is the largest.
bool is_greater(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

}  // namespace

void sort_positions(const HostCall& call) {
  expect(call, 1, 1);
  const Tensor x = copied(call.inputs[0]);
  const Lines lines(x.shape(), axis_of(call, x.shape().size()));
  const int64_t rows = lines.outer * lines.inner;
  const auto entries = static_cast<int64_t>(call.output_bytes[0] / sizeof(int64_t));
  const int64_t k = rows == 0 ? 0 : entries / rows;
  int64_t* positions = integers(call, 0, rows * k);
  if (k > lines.extent)
    throw Error(ErrorCode::kInvalidPackage, "a host step sorts more elements than there are");
  const bool largest = Attributes(call).flag("largest");
  if (is_float(x.dtype())) {
    sort_lines<double>(
        lines, k, positions, [&](int64_t at) { return x.element_as_double(at); },
        [largest](double a, double b) { return largest ? is_greater(a, b) : is_greater(b, a); });
  } else {
    sort_lines<int64_t>(
        lines, k, positions, [&](int64_t at) { return ordered(x, at); },
        [largest](int64_t a, int64_t b) { return largest ? a > b : a < b; });
  }
}

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

namespace {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMin, kMax };

Reduction reduction_of(const HostCall& call) {
  const std::string name = Attributes(call).text("reduction");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  throw Error(ErrorCode::kInvalidPackage, "a host step scatters by \"" + name + "\"");
}

double combined(Reduction reduction, double a, double b) {
  if (reduction == Reduction::kAdd) return a + b;
  if (reduction == Reduction::kMul) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  return reduction == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}

int64_t combined(Reduction reduction, int64_t a, int64_t b, bool u) {
  const auto left = static_cast<uint64_t>(a), right = static_cast<uint64_t>(b);
  if (reduction == Reduction::kAdd) return static_cast<int64_t>(left + right);
  if (reduction == Reduction::kMul) return static_cast<int64_t>(left * right);
  const bool less = u ? left < right : a < b;
  return less == (reduction == Reduction::kMin) ? a : b;
}

/// Element of x to which each update goes, in the updates' row-major order.
class Targets {
public:
  Targets(const TensorView& indices, const Shape& shape, size_t axis)
      : indices_(copied(indices)),
        shape_(shape),
        axis_(axis),
        at_(shape.size(), 0),
        strides_(shape.size(), 1) {
    for (size_t d = shape.size(); d-- > 1;) strides_[d - 1] = strides_[d] * shape[d];
  }

  int64_t count() const { return indices_.num_elements(); }

  int64_t next(int64_t update) {
    int64_t index = indices_.element_as_int(update);
    if (index < 0) index += shape_[axis_];
    if (index < 0 || index >= shape_[axis_])
      throw Error(ErrorCode::kTensorData, "index " + std::to_string(indices_.element_as_int(update)) +
                                              ", element " + std::to_string(update) +
                                              " of the indices, is outside of an axis of " +
                                              std::to_string(shape_[axis_]));
    int64_t to = index * strides_[axis_];
    for (size_t d = 0; d < at_.size(); ++d) to += d == axis_ ? 0 : at_[d] * strides_[d];
    for (size_t d = at_.size(); d-- > 0;) {
      if (++at_[d] < indices_.shape()[d]) break;
      at_[d] = 0;
    }
    return to;
  }

private:
  Tensor indices_;
  Shape shape_;
  size_t axis_;
  Shape at_, strides_;
};

void check_operands(const HostCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2];
  bool fits = x.dtype == updates.dtype && indices.shape == updates.shape &&
              x.shape.size() == indices.shape.size() &&
              (indices.dtype == DType::kInt64 || indices.dtype == DType::kInt32);
  const size_t axis = axis_of(call, x.shape.size());
  for (size_t d = 0; fits && d < x.shape.size(); ++d) fits = d == axis || indices.shape[d] <= x.shape[d];
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step scatters operands that do not fit");
}

}  // namespace

void scatter(const HostCall& call) {
  expect(call, 3, 1);
  check_operands(call);
  const TensorView& x = call.inputs[0];
  const size_t bytes = dtype_bytes(x.dtype), axis = axis_of(call, x.shape.size());
  const auto elements = static_cast<size_t>(num_elements(x.shape));
  auto* target = static_cast<std::byte*>(storage(call, 0, elements, bytes));
  std::copy_n(static_cast<const std::byte*>(x.data), elements * bytes, target);
  const Reduction reduction = reduction_of(call);
  Targets targets(call.inputs[1], x.shape, axis);
  const auto* source = static_cast<const std::byte*>(call.inputs[2].data);
  if (reduction == Reduction::kNone) {
    for (int64_t i = 0; i < targets.count(); ++i)
      std::copy_n(source + static_cast<size_t>(i) * bytes, bytes,
                  target + static_cast<size_t>(targets.next(i)) * bytes);
    return;
  }
  const Tensor updates = copied(call.inputs[2]);
  // Sums of narrower floats are rounded once, at the end.
  const bool real = is_float(x.dtype);
  const Tensor initial = copied(x);
  std::vector<double> reals(real ? elements : 0);
  std::vector<int64_t> integers(real ? 0 : elements);
  for (size_t i = 0; i < reals.size(); ++i) reals[i] = initial.element_as_double(static_cast<int64_t>(i));
  for (size_t i = 0; i < integers.size(); ++i) integers[i] = initial.element_as_int(static_cast<int64_t>(i));
  for (int64_t i = 0; i < targets.count(); ++i) {
    const auto to = static_cast<size_t>(targets.next(i));
    if (real) {
      reals[to] = combined(reduction, reals[to], updates.element_as_double(i));
    } else {
      integers[to] = combined(reduction, integers[to], updates.element_as_int(i), is_unsigned(x.dtype));
    }
  }
  Tensor result(x.dtype, x.shape);
  for (size_t i = 0; i < reals.size(); ++i) result.set_element(static_cast<int64_t>(i), reals[i]);
  for (size_t i = 0; i < integers.size(); ++i) result.set_element_int(static_cast<int64_t>(i), integers[i]);
  std::copy_n(static_cast<const std::byte*>(result.data()), elements * bytes, target);
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
