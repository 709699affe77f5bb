/// What the reference evaluations of operators share: plain C++ over whole tensors, in double or int64.
/// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"

namespace tensormill::ops {

/// All elements widened to double (f16 and bf16 exactly; bool is 0 or 1).
std::vector<double> to_doubles(const Tensor& tensor);
/// Stores values rounded to the tensor's float dtype.
void store_doubles(Tensor& tensor, const std::vector<double>& values);
/// All elements of an integer or bool tensor (u64 as the same bits).
std::vector<int64_t> to_ints(const Tensor& tensor);
/// Stores integers wrapped to the tensor's dtype.
void store_ints(Tensor& tensor, const std::vector<int64_t>& values);
inline bool is_unsigned(DType dtype) { return !dtype_info(dtype).is_signed; }

/// Strides of `shape` (in elements) along the dimensions of `out`, under broadcasting: 0 where an extent
/// is 1.
Shape broadcast_strides(const Shape& shape, const Shape& out);
/// out[i...] = in[offset + sum(i * strides)] for elements of any type; `strides` has one entry per dim of
/// out.
void strided_copy(const Tensor& in, Tensor& out, const Shape& strides, int64_t offset);
/// The evaluation of an operator whose result has input 0's bytes: the same elements in the same order.
void copy_reference(const ir::ReferenceContext& context);
/// Copies element `from` of `in` to element `to` of `out`.
void copy_element(const Tensor& in, int64_t from, Tensor& out, int64_t to);

/// Calls f(position, {offsets...}) for each index of `shape` in row-major order, with one running offset per
/// strides entry.
template <size_t N, typename F>
void for_each_strided(const Shape& shape, const std::array<Shape, N>& strides, F&& f) {
  const int64_t count = num_elements(shape);
  std::array<int64_t, N> offset{};
  Shape index(shape.size(), 0);
  for (int64_t position = 0; position < count; ++position) {
    f(position, offset);
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t n = 0; n < N; ++n) offset[n] += strides[n][d];
      if (++index[d] < shape[d]) break;
      for (size_t n = 0; n < N; ++n) offset[n] -= strides[n][d] * shape[d];
      index[d] = 0;
    }
  }
}

/// Calls f(position, index) for each index of `shape` in row-major order.
template <typename F>
void for_each_index(const Shape& shape, F&& f) {
  const int64_t count = num_elements(shape);
  Shape index(shape.size(), 0);
  for (int64_t position = 0; position < count; ++position) {
    f(position, static_cast<const Shape&>(index));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

/// A shape seen from one axis: [outer, extent, inner].
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};
AxisView view_axis(const Shape& shape, size_t axis);

/// NaN if either is, -0 < +0: what te's min and max mean.
double max_double(double a, double b);
double min_double(double a, double b);

// Integers of any width in 64 bits; u says that they are unsigned. Results wrap.
int64_t int_add(int64_t a, int64_t b);
int64_t int_sub(int64_t a, int64_t b);
int64_t int_mul(int64_t a, int64_t b);
/// Toward zero; x/0 = 0.
int64_t int_div(int64_t a, int64_t b, bool u);
/// Sign of a; x mod 0 = 0.
int64_t int_rem(int64_t a, int64_t b, bool u);
/// Sign of b; x mod 0 = 0.
int64_t int_floor_mod(int64_t a, int64_t b, bool u);
/// Modulo 2^64; of a negative exponent 1 divided by the positive power, toward zero (1/0 = 0).
int64_t int_pow(int64_t a, int64_t b, bool u);
bool int_less(int64_t a, int64_t b, bool u);
/// Shifts of an unsigned value of `bits` bits: 0 when the count is at least the width.
int64_t int_shift(int64_t a, int64_t count, bool left, int bits);
/// An index that is data, from the front; Error(kTensorData) when it is outside of an axis of
/// `extent`.
int64_t checked_index(int64_t index, int64_t extent);
/// Float to integer of `dtype`: truncates, saturates, NaN gives 0.
int64_t saturate_to(DType dtype, double value);

}  // namespace tensormill::ops
