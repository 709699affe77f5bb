#include "runtime/base/tensor.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/round_to_odd.h"

namespace tensormill {

std::shared_ptr<void> allocate_aligned(size_t bytes) {
  const size_t rounded =
      (bytes + kTensorPadding + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  // Weights are copied and packed once: with small pages the first writes cost as much as the work itself.
  constexpr size_t kLargePage = size_t{2} << 20;
  const bool is_large = rounded >= 2 * kLargePage;
  void* memory =
      std::aligned_alloc(is_large ? kLargePage : kTensorAlignment,
                         is_large ? (rounded + kLargePage - 1) / kLargePage * kLargePage : rounded);
  if (memory == nullptr) {
    throw Error(ErrorCode::kMemoryBudget, "cannot allocate " + std::to_string(bytes) + " bytes");
  }
  if (is_large) (void)::madvise(memory, rounded / kLargePage * kLargePage, MADV_HUGEPAGE);
  // The padding is read by vector loads; defined bytes keep results and sanitizers quiet.
  std::memset(static_cast<char*>(memory) + bytes, 0, rounded - bytes);
  return {memory, &std::free};
}

Tensor::Tensor() : Tensor(DType::kFloat32, {0}) {}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), elements_(tensormill::num_elements(shape_)) {
  owner_ = allocate_aligned(static_cast<size_t>(tensormill::num_bytes(shape_, dtype)));
  data_ = owner_.get();
}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data)
    : dtype_(dtype),
      shape_(std::move(shape)),
      elements_(tensormill::num_elements(shape_)),
      owner_(std::move(owner)),
      data_(data) {}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  std::memset(tensor.data(), 0, tensor.num_bytes());
  return tensor;
}

void Tensor::check_type(DType expected) const {
  TM_CHECK(dtype_ == expected,
           "tensor of " + std::string(dtype_name(dtype_)) + " read as " + std::string(dtype_name(expected)));
}

Tensor Tensor::reshaped(Shape shape) const {
  TM_CHECK(tensormill::num_elements(shape) == elements_,
           "reshape of " + to_string(shape_) + " to " + to_string(shape));
  return Tensor(dtype_, std::move(shape), owner_, data_);
}

Tensor Tensor::clone() const {
  Tensor copy(dtype_, shape_);
  std::memcpy(copy.data(), data_, num_bytes());
  return copy;
}

namespace {

[[noreturn]] void throw_no_element(int64_t index, int64_t elements) {
  throw std::out_of_range("element " + std::to_string(index) + " of a tensor of " + std::to_string(elements));
}

void check_element(int64_t index, int64_t elements) {
  if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(elements)) [[unlikely]]
    throw_no_element(index, elements);
}

template <typename T>
T load(const void* data, int64_t index, int64_t elements) {
  check_element(index, elements);
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store(void* data, int64_t index, int64_t elements, T value) {
  check_element(index, elements);
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

/// Truncation that is defined for every double: NaN is 0, out of range saturates.
int64_t to_int64(double value) {
  if (!(value == value)) return 0;
  if (value >= 9.2233720368547758e18) return INT64_MAX;
  if (value <= -9.2233720368547758e18) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

double Tensor::element_as_double(int64_t index) const {
  if (is_narrow(dtype_)) return decode_narrow(dtype_, load<uint8_t>(data_, index, elements_));
  switch (dtype_) {
    case DType::kFloat32:
      return load<float>(data_, index, elements_);
    case DType::kFloat64:
      return load<double>(data_, index, elements_);
    case DType::kFloat16:
      return half_to_float(load<uint16_t>(data_, index, elements_));
    case DType::kBFloat16:
      return bfloat16_to_float(load<uint16_t>(data_, index, elements_));
    case DType::kUInt64:
      return static_cast<double>(load<uint64_t>(data_, index, elements_));
    default:
      return static_cast<double>(element_as_int(index));
  }
}

int64_t Tensor::element_as_int(int64_t index) const {
  switch (dtype_) {
    case DType::kInt8:
      return load<int8_t>(data_, index, elements_);
    case DType::kInt16:
      return load<int16_t>(data_, index, elements_);
    case DType::kInt32:
      return load<int32_t>(data_, index, elements_);
    case DType::kInt64:
      return load<int64_t>(data_, index, elements_);
    case DType::kUInt8:
      return load<uint8_t>(data_, index, elements_);
    case DType::kUInt16:
      return load<uint16_t>(data_, index, elements_);
    case DType::kUInt32:
      return load<uint32_t>(data_, index, elements_);
    case DType::kUInt64:
      return static_cast<int64_t>(load<uint64_t>(data_, index, elements_));
    case DType::kBool:
      return load<uint8_t>(data_, index, elements_) != 0 ? 1 : 0;
    default:
      return to_int64(element_as_double(index));
  }
}

void Tensor::set_element(int64_t index, double value) {
  if (is_narrow(dtype_) && is_float(dtype_)) {
    store(data_, index, elements_, encode_narrow(dtype_, value));
    return;
  }
  switch (dtype_) {
    case DType::kFloat32:
      store(data_, index, elements_, static_cast<float>(value));
      return;
    case DType::kFloat64:
      store(data_, index, elements_, value);
      return;
    case DType::kFloat16:
      store(data_, index, elements_, float_to_half(rounded_to_odd(value)));
      return;
    case DType::kBFloat16:
      store(data_, index, elements_, float_to_bfloat16(rounded_to_odd(value)));
      return;
    case DType::kBool:
      store<uint8_t>(data_, index, elements_, value != 0.0 ? 1 : 0);
      return;
    default:
      set_element_int(index, to_int64(value));
      return;
  }
}

void Tensor::set_element_int(int64_t index, int64_t value) {
  if (is_narrow_integer(dtype_)) {
    store(data_, index, elements_, static_cast<uint8_t>(narrow_integer(dtype_, value)));
    return;
  }
  if (dtype_ == kString) {
    store(data_, index, elements_, static_cast<uint8_t>(value));
    return;
  }
  switch (dtype_) {
    case DType::kInt8:
    case DType::kUInt8:
      store(data_, index, elements_, static_cast<uint8_t>(value));
      return;
    case DType::kInt16:
    case DType::kUInt16:
      store(data_, index, elements_, static_cast<uint16_t>(value));
      return;
    case DType::kInt32:
    case DType::kUInt32:
      store(data_, index, elements_, static_cast<uint32_t>(value));
      return;
    case DType::kInt64:
    case DType::kUInt64:
      store(data_, index, elements_, value);
      return;
    case DType::kBool:
      store<uint8_t>(data_, index, elements_, value != 0 ? 1 : 0);
      return;
    case DType::kFloat16:
    case DType::kBFloat16:
      set_element(index, static_cast<double>(rounded_to_odd(value, true)));
      return;
    default:
      set_element(index, static_cast<double>(value));
      return;
  }
}

}  // namespace tensormill
