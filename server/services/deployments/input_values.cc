#include "server/services/deployments/input_values.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/number_text.h"
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

Tensor tensor_of(const services::TensorSpec& input, const Json& json) {
  if (input.dtype == kString) refuse(input.name, "is of strings, which are no values to fix");
  Shape shape;
  std::vector<Json> values;
  flatten(input.name, json, 0, shape, values);
  Tensor tensor(input.dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    // A flag may be an integer of the model.
    const bool counts = values[i].is_boolean() && !is_float(input.dtype);
    const std::string text = counts ? (values[i].get<bool>() ? "1" : "0") : values[i].dump();
    const NumberFit fit = store_number(input.dtype, text,
                                       static_cast<std::byte*>(tensor.data()) + i * dtype_bytes(input.dtype));
    if (fit != NumberFit::kFits)
      refuse(input.name, "element " + std::to_string(i) + " " + describe_misfit(input.dtype, text, fit));
  }
  return tensor;
}

}  // namespace

void bind_input_values(const Json& values, const std::vector<services::TensorSpec>& inputs,
                       frontend::ImportOptions& options) {
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
