#include "compiler/ops/reference_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensormill::ops {

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.num_elements()));
  if (tensor.dtype() == DType::kFloat32) {
    const auto source = tensor.values<float>();
    std::copy(source.begin(), source.end(), values.begin());
  } else if (tensor.dtype() == DType::kFloat64) {
    const auto source = tensor.values<double>();
    std::copy(source.begin(), source.end(), values.begin());
  } else {
    for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.element_as_double(static_cast<int64_t>(i));
  }
  return values;
}

void store_doubles(Tensor& tensor, const std::vector<double>& values) {
  if (tensor.dtype() == DType::kFloat32) {
    auto target = tensor.values<float>();
    for (size_t i = 0; i < values.size(); ++i) target[i] = static_cast<float>(values[i]);
  } else {
    for (size_t i = 0; i < values.size(); ++i) tensor.set_element(static_cast<int64_t>(i), values[i]);
  }
}

std::vector<int64_t> to_ints(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.num_elements()));
  if (tensor.dtype() == DType::kInt64) {
    const auto source = tensor.values<int64_t>();
    std::copy(source.begin(), source.end(), values.begin());
  } else if (tensor.dtype() == DType::kInt32) {
    const auto source = tensor.values<int32_t>();
    std::copy(source.begin(), source.end(), values.begin());
  } else {
    for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.element_as_int(static_cast<int64_t>(i));
  }
  return values;
}

void store_ints(Tensor& tensor, const std::vector<int64_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) tensor.set_element_int(static_cast<int64_t>(i), values[i]);
}

Shape broadcast_strides(const Shape& shape, const Shape& out) {
  const Shape own = row_major_strides(shape);
  Shape strides(out.size(), 0);
  const size_t skipped = out.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) strides[skipped + i] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

namespace {

template <typename Unit>
void strided_copy_units(const Tensor& in, Tensor& out, const Shape& strides, int64_t offset) {
  const Unit* source = static_cast<const Unit*>(in.data()) + offset;
  Unit* target = static_cast<Unit*>(out.data());
  Shape outer = out.shape();
  Shape outer_strides = strides;
  const int64_t row = outer.empty() ? 1 : outer.back();
  const int64_t step = outer.empty() ? 0 : strides.back();
  if (!outer.empty()) {
    outer.pop_back();
    outer_strides.pop_back();
  }
  for_each_strided<1>(outer, {outer_strides}, [&](int64_t position, const std::array<int64_t, 1>& from) {
    for (int64_t i = 0; i < row; ++i) target[position * row + i] = source[from[0] + i * step];
  });
}

}  // namespace

void strided_copy(const Tensor& in, Tensor& out, const Shape& strides, int64_t offset) {
  if (out.num_elements() == 0) return;
  switch (dtype_bytes(out.dtype())) {
    case 1:
      return strided_copy_units<uint8_t>(in, out, strides, offset);
    case 2:
      return strided_copy_units<uint16_t>(in, out, strides, offset);
    case 4:
      return strided_copy_units<uint32_t>(in, out, strides, offset);
    default:
      return strided_copy_units<uint64_t>(in, out, strides, offset);
  }
}

void copy_reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (x.num_bytes() != 0) std::memcpy(context.outputs[0]->data(), x.data(), x.num_bytes());
}

void copy_element(const Tensor& in, int64_t from, Tensor& out, int64_t to) {
  const size_t bytes = dtype_bytes(out.dtype());
  std::memcpy(static_cast<char*>(out.data()) + static_cast<size_t>(to) * bytes,
              static_cast<const char*>(in.data()) + static_cast<size_t>(from) * bytes, bytes);
}

AxisView view_axis(const Shape& shape, size_t axis) {
  AxisView view;
  for (size_t i = 0; i < axis; ++i) view.outer *= shape[i];
  view.extent = shape[axis];
  for (size_t i = axis + 1; i < shape.size(); ++i) view.inner *= shape[i];
  return view;
}

double max_double(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

double min_double(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

int64_t int_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

int64_t int_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

int64_t int_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t int_div(int64_t a, int64_t b, bool u) {
  if (b == 0) return 0;
  if (u) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  if (b == -1) return int_sub(0, a);
  return a / b;
}

int64_t int_rem(int64_t a, int64_t b, bool u) {
  return b == 0 ? 0 : int_sub(a, int_mul(int_div(a, b, u), b));
}

int64_t int_floor_mod(int64_t a, int64_t b, bool u) {
  const int64_t rest = int_rem(a, b, u);
  return !u && rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

int64_t int_pow(int64_t a, int64_t b, bool u) {
  if (!u && b < 0) {
    if (a == -1) return (b & 1) != 0 ? -1 : 1;
    return a == 1 ? 1 : 0;
  }
  int64_t power = 1;
  for (uint64_t rest = static_cast<uint64_t>(b); rest != 0; rest >>= 1, a = int_mul(a, a)) {
    if ((rest & 1) != 0) power = int_mul(power, a);
  }
  return power;
}

bool int_less(int64_t a, int64_t b, bool u) {
  return u ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

int64_t int_shift(int64_t a, int64_t count, bool left, int bits) {
  if (count < 0 || count >= bits) return 0;
  const uint64_t value = static_cast<uint64_t>(a);
  return static_cast<int64_t>(left ? value << count : value >> count);
}

int64_t saturate_to(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const DTypeInfo& info = dtype_info(dtype);
  const int value_bits = info.is_signed ? info.bits - 1 : info.bits;
  const double bound = std::ldexp(1.0, value_bits);
  if (info.is_signed) {
    if (value >= bound) return std::numeric_limits<int64_t>::max() >> (64 - info.bits);
    if (value < -bound) return std::numeric_limits<int64_t>::min() >> (64 - info.bits);
    return static_cast<int64_t>(value);
  }
  if (value >= bound) return static_cast<int64_t>(~uint64_t{0} >> (64 - info.bits));
  return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
}

int64_t checked_index(int64_t index, int64_t extent) {
  const int64_t wrapped = index < 0 ? index + extent : index;
  if (wrapped < 0 || wrapped >= extent) {
    throw Error(ErrorCode::kTensorData, "index " + std::to_string(index) +
                                            " is out of range for an axis of " + std::to_string(extent));
  }
  return wrapped;
}

}  // namespace tensormill::ops
