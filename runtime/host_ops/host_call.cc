#include "runtime/host_ops/host_call.h"

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::host_ops {

void expect(const HostCall& call, size_t inputs, size_t outputs) {
  if (call.inputs.size() != inputs || call.outputs.size() != outputs)
    throw Error(ErrorCode::kInvalidPackage, "a host step has another number of operands");
}

void* storage(const HostCall& call, size_t index, size_t count, size_t bytes) {
  if (call.output_bytes[index] != count * bytes)
    throw Error(ErrorCode::kInvalidPackage, "output " + std::to_string(index) + " of a host step has " +
                                                std::to_string(call.output_bytes[index]) + " bytes, not " +
                                                std::to_string(count * bytes));
  return call.outputs[index];
}

int64_t* integers(const HostCall& call, size_t index, int64_t count) {
  return static_cast<int64_t*>(storage(call, index, static_cast<size_t>(count), sizeof(int64_t)));
}

Tensor copied(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  if (tensor.num_bytes() != 0) std::memcpy(tensor.data(), view.data, tensor.num_bytes());
  return tensor;
}

namespace {

size_t inside(int64_t axis, size_t rank) {
  if (axis < 0 || static_cast<size_t>(axis) >= rank)
    throw Error(ErrorCode::kInvalidPackage,
                "axis " + std::to_string(axis) + " of a host step's operand of rank " + std::to_string(rank));
  return static_cast<size_t>(axis);
}

}  // namespace

size_t axis_of(const HostCall& call, size_t rank) {
  return inside(parse_json(call.attributes).at("axis").get<int64_t>(), rank);
}

std::vector<size_t> axes_of(const HostCall& call, size_t rank) {
  const Json attributes = parse_json(call.attributes);
  if (attributes.contains("axis")) return {inside(attributes.at("axis").get<int64_t>(), rank)};
  std::vector<size_t> axes;
  for (const Json& axis : attributes.at("axes")) axes.push_back(inside(axis.get<int64_t>(), rank));
  return axes;
}

}  // namespace tensormill::host_ops
