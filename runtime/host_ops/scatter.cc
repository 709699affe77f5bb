// Updates go to their places in one walk over the updates: row by row along their last axis.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMin, kMax };

Reduction reduction_of(const Attributes& attributes) {
  const std::string name = attributes.text("reduction");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  throw Error(ErrorCode::kInvalidPackage, "a host step scatters by \"" + name + "\"");
}

template <Reduction how, typename T>
T combined(T a, T b) {
  if constexpr (how == Reduction::kNone) return b;
  if constexpr (std::is_integral_v<T>) {
    // Sums and products wrap around.
    const auto left = static_cast<uint64_t>(a), right = static_cast<uint64_t>(b);
    if constexpr (how == Reduction::kAdd) return static_cast<T>(left + right);
    if constexpr (how == Reduction::kMul) return static_cast<T>(left * right);
  } else {
    if constexpr (how == Reduction::kAdd) return a + b;
    if constexpr (how == Reduction::kMul) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  }
  return how == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}

/// An axis of the updates: how far its neighbours are apart in the indices and in x.
struct Step {
  int64_t extent = 1, in_indices = 0, in_x = 0;
};

/// How updates, indices and x lie beside each other.
class Walk {
public:
  Walk(const HostCall& call, size_t axis) : indices_(call.inputs[1]) {
    const Shape &x = call.inputs[0].shape, &updates = call.inputs[2].shape;
    steps_.resize(updates.size());
    int64_t index_stride = 1, x_stride = 1;
    for (size_t d = updates.size(); d-- > 0;) {
      const bool is_spread = indices_.shape[d] == 1;
      steps_[d] = {updates[d], is_spread ? 0 : index_stride, d == axis ? 0 : x_stride};
      if (d == axis) axis_stride_ = x_stride;
      index_stride *= indices_.shape[d];
      x_stride *= x[d];
    }
    limit_ = x[axis];
    rows_ = 1;
    for (size_t d = 0; d + 1 < updates.size(); ++d) rows_ *= updates[d];
  }

  /// Calls each(to, from, count) for updates that lie side by side, and so do their places in x.
  template <typename F>
  void run(F&& each) const {
    if (indices_.dtype == DType::kInt64) {
      walk(static_cast<const int64_t*>(indices_.data), each);
    } else {
      walk(static_cast<const int32_t*>(indices_.data), each);
    }
  }

private:
  template <typename Index, typename F>
  void walk(const Index* indices, F& each) const {
    const Step& last = steps_.back();
    if (last.extent == 0) return;
    Shape at(steps_.size(), 0);
    int64_t index_base = 0, x_base = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const Index* own = indices + index_base;
      const int64_t from = row * last.extent;
      if (last.in_indices == 0 && last.in_x == 1) {
        each(x_base + place(*own, own - indices), from, last.extent);
      } else {
        for (int64_t j = 0; j < last.extent; ++j, own += last.in_indices)
          each(x_base + j * last.in_x + place(*own, own - indices), from + j, int64_t{1});
      }
      for (size_t d = steps_.size() - 1; d-- > 0;) {
        index_base += steps_[d].in_indices;
        x_base += steps_[d].in_x;
        if (++at[d] < steps_[d].extent) break;
        index_base -= steps_[d].extent * steps_[d].in_indices;
        x_base -= steps_[d].extent * steps_[d].in_x;
        at[d] = 0;
      }
    }
  }

  int64_t place(int64_t index, int64_t position) const {
    const int64_t front = index < 0 ? index + limit_ : index;
    if (front < 0 || front >= limit_) {
      throw Error(ErrorCode::kTensorData,
                  "index " + std::to_string(index) + ", element " + std::to_string(position) +
                      " of the indices, is outside of an axis of " + std::to_string(limit_));
    }
    return front * axis_stride_;
  }

  const TensorView& indices_;
  std::vector<Step> steps_;
  int64_t axis_stride_ = 1, limit_ = 0, rows_ = 1;
};

template <Reduction how, typename T>
void scatter_values(const Walk& walk, const T* updates, T* target) {
  walk.run([&](int64_t to, int64_t from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) target[to + i] = combined<how, T>(target[to + i], updates[from + i]);
  });
}

template <typename T>
void scatter_as(const Walk& walk, Reduction how, const T* updates, T* target) {
  switch (how) {
    case Reduction::kNone:
      return scatter_values<Reduction::kNone>(walk, updates, target);
    case Reduction::kAdd:
      return scatter_values<Reduction::kAdd>(walk, updates, target);
    case Reduction::kMul:
      return scatter_values<Reduction::kMul>(walk, updates, target);
    case Reduction::kMin:
      return scatter_values<Reduction::kMin>(walk, updates, target);
    case Reduction::kMax:
      return scatter_values<Reduction::kMax>(walk, updates, target);
  }
}

template <typename T>
void scatter_typed(const Walk& walk, Reduction how, const void* updates, void* target) {
  scatter_as(walk, how, static_cast<const T*>(updates), static_cast<T*>(target));
}

/// Elements of any kind that take their places.
void replace(const Walk& walk, size_t bytes, const void* updates, void* target) {
  switch (bytes) {
    case 1:
      return scatter_typed<uint8_t>(walk, Reduction::kNone, updates, target);
    case 2:
      return scatter_typed<uint16_t>(walk, Reduction::kNone, updates, target);
    case 4:
      return scatter_typed<uint32_t>(walk, Reduction::kNone, updates, target);
    default:
      return scatter_typed<uint64_t>(walk, Reduction::kNone, updates, target);
  }
}

/// Floats of 16 bits are rounded once, at the end.
void scatter_widened(const HostCall& call, const Walk& walk, Reduction how) {
  const auto widened = [](const TensorView& view) {
    const Tensor tensor = copied(view);
    std::vector<double> values(static_cast<size_t>(tensor.num_elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.element_as_double(static_cast<int64_t>(i));
    return values;
  };
  std::vector<double> values = widened(call.inputs[0]);
  const std::vector<double> updates = widened(call.inputs[2]);
  scatter_as<double>(walk, how, updates.data(), values.data());
  Tensor result(call.inputs[0].dtype, call.inputs[0].shape);
  for (size_t i = 0; i < values.size(); ++i) result.set_element(static_cast<int64_t>(i), values[i]);
  std::copy_n(static_cast<const std::byte*>(result.data()), result.num_bytes(),
              static_cast<std::byte*>(call.outputs[0]));
}

void check_operands(const HostCall& call, size_t axis) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2];
  const size_t rank = x.shape.size();
  bool fits = x.dtype == updates.dtype && indices.shape.size() == rank && updates.shape.size() == rank &&
              (indices.dtype == DType::kInt64 || indices.dtype == DType::kInt32);
  for (size_t d = 0; fits && d < rank; ++d) {
    fits = (indices.shape[d] == updates.shape[d] || (d != axis && indices.shape[d] == 1)) &&
           (d == axis || updates.shape[d] <= x.shape[d]);
  }
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step scatters operands that do not fit");
}

}  // namespace

void scatter(const HostCall& call) {
  expect(call, 3, 1);
  const TensorView& x = call.inputs[0];
  const size_t axis = axis_of(call, x.shape.size());
  check_operands(call, axis);
  const size_t bytes = dtype_bytes(x.dtype);
  const auto elements = static_cast<size_t>(num_elements(x.shape));
  void* target = storage(call, 0, elements, bytes);
  const Reduction how = reduction_of(Attributes(call));
  const Walk walk(call, axis);
  const void* updates = call.inputs[2].data;
  // The result may lie on x.
  if (target != x.data)
    std::copy_n(static_cast<const std::byte*>(x.data), elements * bytes, static_cast<std::byte*>(target));
  if (num_elements(call.inputs[2].shape) == 0) return;
  if (how == Reduction::kNone) return replace(walk, bytes, updates, target);
  switch (x.dtype) {
    case DType::kFloat32:
      return scatter_typed<float>(walk, how, updates, target);
    case DType::kFloat64:
      return scatter_typed<double>(walk, how, updates, target);
    case DType::kInt8:
      return scatter_typed<int8_t>(walk, how, updates, target);
    case DType::kInt16:
      return scatter_typed<int16_t>(walk, how, updates, target);
    case DType::kInt32:
      return scatter_typed<int32_t>(walk, how, updates, target);
    case DType::kInt64:
      return scatter_typed<int64_t>(walk, how, updates, target);
    case DType::kUInt8:
    case DType::kBool:
      return scatter_typed<uint8_t>(walk, how, updates, target);
    case DType::kUInt16:
      return scatter_typed<uint16_t>(walk, how, updates, target);
    case DType::kUInt32:
      return scatter_typed<uint32_t>(walk, how, updates, target);
    case DType::kUInt64:
      return scatter_typed<uint64_t>(walk, how, updates, target);
    default:
      return scatter_widened(call, walk, how);
  }
}

}  // namespace tensormill::host_ops
