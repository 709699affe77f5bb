#include "server/services/input_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::server {

namespace {

/// They stand in a job and in the package's metadata.
constexpr size_t kMostValues = size_t{1} << 12, kMaxRank = 32;

[[noreturn]] void refuse(const std::string& input, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              "input_values: \"" + input + "\" " + why + R"(; write {"sr":16000,"axes":[0,1]})",
              {{(Json::json_pointer("/input_values") / input).to_string(), why}});
}

/// Numbers of nested arrays in row-major order; arrays beside each other have one size.
void flatten(const std::string& input, const Json& json, size_t depth, Shape& shape,
             std::vector<Json>& values) {
  if (!json.is_array()) {
    if (depth != shape.size() || !(json.is_number() || json.is_boolean())) refuse(input, "is no tensor");
    values.push_back(json);
    if (values.size() > kMostValues)
      refuse(input,
             "has more than " + std::to_string(kMostValues) + " values; make it a constant of the model");
    return;
  }
  const auto size = static_cast<int64_t>(json.size());
  if (depth == shape.size() && values.empty()) shape.push_back(size);
  if (shape.size() > kMaxRank) refuse(input, "has more than " + std::to_string(kMaxRank) + " axes");
  if (depth >= shape.size() || shape[depth] != size) refuse(input, "has rows of several sizes");
  for (const Json& item : json) flatten(input, item, depth + 1, shape, values);
}

int64_t whole_number(const std::string& input, const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const bool is_large = value.is_number_unsigned() &&
                        value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_float() || is_large) refuse(input, "takes whole numbers");
  return value.get<int64_t>();
}

Tensor tensor_of(const services::TensorSpec& input, const Json& json) {
  if (input.dtype == kString) refuse(input.name, "is of strings, which are no values to fix");
  Shape shape;
  std::vector<Json> values;
  flatten(input.name, json, 0, shape, values);
  Tensor tensor(input.dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (!is_float(input.dtype)) {
      const int64_t number = whole_number(input.name, values[i]);
      tensor.set_element_int(at, number);
      if (tensor.element_as_int(at) != number)
        refuse(input.name, "has " + values[i].dump() + ", which " +
                               std::string(dtype_long_name(input.dtype)) + " does not hold");
    } else if (values[i].is_boolean()) {
      refuse(input.name, "takes numbers");
    } else {
      tensor.set_element(at, values[i].get<double>());
      if (!std::isfinite(tensor.element_as_double(at)))
        refuse(input.name, "has " + values[i].dump() + ", which " +
                               std::string(dtype_long_name(input.dtype)) + " does not hold");
    }
  }
  return tensor;
}

}  // namespace

void bind_input_values(const Json& values, const std::vector<services::TensorSpec>& inputs,
                       frontend::onnx::ImportOptions& options) {
  for (const auto& [name, value] : values.items()) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&name = name](const auto& candidate) { return candidate.name == name; });
    if (input == inputs.end()) refuse(name, "is no input of the model");
    if (input->kind.empty()) {
      options.input_values.insert_or_assign(name, tensor_of(*input, value));
    } else if (value.is_null() && input->kind != "sequence") {
      options.input_elements[name] = std::nullopt;
    } else if (value.is_array() && value.empty()) {
      options.input_elements[name].emplace();
    } else {
      refuse(name, "is of kind " + input->kind +
                       ": null, for nothing where it is optional, and [] alone are known before a run");
    }
  }
}

}  // namespace tensormill::server
