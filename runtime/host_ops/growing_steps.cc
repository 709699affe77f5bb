#include "runtime/host_ops/growing_steps.h"

#include <cstring>
#include <string>

#include "runtime/base/error.h"
#include "runtime/host_ops/growing_buffers.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

GrowingBuffers& buffers_of(const HostCall& call) {
  TM_CHECK(call.growing != nullptr, "there are no growing buffers here");
  return *call.growing;
}

std::span<const std::byte> bytes_of(const TensorView& tensor) {
  const auto elements = static_cast<size_t>(num_elements(tensor.shape));
  return {static_cast<const std::byte*>(tensor.data), elements * dtype_bytes(tensor.dtype)};
}

int64_t buffer_of(const HostCall& call) {
  const int64_t buffer = Attributes(call).integer("buffer");
  if (buffer < 0 || buffer >= GrowingBuffers::kMostBuffers)
    throw Error(ErrorCode::kInvalidPackage, "there is no growing buffer " + std::to_string(buffer));
  return buffer;
}

int64_t number_at(const HostCall& call, size_t input) {
  const TensorView& number = call.inputs[input];
  if (number.dtype != DType::kInt64 || num_elements(number.shape) != 1)
    throw Error(ErrorCode::kInvalidPackage, "the number of an iteration is no i64");
  return *static_cast<const int64_t*>(number.data);
}

}  // namespace

void append_growing(const HostCall& call) {
  expect(call, std::max<size_t>(call.inputs.size(), 2), 1);
  GrowingBuffers& buffers = buffers_of(call);
  const int64_t row = number_at(call, 0), first = buffer_of(call);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const std::span<const std::byte> part = bytes_of(call.inputs[i]);
    const int64_t buffer = first + static_cast<int64_t>(i) - 1;
    const size_t before = row == 0 ? 0 : buffers.bytes(buffer).size();
    if (row < 0 || row == INT64_MAX || before != static_cast<size_t>(row) * part.size())
      throw Error(ErrorCode::kTensorData, "iteration " + std::to_string(row) + " makes " +
                                              std::to_string(part.size()) + " bytes, those before " +
                                              std::to_string(before));
    buffers.write(buffer, before, part);
  }
  *integers(call, 0, 1) = row + 1;
}

void set_growing(const HostCall& call) {
  expect(call, std::max<size_t>(call.inputs.size(), 1), 1);
  const TensorView& x = call.inputs[0];
  buffers_of(call).write(buffer_of(call), 0, bytes_of(x));
  const auto rank = static_cast<int64_t>(x.shape.size());
  std::copy_n(x.shape.begin(), rank, integers(call, 0, rank));
}

void take_growing(const HostCall& call) {
  const bool has_initial = call.inputs.size() > 1;
  expect(call, has_initial ? 3 : 1, 1);
  const size_t wanted = call.output_bytes[0];
  if (wanted == 0) return;
  std::span<const std::byte> taken = buffers_of(call).bytes(buffer_of(call));
  if (has_initial && number_at(call, 1) == 0) taken = bytes_of(call.inputs[2]);
  if (taken.size() != wanted)
    throw Error(ErrorCode::kTensorData, "the iterations have left " + std::to_string(taken.size()) +
                                            " bytes of a value of " + std::to_string(wanted));
  std::memcpy(call.outputs[0], taken.data(), wanted);
}

}  // namespace tensormill::host_ops
