// Numbers of a run that have to hold to something.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/other_graph.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

std::string text_of(const Tensor& numbers, int64_t at) {
  if (!is_float(numbers.dtype())) return std::to_string(numbers.element_as_int(at));
  // As short as it reads back: a float's value that was made a double, too, as the float.
  std::array<char, 32> text{};
  const double value = numbers.element_as_double(at);
  const auto narrow = static_cast<float>(value);
  char* const last = text.data() + text.size();
  const auto end = static_cast<double>(narrow) == value ? std::to_chars(text.data(), last, narrow)
                                                        : std::to_chars(text.data(), last, value);
  return {text.data(), end.ptr};
}

/// A number, or a list of the first of several.
std::string text_of(const Tensor& numbers) {
  constexpr int64_t kMostListed = 16;
  if (numbers.num_elements() == 1) return text_of(numbers, 0);
  std::string list = "[";
  for (int64_t i = 0; i < std::min(numbers.num_elements(), kMostListed); ++i)
    list += (i == 0 ? "" : ",") + text_of(numbers, i);
  return list + (numbers.num_elements() > kMostListed ? ",...]" : "]");
}

void check_numbers(const TensorView& numbers) {
  if (numbers.dtype == kString)
    throw Error(ErrorCode::kInvalidPackage, "a host step requires something of what is no number");
}

}  // namespace

void require(const HostCall& call) {
  if (call.inputs.size() < 2) expect(call, 2, 1);
  expect(call, call.inputs.size(), 1);
  const TensorView &x = call.inputs[0], &holds = call.inputs[1];
  if (num_elements(x.shape) != 1 || num_elements(holds.shape) != 1 || holds.dtype != DType::kBool)
    throw Error(ErrorCode::kInvalidPackage, "a host step requires something of what is no number");
  check_numbers(x);
  const std::span<const TensorView> told =
      call.inputs.size() == 2 ? call.inputs.first(1) : call.inputs.subspan(2);
  for (const TensorView& numbers : told) check_numbers(numbers);
  if (*static_cast<const uint8_t*>(holds.data) == 0) {
    std::string what = Attributes(call).text("what");
    constexpr std::string_view kNumber = "{}";
    size_t place = 0;
    for (const TensorView& numbers : told) {
      place = what.find(kNumber, place);
      if (place == std::string::npos) break;
      const std::string text = text_of(copied(numbers));
      what.replace(place, kNumber.size(), text);
      place += text.size();
    }
    if (Attributes(call).has("of_extents")) throw OtherGraph(what);
    throw Error(ErrorCode::kTensorData, what);
  }
  const size_t bytes = dtype_bytes(x.dtype);
  std::copy_n(static_cast<const std::byte*>(x.data), bytes,
              static_cast<std::byte*>(storage(call, 0, 1, bytes)));
}

}  // namespace tensormill::host_ops
