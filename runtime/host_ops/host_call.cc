#include "runtime/host_ops/host_call.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::host_ops {

namespace {

Json parsed(std::string_view text) {
  try {
    Json json = parse_json(text);
    if (json.is_object()) return json;
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidPackage, "attributes of a host step: " + error.message());
  }
  throw Error(ErrorCode::kInvalidPackage, "the attributes of a host step are no object");
}

}  // namespace

std::shared_ptr<const ReadAttributes> read_attributes(std::string_view text) {
  constexpr size_t kLong = 4096;
  if (text.size() > kLong) return nullptr;
  try {
    return std::make_shared<const ReadAttributes>(ReadAttributes{parsed(text)});
  } catch (const Error& error) {
    // A step that reads none may have any text.
    if (error.code() != ErrorCode::kInvalidPackage) throw;
    return nullptr;
  }
}

Attributes::Attributes(const HostCall& call)
    : own_(call.read == nullptr ? parsed(call.attributes) : Json()),
      json_(call.read == nullptr ? own_ : call.read->json) {}

const Json& Attributes::at(const std::string& name, bool (Json::*is_kind)() const noexcept) const {
  const auto found = json_.find(name);
  if (found == json_.end() || !((*found).*is_kind)())
    throw Error(ErrorCode::kInvalidPackage, "a host step has no attribute \"" + name + "\" of its kind");
  return *found;
}

int64_t Attributes::integer(const std::string& name) const {
  return at(name, &Json::is_number_integer).get<int64_t>();
}

std::vector<int64_t> Attributes::integers(const std::string& name) const {
  const Json& list = at(name, &Json::is_array);
  if (!std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_number_integer(); }))
    throw Error(ErrorCode::kInvalidPackage,
                "attribute \"" + name + "\" of a host step is no list of integers");
  return list.get<std::vector<int64_t>>();
}

double Attributes::real(const std::string& name) const { return at(name, &Json::is_number).get<double>(); }

std::string Attributes::text(const std::string& name) const {
  return at(name, &Json::is_string).get<std::string>();
}

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

size_t axis_of(const HostCall& call, size_t rank) { return inside(Attributes(call).integer("axis"), rank); }

std::vector<size_t> axes_of(const HostCall& call, size_t rank) {
  const Attributes attributes(call);
  if (attributes.has("axis")) return {inside(attributes.integer("axis"), rank)};
  std::vector<size_t> axes;
  for (const int64_t axis : attributes.integers("axes")) axes.push_back(inside(axis, rank));
  return axes;
}

}  // namespace tensormill::host_ops
