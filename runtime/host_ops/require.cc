// Numbers of a run that have to hold to something.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

std::string text_of(const Tensor& number) {
  if (!is_float(number.dtype())) return std::to_string(number.element_as_int(0));
  // As short as it reads back: a float's value that was made a double, too, as the float.
  std::array<char, 32> text{};
  const double value = number.element_as_double(0);
  const auto narrow = static_cast<float>(value);
  char* const last = text.data() + text.size();
  const auto end = static_cast<double>(narrow) == value ? std::to_chars(text.data(), last, narrow)
                                                        : std::to_chars(text.data(), last, value);
  return {text.data(), end.ptr};
}

}  // namespace

void require(const HostCall& call) {
  expect(call, 2, 1);
  const TensorView &x = call.inputs[0], &holds = call.inputs[1];
  const bool are_single = num_elements(x.shape) == 1 && num_elements(holds.shape) == 1;
  if (!are_single || x.dtype == kString || holds.dtype != DType::kBool)
    throw Error(ErrorCode::kInvalidPackage, "a host step requires something of what is no number");
  if (*static_cast<const uint8_t*>(holds.data) == 0) {
    std::string what = Attributes(call).text("what");
    constexpr std::string_view kNumber = "{}";
    const size_t place = what.find(kNumber);
    if (place != std::string::npos) what.replace(place, kNumber.size(), text_of(copied(x)));
    throw Error(ErrorCode::kTensorData, what);
  }
  const size_t bytes = dtype_bytes(x.dtype);
  std::copy_n(static_cast<const std::byte*>(x.data), bytes,
              static_cast<std::byte*>(storage(call, 0, 1, bytes)));
}

}  // namespace tensormill::host_ops
