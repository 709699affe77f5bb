/// A tensor: dtype, shape and row-major bytes. `Tensor` shares ownership of its bytes (64-byte aligned, with
/// 64 readable bytes after the last); `TensorView` never owns.
/// Thread-safety: as std::shared_ptr; concurrent writers of one buffer are the caller's affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tensormill {

inline constexpr size_t kTensorAlignment = 64;
/// Readable bytes after each buffer: a vector load at the last element stays inside.
inline constexpr size_t kTensorPadding = 64;

class Tensor {
public:
  /// An empty f32 tensor of shape [0].
  Tensor();
  /// Uninitialized bytes. Throws Error(kInvalidTensor) when the size is past kMaxTensorBytes,
  /// Error(kMemoryBudget) when the system has no memory for it.
  Tensor(DType dtype, Shape shape);
  /// Bytes owned by `owner` (a mapping, a larger buffer); `data` must be readable for num_bytes.
  Tensor(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data);
  static Tensor zeros(DType dtype, Shape shape);
  template <typename T>
  static Tensor from(Shape shape, std::span<const T> values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return elements_; }
  size_t num_bytes() const { return static_cast<size_t>(elements_) * dtype_bytes(dtype_); }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <typename T>
  std::span<T> values() {
    check_type(DTypeOf<T>::value);
    return {static_cast<T*>(data_), static_cast<size_t>(elements_)};
  }
  template <typename T>
  std::span<const T> values() const {
    check_type(DTypeOf<T>::value);
    return {static_cast<const T*>(data_), static_cast<size_t>(elements_)};
  }
  /// The same bytes under another shape with as many elements.
  Tensor reshaped(Shape shape) const;
  /// A deep copy.
  Tensor clone() const;
  /// Element `index` (row-major) as a double; f16 and bf16 are widened, bool is 0 or 1. This and what follows
  /// throws std::out_of_range for an index outside of [0, num_elements()).
  double element_as_double(int64_t index) const;
  /// Element as int64 (floats truncate; for integer dtypes exact, u64 wraps).
  int64_t element_as_int(int64_t index) const;
  /// Stores `value` converted to the dtype (floats round half to even; integers truncate and wrap; bool:
  /// value != 0).
  void set_element(int64_t index, double value);
  void set_element_int(int64_t index, int64_t value);

private:
  void check_type(DType expected) const;

  DType dtype_;
  Shape shape_;
  int64_t elements_;
  std::shared_ptr<void> owner_;
  void* data_;
};

struct TensorView {
  DType dtype = DType::kFloat32;
  Shape shape;
  const void* data = nullptr;
};

/// Aligned, padded, zero-size safe allocation. Throws Error(kMemoryBudget).
std::shared_ptr<void> allocate_aligned(size_t bytes);

template <typename T>
Tensor Tensor::from(Shape shape, std::span<const T> values) {
  Tensor tensor(DTypeOf<T>::value, std::move(shape));
  std::span<T> target = tensor.values<T>();
  for (size_t i = 0; i < target.size() && i < values.size(); ++i) target[i] = values[i];
  return tensor;
}

}  // namespace tensormill
